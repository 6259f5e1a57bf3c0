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

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// vector has an amount of each common resource, and the amounts of extended resources by name, nil if there are none. Amounts
// of CPU are in millicores.
type vector struct {
	resources.Amounts

	extended map[v1.ResourceName]int64
}

// vectorOf converts a list. Huge pages and devices are extended resources.
func vectorOf(list v1.ResourceList) (out vector) {
	for name, quantity := range list {
		r := resources.NewResource(name)
		if amount := r.Amount(quantity); r.Index() != resources.Extended {
			out.Amounts[r.Index()] = amount
		} else if amount > 0 {
			if out.extended == nil {
				out.extended = map[v1.ResourceName]int64{}
			}
			out.extended[name] = amount
		}
	}
	return out
}

// get returns the amount of a resource.
func (v *vector) get(r resources.Resource) int64 {
	if r.Index() == resources.Extended {
		return v.extended[r.Name()]
	}
	return v.Amounts[r.Index()]
}

// Node is the part of a node that a summary uses.
type Node struct {
	Name   string
	labels map[string]string
	taints []v1.Taint
	price  string
	// usable is not set if the node takes no pods: it is not ready, cordoned, or being deleted.
	usable                bool
	allocatable, capacity vector
}

// NewNode returns the part of a node.
func NewNode(node *v1.Node) Node {
	ready := resources.ReadyStatus(node)
	out := Node{
		Name: node.Name, labels: node.Labels, price: node.Annotations[v1alpha1.AnnotationPrice],
		usable:      resources.IsSchedulable(node) && (ready == "" || ready == v1.ConditionTrue),
		allocatable: vectorOf(node.Status.Allocatable), capacity: vectorOf(node.Status.Capacity),
	}
	for _, t := range node.Spec.Taints {
		if t.Key == autoscalerTaint {
			out.usable = false
		}
		if t.Effect != v1.TaintEffectPreferNoSchedule {
			out.taints = append(out.taints, v1.Taint{Key: t.Key, Value: t.Value, Effect: t.Effect})
		}
	}
	out.taints = sortedTaints(out.taints)
	return out
}

// Label returns the value of a label of the node, "" if it does not have it.
func (n *Node) Label(key string) string { return n.labels[key] }

// autoscalerTaint is the taint of nodes that Cluster Autoscaler removes.
const autoscalerTaint = "ToBeDeletedByClusterAutoscaler"

// sortedTaints sorts taints and removes duplicates.
func sortedTaints(taints []v1.Taint) []v1.Taint {
	slices.SortFunc(taints, func(a, b v1.Taint) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	return slices.Compact(taints)
}

// Pod is the part of a pod that a summary uses.
type Pod struct {
	// Node is the name of the node, empty if the pod occupies none.
	Node      string
	amounts   vector
	hostPorts []v1alpha1.HostPort
	workload  resources.WorkloadKey
	// boundAt is the Unix time in seconds at which the pod was bound to the node.
	boundAt int64
	// nodeBound is set for the pods of DaemonSets and mirror pods, placeholder for pods that hold slack.
	nodeBound, placeholder bool
}

// NewPod returns the part of a pod.
func NewPod(pod *v1.Pod) Pod {
	if !resources.OccupiesNode(pod) {
		return Pod{}
	}
	out := Pod{
		Node: pod.Spec.NodeName, amounts: vectorOf(resources.Requests(pod)), hostPorts: hostPortsOf(&pod.Spec),
		workload: resources.WorkloadOf(pod).Key(), boundAt: pod.CreationTimestamp.Unix(),
		nodeBound: resources.IsNodeBound(pod), placeholder: pod.Labels[slack.PlaceholderLabel] != "",
	}
	out.amounts.Amounts[resources.Pods] = 1
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			out.boundAt = c.LastTransitionTime.Unix()
		}
	}
	return out
}

// Workload returns the namespace and the name of the workload of the pod.
func (p *Pod) Workload() types.NamespacedName {
	w := p.workload.Value()
	return types.NamespacedName{Namespace: w.Namespace, Name: w.Name}
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
