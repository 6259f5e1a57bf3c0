// Package noderes converts the resources of Kubernetes nodes and pods to integers, and keeps their
// sums per node. It is the only place where quantities are converted: CPU to millicores, everything
// else to its base unit, all as int64 in [0, MaxInt64]. Larger quantities saturate; negative ones
// and those with an absurd exponent (facts.IsBounded) count as 0.
package noderes

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// Resource identifies a resource. Amounts of the common resources are found without comparing
// strings.
type Resource struct {
	kind kind
	name v1.ResourceName
}

type kind uint8

const (
	scalar kind = iota
	cpu
	memory
	ephemeralStorage
)

// NewResource returns the resource with a name.
func NewResource(name v1.ResourceName) Resource {
	switch name {
	case v1.ResourceCPU:
		return Resource{cpu, name}
	case v1.ResourceMemory:
		return Resource{memory, name}
	case v1.ResourceEphemeralStorage:
		return Resource{ephemeralStorage, name}
	default:
		return Resource{scalar, name}
	}
}

// The resources that a container without a limit may use without bound.
var (
	CPU              = NewResource(v1.ResourceCPU)
	Memory           = NewResource(v1.ResourceMemory)
	EphemeralStorage = NewResource(v1.ResourceEphemeralStorage)
)

// Name returns the name of the resource, as in the requests of a pod.
func (r Resource) Name() v1.ResourceName { return r.name }

// Allocatable returns the allocatable amount of a node, 0 if it lacks the resource.
func (r Resource) Allocatable(node fwk.NodeInfo) int64 {
	allocatable := node.GetAllocatable()
	amount := int64(0)
	switch r.kind {
	case cpu:
		amount = allocatable.GetMilliCPU()
	case memory:
		amount = allocatable.GetMemory()
	case ephemeralStorage:
		amount = allocatable.GetEphemeralStorage()
	case scalar:
		amount = allocatable.GetScalarResources()[r.name]
	}
	return max(amount, 0)
}

// Capacity returns the capacity of a node: at least the allocatable amount, also if the node does not
// report a capacity.
func (r Resource) Capacity(node fwk.NodeInfo) int64 {
	allocatable := r.Allocatable(node)
	quantity, ok := node.Node().Status.Capacity[r.name]
	if !ok {
		return allocatable
	}
	return max(r.Amount(quantity), allocatable)
}

// AllocatableOf is Allocatable for the object of a node.
func (r Resource) AllocatableOf(node *v1.Node) int64 {
	return r.Amount(node.Status.Allocatable[r.name])
}

// CapacityOf is Capacity for the object of a node.
func (r Resource) CapacityOf(node *v1.Node) int64 {
	return max(r.Amount(node.Status.Capacity[r.name]), r.AllocatableOf(node))
}

// Amount converts a quantity of the resource to its unit.
func (r Resource) Amount(quantity resource.Quantity) int64 {
	// Compare before the conversion: a conversion that overflows wraps around.
	largest := int64(math.MaxInt64)
	if r.kind == cpu {
		largest /= 1000
	}
	switch {
	case quantity.Sign() <= 0, !facts.IsBounded(quantity):
		return 0
	case quantity.CmpInt64(largest) > 0:
		return math.MaxInt64
	case r.kind == cpu:
		return quantity.MilliValue()
	}
	return quantity.Value()
}
