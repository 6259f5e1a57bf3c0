package fit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Local is a cluster whose nodes and pods are known, for the pods of one template.
type Local struct {
	// now and withSlack have a group for each node, with and without the pods that hold slack.
	now, withSlack *Summary
	// rejection is why other pods keep pods of the template from nodes, "" if they do not.
	rejection string
}

// SetLocal adds the nodes and pods of the cluster to the summary, as they are for the templates of a workload.
func (s *Summary) SetLocal(local map[*Template]*Local) { s.local = local }

// LocalPods are the pods of a cluster by node, and the nodes that a pod of a template without topology spread constraints does not fit,
// with the reason if it is other pods or volumes, or else "".
type LocalPods struct {
	Pods     map[string][]*v1.Pod
	Rejected map[string]string
}

// NewLocal returns a cluster for the pods of a template, given the pods with and without those that hold slack.
func (t *Template) NewLocal(nodes []*v1.Node, now, withoutSlack LocalPods) *Local {
	if t.neverPreempts {
		withoutSlack = now
	}
	out, counts := &Local{now: t.localSummary(nodes, now), withSlack: t.localSummary(nodes, withoutSlack)}, map[string]int{}
	for _, reason := range withoutSlack.Rejected {
		counts[reason]++
	}
	delete(counts, "")
	if len(counts) > 0 {
		first := slices.MaxFunc(slices.Sorted(maps.Keys(counts)), func(a, b string) int { return cmp.Compare(counts[a], counts[b]) })
		out.rejection = fmt.Sprintf("%s: %d of %d", first, counts[first], len(nodes))
	}
	return out
}

// localSummary returns a summary with a group for each node: the pods of the template that fit the node if no topology spread constraint
// forbids it, and the pods on it that each constraint selects.
func (t *Template) localSummary(nodes []*v1.Node, pods LocalPods) *Summary {
	s := &Summary{pods: make([]int64, len(nodes)), placed: make([][]int64, len(t.spread))}
	selectors := make([]labels.Selector, len(t.spread))
	for i := range t.spread {
		s.placed[i], selectors[i] = make([]int64, len(nodes)), selectorOf(&t.spread[i], t.labels)
	}
	for i, n := range nodes {
		class := v1alpha1.NodeClass{Labels: n.Labels}
		for _, taint := range n.Spec.Taints {
			if taint.Effect != v1.TaintEffectPreferNoSchedule {
				class.Taints = append(class.Taints, taint)
			}
		}
		s.classes, s.nodes = append(s.classes, classGroups{keyOf(&class), i, i + 1}), append(s.nodes, 1)
		var sums resources.Sums
		for _, p := range pods.Pods[n.Name] {
			amounts := resources.NewPod(p)
			amounts.Extended = append(amounts.Extended, resources.NamedAmount{Name: v1.ResourcePods, Amount: resources.Amount{Request: 1}})
			sums.Add(&amounts)
			for k, selector := range selectors {
				if p.Namespace == t.Workload.Namespace && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) {
					s.placed[k][i]++
				}
			}
		}
		if _, isRejected := pods.Rejected[n.Name]; isRejected {
			continue
		}
		s.pods[i] = MaxReplicas
		if t.alone {
			s.pods[i] = 1
		}
		for _, r := range t.requests {
			s.pods[i] = min(s.pods[i], max(r.Amount(n.Status.Allocatable[r.Name()])-sums.Get(r.Resource).Request, 0)/r.amount)
		}
	}
	return s
}

// selectorOf returns the selector of the pods that a constraint of a pod with labels counts.
func selectorOf(c *v1.TopologySpreadConstraint, of map[string]string) labels.Selector {
	selector, _ := metav1.LabelSelectorAsSelector(c.LabelSelector) // valid, see setSpread
	for _, key := range c.MatchLabelKeys {
		if value, found := of[key]; found {
			requirement, _ := labels.NewRequirement(key, "in", []string{value}) // valid in a pod
			selector = selector.Add(*requirement)
		}
	}
	return selector
}
