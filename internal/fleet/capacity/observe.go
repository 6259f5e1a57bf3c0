// Package capacity summarizes the free capacity of the nodes of a cluster, and computes from summaries how many replicas of pod
// templates fit a cluster. It does no I/O.
//
// # Summaries
//
// Summarize makes a ClusterCapacity from the nodes and pods of a cluster: at most MaxGroups groups of nodes, each with the
// lowest free amount of its nodes. A summary never has more than the cluster, so that no answer is optimistic.
//
// # Fit
//
// A Template is a pod template with its constraints, and a Summary has the amounts of a ClusterCapacity in arrays. Equal labels
// and taints of nodes are the same value in all summaries of a fleet, so that a template is matched with each of them once. Fit
// returns the replicas of a workload that fit a summary.
package capacity

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

// label is a label of nodes. Nodes with equal labels share their memory.
type label = unique.Handle[labelText]

// labelText is the text of a label.
type labelText struct{ key, value string }

// Node is the part of a node that a summary uses.
type Node struct {
	Name                  NodeName
	Allocatable, Capacity v1.ResourceList
	// Cordoned is set if pods cannot be scheduled onto the node.
	Cordoned bool

	// labels are sorted by key.
	labels []label
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
		Cordoned: node.Spec.Unschedulable, labels: make([]label, 0, len(node.Labels)),
		price:  node.Annotations[v1alpha1.AnnotationPrice],
		usable: resources.IsSchedulable(node) && (ready == "" || ready == v1.ConditionTrue),
	}
	for _, key := range slices.Sorted(maps.Keys(node.Labels)) {
		out.labels = append(out.labels, unique.Make(labelText{key, node.Labels[key]}))
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
	if l := n.label(key); l != (label{}) {
		return l.Value().value
	}
	return ""
}

// label returns the label with a key, the zero value if the node does not have it.
func (n *Node) label(key string) (out label) {
	i, found := slices.BinarySearchFunc(n.labels, key, func(l label, key string) int { return cmp.Compare(l.Value().key, key) })
	if found {
		out = n.labels[i]
	}
	return out
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
		hostPorts: hostPortsOf(&pod.Spec),
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
	if i := on.index(pod.name); i >= 0 {
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
	if i := on.index(resources.Name(pod)); i >= 0 {
		on.pods, on.sums = slices.Delete(on.pods, i, i+1), nil
	}
	if len(on.pods) == 0 {
		delete(p, node)
	}
}

// index returns the index of the pod with a name, -1 if the node has no such pod.
func (n *nodePods) index(name string) int {
	return slices.IndexFunc(n.pods, func(pod Pod) bool { return pod.name == name })
}

// Sums returns the sums over the pods on a node without placeholders.
func (p Pods) Sums(node NodeName) *resources.Sums { return &p.sums(node).pods }

// sums returns the sums over the pods on a node.
func (p Pods) sums(node NodeName) *nodeSums {
	on := p[node]
	if on == nil {
		return &nodeSums{}
	}
	if on.sums == nil {
		on.sums = &nodeSums{}
		for i := range on.pods {
			on.sums.add(&on.pods[i])
		}
	}
	return on.sums
}

// add adds a pod.
func (s *nodeSums) add(pod *Pod) {
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

// hostPortsOf returns the host ports of the containers and sidecars of a pod, each once. Containers on the network of the host use their
// ports.
func hostPortsOf(spec *v1.PodSpec) (out []v1alpha1.HostPort) {
	for _, container := range resources.RunningContainers(spec) {
		for _, p := range container.Ports {
			if spec.HostNetwork && p.HostPort == 0 {
				p.HostPort = p.ContainerPort
			}
			if p.HostPort > 0 {
				out = append(out, v1alpha1.HostPort{Port: p.HostPort, Protocol: cmp.Or(p.Protocol, v1.ProtocolTCP)})
			}
		}
	}
	slices.SortFunc(out, comparePorts)
	return slices.Compact(out)
}

// comparePorts orders host ports.
func comparePorts(a, b v1alpha1.HostPort) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol))
}
