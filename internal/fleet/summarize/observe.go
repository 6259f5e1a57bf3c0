package summarize

import (
	"cmp"
	"maps"
	"slices"
	"unique"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// NodeName is the name of a node. The node and its pods share the memory of the name.
type NodeName = unique.Handle[string]

// label is a label of nodes.
type label struct{ key, value string }

// Node is the part of a node that a summary uses.
type Node struct {
	Name                  NodeName
	Allocatable, Capacity v1.ResourceList
	// Cordoned is set if pods cannot be scheduled onto the node.
	Cordoned bool

	// labels are sorted by key. Nodes with equal labels share their memory.
	labels []unique.Handle[label]
	// taints are the taints that repel pods, sorted.
	taints []v1.Taint
	price  string
	// usable is not set if the node takes no pods: it is not ready, cordoned, or about to be deleted.
	usable bool
}

// NewNode returns the part of a node.
func NewNode(node *v1.Node) *Node {
	ready := resources.ReadyStatus(node)
	out := &Node{
		Name: unique.Make(node.Name), Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity,
		Cordoned: node.Spec.Unschedulable, labels: make([]unique.Handle[label], 0, len(node.Labels)),
		price:  node.Annotations[v1alpha1.AnnotationPrice],
		usable: resources.IsSchedulable(node) && (ready == "" || ready == v1.ConditionTrue),
	}
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		out.labels = append(out.labels, unique.Make(label{key, node.Labels[key]}))
	}
	for _, t := range node.Spec.Taints {
		if resources.IsScaleDownTaint(t.Key) {
			out.usable = false
		}
		if t.Effect != v1.TaintEffectPreferNoSchedule {
			out.taints = append(out.taints, v1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	slices.SortFunc(out.taints, func(a, b v1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return out
}

// Label returns the value of a label, "" if the node does not have it.
func (n *Node) Label(key string) string {
	value, _ := n.findLabel(key)
	return value
}

// findLabel returns the value of a label, and whether the node has it.
func (n *Node) findLabel(key string) (value string, found bool) {
	i, found := slices.BinarySearchFunc(n.labels, key, func(l unique.Handle[label], key string) int {
		return cmp.Compare(l.Value().key, key)
	})
	if found {
		value = n.labels[i].Value().value
	}
	return value, found
}

// AcceptsPods reports whether the node accepts a pod without tolerations.
func (n *Node) AcceptsPods() bool { return n.usable && len(n.taints) == 0 }

// Pod is the part of a pod that a summary uses.
type Pod struct {
	// name is the namespace and the name of the pod.
	name string
	node NodeName
	// placeholder is set for pods that hold slack, which any other pod preempts.
	placeholder bool
	// nodeBound is set for the pods of DaemonSets and mirror pods.
	nodeBound bool
	// amounts are the amounts of the resources, and 1 for the resource pods.
	amounts   resources.Pod
	hostPorts []v1alpha1.HostPort
	// boundAt is the time at which the pod was bound to the node.
	boundAt resources.Arrival
}

// onePod is the amount of the resource pods of each pod.
var onePod = []resources.NamedAmount{{Name: v1.ResourcePods, Amount: resources.Amount{Request: 1}}}

// NewPod returns the part of a pod that occupies a node.
func NewPod(pod *v1.Pod) Pod {
	out := Pod{
		name: resources.Name(pod), node: unique.Make(pod.Spec.NodeName), placeholder: pod.Labels[slack.PlaceholderLabel] != "",
		amounts: resources.NewPod(pod), boundAt: resources.ArrivalOf(pod), nodeBound: resources.IsNodeBound(pod),
	}
	for _, p := range resources.HostPorts(&pod.Spec) {
		out.hostPorts = append(out.hostPorts, v1alpha1.HostPort{Port: p.HostPort, Protocol: p.Protocol})
	}
	out.amounts.Extended = append(onePod[:1:1], out.amounts.Extended...) // most pods have no others, and share onePod
	return out
}

// Pods are the pods of a cluster by node, with the sums over the pods of each node, which are kept until one of them changes.
// It is not safe for concurrent use.
type Pods map[NodeName]*nodePods

// nodePods are the pods on a node.
type nodePods struct {
	// pods are in no order. For about one hundred pods, a slice is smaller than a map and as fast.
	pods []Pod
	// sums are the sums over the pods, nil if a pod has changed since they were computed.
	sums *nodeSums
}

// nodeSums are the sums over the pods on a node.
type nodeSums struct {
	// placeholders are the sums over the placeholders, pods over all other pods, and nodeBound over the other pods that belong to the
	// node.
	placeholders, pods, nodeBound resources.Sums
	// hostPorts are the host ports that pods other than placeholders use, each once.
	hostPorts []v1alpha1.HostPort
	// lastBound is the time at which the last of the other pods was bound.
	lastBound resources.Arrival
}

// Set adds or replaces a pod.
func (p Pods) Set(pod Pod) {
	on := p[pod.node]
	if on == nil {
		on = &nodePods{}
		p[pod.node] = on
	}
	on.sums = nil
	if i := on.indexOf(pod.name); i >= 0 {
		on.pods[i] = pod
		return
	}
	on.pods = append(on.pods, pod)
}

// Delete removes a pod.
func (p Pods) Delete(pod *v1.Pod) {
	node := unique.Make(pod.Spec.NodeName)
	on := p[node]
	if on == nil {
		return
	}
	if i := on.indexOf(resources.Name(pod)); i >= 0 {
		on.pods, on.sums = slices.Delete(on.pods, i, i+1), nil
	}
	if len(on.pods) == 0 {
		delete(p, node)
	}
}

// indexOf returns the index of the pod with a name, -1 if the node has no such pod.
func (n *nodePods) indexOf(name string) int {
	return slices.IndexFunc(n.pods, func(pod Pod) bool { return pod.name == name })
}

// Sums returns the sums over the pods on a node without placeholders.
func (p Pods) Sums(node NodeName) *resources.Sums { return &p.sumsOn(node).pods }

// sumsOn returns the sums over the pods on a node.
func (p Pods) sumsOn(node NodeName) *nodeSums {
	on := p[node]
	if on == nil {
		return &nodeSums{}
	}
	if on.sums == nil {
		on.sums = &nodeSums{}
		for i := range on.pods {
			on.sums.addPod(&on.pods[i])
		}
	}
	return on.sums
}

// addPod adds a pod.
func (s *nodeSums) addPod(pod *Pod) {
	if pod.placeholder {
		s.placeholders.Add(&pod.amounts)
		return
	}
	s.pods.Add(&pod.amounts)
	if pod.nodeBound {
		s.nodeBound.Add(&pod.amounts)
	}
	s.lastBound = max(s.lastBound, pod.boundAt)
	for _, port := range pod.hostPorts {
		if !slices.Contains(s.hostPorts, port) {
			s.hostPorts = append(s.hostPorts, port)
		}
	}
}
