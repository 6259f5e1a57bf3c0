package slack

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// admits returns whether a node is one that the pods of a workload may be on, as
// far as its labels and taints say. Taints that say how the node is doing do not
// count: that is what usable is about.
func admits(w *Workload) func(*v1.Node) bool {
	required := nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: w.Template.Spec})
	return func(node *v1.Node) bool {
		if matches, err := required.Match(node); err != nil || !matches {
			return false // an affinity that cannot be read admits no node to a scheduler either
		}
		_, untolerated := corev1helpers.FindMatchingUntoleratedTaint(klog.Background(), node.Spec.Taints, w.Template.Spec.Tolerations, func(taint *v1.Taint) bool {
			return taint.Effect != v1.TaintEffectPreferNoSchedule && !isCondition(taint.Key)
		}, true)
		return !untolerated
	}
}

// apart are where the pods of a workload must not be because of others there:
// its required anti-affinities.
type apart struct {
	terms []antiTerm
}

type antiTerm struct {
	topologyKey string
	namespaces  func(string) bool
	selector    labels.Selector
	// taken are the values of the topology key that a matching pod is on.
	taken map[string]bool
}

// newApart reads the anti-affinities of a workload. A term that names namespaces
// by their labels is about all of them here, which keeps placeholders apart from
// too many pods rather than too few.
func newApart(w *Workload) *apart {
	affinity := w.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return &apart{}
	}
	a := &apart{}
	for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			continue // the API server takes no such pod
		}
		named := map[string]bool{}
		for _, namespace := range term.Namespaces {
			named[namespace] = true
		}
		if len(named) == 0 && term.NamespaceSelector == nil {
			named[w.Namespace] = true
		}
		a.terms = append(a.terms, antiTerm{
			topologyKey: term.TopologyKey, selector: selector, taken: map[string]bool{},
			namespaces: func(namespace string) bool { return term.NamespaceSelector != nil || named[namespace] },
		})
	}
	return a
}

// add takes a pod on a node in.
func (a *apart) add(pod *v1.Pod, node *v1.Node) {
	for _, term := range a.terms {
		if value, ok := node.Labels[term.topologyKey]; ok && term.namespaces(pod.Namespace) && term.selector.Matches(labels.Set(pod.Labels)) {
			term.taken[value] = true
		}
	}
}

// from reports whether a node is apart from all pods that it must be apart from.
func (a *apart) from(node *v1.Node) bool {
	for _, term := range a.terms {
		if value, ok := node.Labels[term.topologyKey]; ok && term.taken[value] {
			return false
		}
	}
	return true
}
