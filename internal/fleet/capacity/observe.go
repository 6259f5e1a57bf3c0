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
	"slices"
	"unique"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// NodeName is the name of a node. The node and its pods share the memory of the name.
type NodeName = unique.Handle[string]

// Node is the part of a node that a summary uses.
type Node struct {
	Name                  NodeName
	Labels                map[string]string
	Allocatable, Capacity v1.ResourceList

	// taints are the taints that repel pods, sorted.
	taints []v1.Taint
	price  string
	// usable is not set if the node takes no pods: it is not ready, cordoned, or being deleted.
	usable bool
}

// NewNode returns the part of a node.
func NewNode(node *v1.Node) Node {
	ready := resources.ReadyStatus(node)
	out := Node{
		Name: unique.Make(node.Name), Labels: node.Labels, Allocatable: node.Status.Allocatable, Capacity: node.Status.Capacity,
		price:  node.Annotations[v1alpha1.AnnotationPrice],
		usable: resources.IsSchedulable(node) && (ready == "" || ready == v1.ConditionTrue),
	}
	for _, t := range node.Spec.Taints {
		if t.Key == autoscalerTaint {
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

// AcceptsPods reports whether the node accepts a pod without tolerations.
func (n *Node) AcceptsPods() bool { return n.usable && len(n.taints) == 0 }

// autoscalerTaint is the taint of nodes that Cluster Autoscaler removes.
const autoscalerTaint = "ToBeDeletedByClusterAutoscaler"

// Pod is the part of a pod that a summary uses.
type Pod struct {
	// Node is the name of the node, the zero value if the pod occupies none.
	Node NodeName
	// Placeholder is set for pods that hold slack, which any other pod preempts.
	Placeholder bool
	// nodeBound is set for the pods of DaemonSets and mirror pods.
	nodeBound bool
	// Amounts are the amounts of the resources, and 1 for the resource pods.
	Amounts resources.Pod

	// hostPorts is nil for no ports.
	hostPorts *[]v1alpha1.HostPort
	// boundAt is the time at which the pod was bound to the node.
	boundAt resources.Arrival
}

// onePod is the amount of the resource pods of each pod.
var onePod = []resources.NamedAmount{{Name: v1.ResourcePods, Amount: resources.Amount{Request: 1}}}

// NewPod returns the part of a pod.
func NewPod(pod *v1.Pod) Pod {
	if !resources.OccupiesNode(pod) {
		return Pod{}
	}
	out := Pod{
		Node: unique.Make(pod.Spec.NodeName), Placeholder: pod.Labels[slack.PlaceholderLabel] != "", Amounts: resources.NewPod(pod),
		boundAt: resources.ArrivalOf(pod), nodeBound: resources.IsNodeBound(pod),
	}
	if ports := hostPortsOf(&pod.Spec); len(ports) > 0 {
		out.hostPorts = &ports
	}
	out.Amounts.Extended = append(onePod[:1:1], out.Amounts.Extended...) // most pods have no others, and share onePod
	return out
}

// hostPortsOf returns the host ports of the containers of a pod, each once. Containers on the network of the host use their ports.
func hostPortsOf(spec *v1.PodSpec) (out []v1alpha1.HostPort) {
	for i := range spec.Containers {
		for _, p := range spec.Containers[i].Ports {
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
