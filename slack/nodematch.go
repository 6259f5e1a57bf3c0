package slack

import (
	"iter"
	"maps"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// NodeMatches returns a function that reports whether the node selector, node affinity and
// tolerations of pods permit a node. Taints that describe the state of a node are ignored:
// isUsable evaluates them.
func NodeMatches(spec *v1.PodSpec) func(*v1.Node) bool {
	required := nodeaffinity.GetRequiredNodeAffinity(&v1.Pod{Spec: *spec})
	return func(node *v1.Node) bool {
		matches, err := required.Match(node) // an invalid affinity matches no node, as in kube-scheduler
		return err == nil && matches && toleratesTaints(node, spec.Tolerations)
	}
}

// antiAffinity is the required pod anti-affinity of a template.
type antiAffinity []antiAffinityTerm

type antiAffinityTerm struct {
	topologyKey string
	// namespaces are the namespaces that the term refers to, nil for all.
	namespaces sets.Set[string]
	selector   labels.Selector
	// occupied has the values of the topology key of nodes with a matching pod.
	occupied map[string]bool
}

// newAntiAffinity returns the anti-affinity of a group, none if it does not mirror a workload. Namespace selectors match all
// namespaces, because the labels of namespaces are not known: placeholders may then avoid too many
// pods, never too few.
func newAntiAffinity(g *Group) (terms antiAffinity) {
	if g.Mirror == nil {
		return nil
	}
	affinity := g.Mirror.Template.Spec.Affinity
	if affinity == nil || affinity.PodAntiAffinity == nil {
		return nil
	}
	for _, term := range affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		if err != nil {
			continue // the API server rejects such pods
		}
		var namespaces sets.Set[string]
		if term.NamespaceSelector == nil {
			if namespaces = sets.New(term.Namespaces...); len(namespaces) == 0 {
				namespaces.Insert(g.Mirror.Namespace)
			}
		}
		terms = append(terms, antiAffinityTerm{
			topologyKey: term.TopologyKey, namespaces: namespaces, selector: selector, occupied: map[string]bool{},
		})
	}
	return terms
}

// podIndex has the pods that run or may run, by namespace.
type podIndex map[string][]*v1.Pod

// indexPods returns the index of pods. Finished pods and placeholders are left out.
func indexPods(pods []*v1.Pod) podIndex {
	index := podIndex{}
	for _, pod := range pods {
		if isCounted(pod) && nodeOf(pod) != "" {
			index[pod.Namespace] = append(index[pod.Namespace], pod)
		}
	}
	return index
}

// podsFor returns the pods of the namespaces of a term.
func (i podIndex) podsFor(term *antiAffinityTerm) iter.Seq[[]*v1.Pod] {
	if term.namespaces == nil {
		return maps.Values(i)
	}
	return func(yield func([]*v1.Pod) bool) {
		for namespace := range term.namespaces {
			if !yield(i[namespace]) {
				return
			}
		}
	}
}

// comparisons returns the number of comparisons of a pod with a term that addPods makes.
func (a antiAffinity) comparisons(index podIndex) (n int) {
	for i := range a {
		for pods := range index.podsFor(&a[i]) {
			n += len(pods)
		}
	}
	return n
}

// addPods adds the pods of an index on nodes.
func (a antiAffinity) addPods(index podIndex, nodes map[string]*nodeCapacity) {
	for i := range a {
		for pods := range index.podsFor(&a[i]) {
			for _, pod := range pods {
				if node := nodes[nodeOf(pod)]; node != nil {
					a[i].add(pod.Labels, node.node)
				}
			}
		}
	}
}

// AntiAffinityNamespaces returns the sorted namespaces of the pods that the required anti-affinity of
// mirrors may refer to. It returns all as true if a namespace selector can select any namespace.
func (p *Plan) AntiAffinityNamespaces() (namespaces []string, all bool) {
	names := sets.New[string]()
	for i := range p.Groups {
		for _, term := range newAntiAffinity(&p.Groups[i]) {
			if term.namespaces == nil {
				return nil, true
			}
			names = names.Union(term.namespaces)
		}
	}
	return sets.List(names), false
}

// add adds a pod with a namespace and labels on a node.
func (a antiAffinity) add(namespace string, podLabels map[string]string, node *v1.Node) {
	for i := range a {
		if term := &a[i]; term.namespaces == nil || term.namespaces.Has(namespace) {
			term.add(podLabels, node)
		}
	}
}

// add adds a pod of the namespaces of the term, with labels on a node.
func (t *antiAffinityTerm) add(podLabels map[string]string, node *v1.Node) {
	if value, ok := node.Labels[t.topologyKey]; ok && !t.occupied[value] && t.selector.Matches(labels.Set(podLabels)) {
		t.occupied[value] = true
	}
}

// permits reports whether the anti-affinity permits a node.
func (a antiAffinity) permits(node *v1.Node) bool {
	for _, term := range a {
		if value, ok := node.Labels[term.topologyKey]; ok && term.occupied[value] {
			return false
		}
	}
	return true
}
