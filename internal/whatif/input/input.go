// Package input converts traces, generated clusters and manifests to the nodes and
// pods that a what-if simulates.
package input

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/trace"
)

// epoch is the instant at which every run starts.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// Time returns the instant of a second of a run.
func Time(second int64) time.Time { return epoch.Add(time.Duration(second) * time.Second) }

// Second returns the second of a run at an instant.
func Second(instant time.Time) int64 { return int64(instant.Sub(epoch) / time.Second) }

// GPU is the resource name for thousandths of GPUs, summed over the devices of a
// node, as Kubernetes has no name for parts of a device. It is in Kubernetes' own
// domain because the scheduler validates names of other domains at every node, which
// takes a quarter of a run.
const GPU v1.ResourceName = "kubernetes.io/gpu-thousandths"

// GPUModelLabel is the node label with the model of the node's GPUs.
const GPUModelLabel = "plimsoll.dev/gpu-model"

// MaxPodsPerNode is the pod capacity of generated nodes, the kubelet's default.
const MaxPodsPerNode = 110

// Cluster is the input of a run.
type Cluster struct {
	// Nodes in the order in which they are added to the scheduler.
	Nodes []Node
	// Pods with a node run from the start. The others are pending from their arrival.
	Pods []Pod
	// References are the objects that pods refer to: claims, volumes, classes,
	// namespaces, and the ReplicaSets and StatefulSets that own them.
	References []runtime.Object
	// Workloads own pods; some have slack of their own.
	Workloads []runtime.Object
	// Assumptions lists everything that was assumed or generated, one sentence each.
	Assumptions []string
	// End is the second at which the run ends, of a recording. If it is 0, the run ends a while after the last arrival.
	End int64
}

// Node is a node of the input.
type Node struct {
	Object *v1.Node
	// Boot is the second at which the node is ready, 0 for a node that exists from the
	// start.
	Boot int64
	// Gone is the second at which the node is removed, 0 if it is not. Its pods are scheduled again.
	Gone int64
}

// Usage is the recorded usage of a pod. It is used by one goroutine.
type Usage interface {
	// At returns what the pod uses, in millicores and bytes, a number of seconds after it was placed on its node. The
	// age is negative before the run.
	At(age int64) (cpu, memory float64)
}

// Pod is a pod of the input.
type Pod struct {
	Object *v1.Pod
	// Group is the same for pods of one workload.
	Group uint64
	// Resources has the requests, limits and class; the demand is set at every step.
	Resources result.Pod
	// BaseCPU and BaseMemory, in millicores and bytes, are the amounts of which usage
	// is a multiple.
	BaseCPU, BaseMemory float64
	// Shape is the same for pods with equal requests whose scheduling depends only on
	// the labels and free resources of nodes: if one of them fits on no node, none
	// does. It is 0 for all other pods.
	Shape int
	// Requests of the pod.
	Requests trace.Amounts
	// Arrival is the second at which the pod is created; Duration is how long it runs,
	// trace.Never if it does not end.
	Arrival, Duration int64
	// Usage is the recorded usage, nil if it is generated.
	Usage Usage
	// Recorded states what happened to the pod in a recording, nil for other inputs.
	Recorded *Recorded
}

// Recorded is what happened to a pod.
type Recorded struct {
	// Node is the node on which the pod ran, empty if it was never scheduled.
	Node string
	// Fixed is set if the pod is placed on Node when it arrives, without the scheduler. A fixed pod without a node
	// waits until it is deleted.
	Fixed bool
	// Waited is how many seconds the pod waited before its arrival.
	Waited int64
	// Deleted is the second at which a pod that was never scheduled was deleted, 0 if it was not.
	Deleted int64
}

// Amounts returns the CPU, memory and GPU of a resource list.
func Amounts(list v1.ResourceList) trace.Amounts {
	return trace.Amounts{
		CPU: Amount(list, v1.ResourceCPU), Memory: Amount(list, v1.ResourceMemory), GPU: Amount(list, GPU),
	}
}

// Amount returns the amount of one resource of a list: CPU in millicores, all others
// in their unit.
func Amount(list v1.ResourceList, name v1.ResourceName) int64 {
	return resources.NewResource(name).Amount(list[name])
}

// Bind returns a copy of a pod that is bound to a node.
func Bind(pod *v1.Pod, node string) *v1.Pod {
	bound := *pod
	bound.Spec.NodeName = node
	return &bound
}

// Unbind returns a pod without its node: the pod itself if it has none.
func Unbind(pod *v1.Pod) *v1.Pod {
	if pod.Spec.NodeName == "" {
		return pod
	}
	unbound := *pod
	unbound.Spec.NodeName = ""
	isScheduled := func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled }
	unbound.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), isScheduled)
	return &unbound
}
