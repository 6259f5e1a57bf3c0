package noderes

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Allocatable returns the allocatable amount of a node, 0 if it lacks the resource.
func Allocatable(r resources.Resource, node fwk.NodeInfo) int64 {
	allocatable := node.GetAllocatable()
	amount := int64(0)
	switch r.Index() {
	case resources.CPU:
		amount = allocatable.GetMilliCPU()
	case resources.Memory:
		amount = allocatable.GetMemory()
	case resources.EphemeralStorage:
		amount = allocatable.GetEphemeralStorage()
	case resources.Pods:
		amount = int64(allocatable.GetAllowedPodNumber())
	case resources.Extended, resources.NumIndexes:
		amount = allocatable.GetScalarResources()[r.Name()]
	}
	return max(amount, 0)
}

// Capacity returns the capacity of a node: at least the allocatable amount, also if the node does not
// report a capacity.
func Capacity(r resources.Resource, node fwk.NodeInfo) int64 {
	allocatable := Allocatable(r, node)
	quantity, ok := node.Node().Status.Capacity[r.Name()]
	if !ok {
		return allocatable
	}
	return max(r.Amount(quantity), allocatable)
}
