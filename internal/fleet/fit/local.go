package fit

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
)

// Local are the nodes of a cluster whose pods are known, for the pods of one template.
type Local struct {
	// rejected are the reasons why other pods or volumes keep pods of the template from each node, "" if they do not. placed are the
	// pods on each node that each topology spread constraint of the template selects.
	rejected []string
	placed   [][]int64
}

// NewLocalSummary is NewSummary for a status with a group for each node of a cluster, and the templates for which the nodes are known.
func NewLocalSummary(status *v1alpha1.ClusterCapacityStatus, local map[*Template]*Local) (*Summary, error) {
	s, err := newSummary(status)
	if err == nil {
		s.local = local
	}
	return s, err
}

// NewLocal returns the nodes for the pods of a template, given the pods of the cluster, and the reasons by node why a pod of the template
// without topology spread constraints and requests does not fit.
func (t *Template) NewLocal(nodes []*v1.Node, pods []*v1.Pod, rejected map[string]string) *Local {
	out, indexes := &Local{make([]string, len(nodes)), make([][]int64, len(t.spread))}, map[string]int{}
	for i, n := range nodes {
		out.rejected[i], indexes[n.Name] = rejected[n.Name], i
	}
	for k := range t.spread {
		out.placed[k] = make([]int64, len(nodes))
		selector := selectorOf(&t.spread[k], t.labels)
		for _, p := range pods {
			i, known := indexes[p.Spec.NodeName]
			if known && p.Namespace == t.Workload.Namespace && p.DeletionTimestamp == nil && selector.Matches(labels.Set(p.Labels)) {
				out.placed[k][i]++
			}
		}
	}
	return out
}

// placedOn returns the pods on the node of a group that a constraint selects, 0 if they are not known.
func (l *Local) placedOn(constraint, group int) int64 {
	if l == nil {
		return 0
	}
	return l.placed[constraint][group]
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
