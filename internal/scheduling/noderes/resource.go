// Package noderes turns Kubernetes' nodes and pods into plain amounts, and
// keeps the sums of them per node. It is the only place where quantities are
// converted: CPU into millicores, everything else into its base unit, all as
// int64 in [0, MaxInt64]. Quantities beyond that saturate, negative ones count
// as 0.
package noderes

import (
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"
)

// Resource names a resource so that its amounts are found without comparing
// strings where they are looked up for every node.
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

// NewResource returns the resource of that name.
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

// The resources that a container without a limit may use any amount of.
var (
	CPU              = NewResource(v1.ResourceCPU)
	Memory           = NewResource(v1.ResourceMemory)
	EphemeralStorage = NewResource(v1.ResourceEphemeralStorage)
)

// Name returns the name of the resource, as in a pod's requests.
func (r Resource) Name() v1.ResourceName { return r.name }

// Allocatable returns how much of the resource pods may have on the node, 0
// if the node has none.
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

// Capacity returns how much of the resource the whole machine has, or what is
// allocatable if the node does not say or says less.
func (r Resource) Capacity(node fwk.NodeInfo) int64 {
	allocatable := r.Allocatable(node)
	quantity, ok := node.Node().Status.Capacity[r.name]
	if !ok {
		return allocatable
	}
	return max(r.Amount(quantity), allocatable)
}

// Amount converts a quantity of the resource into its unit.
func (r Resource) Amount(quantity resource.Quantity) int64 {
	// Compared before it is converted: a conversion that overflows wraps.
	most := int64(math.MaxInt64)
	if r.kind == cpu {
		most /= 1000
	}
	switch {
	case quantity.Sign() <= 0:
		return 0
	case quantity.CmpInt64(most) > 0:
		return math.MaxInt64
	case r.kind == cpu:
		return quantity.MilliValue()
	}
	return quantity.Value()
}
