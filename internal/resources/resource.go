// Package resources is the vocabulary of amounts of nodes and pods: it converts the quantities of Kubernetes to integers, and
// answers questions about objects that several packages ask. It is the only place where quantities are converted: CPU to
// millicores, everything else to its base unit, all as int64 in [0, MaxInt64]. Larger quantities saturate, negative ones count
// as 0.
//
// Sums and products do not overflow. A result outside the range of
// int64 becomes the nearest end of the range. Intermediate products have 128 bits.
package resources

import (
	"cmp"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Index identifies the common resources.
type Index uint8

const (
	// CPU is in millicores.
	CPU Index = iota
	// Memory is in bytes.
	Memory
	// EphemeralStorage is in bytes.
	EphemeralStorage
	// Pods is the number of pods.
	Pods
	// Extended is any other resource, in its own unit.
	Extended
)

// Resource identifies a resource. Amounts of the common resources are found without comparing strings.
type Resource struct {
	index Index
	name  v1.ResourceName
}

// NewResource returns the resource with a name.
func NewResource(name v1.ResourceName) Resource {
	switch name {
	case v1.ResourceCPU:
		return Resource{CPU, name}
	case v1.ResourceMemory:
		return Resource{Memory, name}
	case v1.ResourceEphemeralStorage:
		return Resource{EphemeralStorage, name}
	case v1.ResourcePods:
		return Resource{Pods, name}
	default:
		return Resource{Extended, name}
	}
}

// The resources that a container without a limit may use without bound.
var (
	CPUResource              = NewResource(v1.ResourceCPU)
	MemoryResource           = NewResource(v1.ResourceMemory)
	EphemeralStorageResource = NewResource(v1.ResourceEphemeralStorage)
)

var commonResources = [...]Resource{CPUResource, MemoryResource, EphemeralStorageResource, NewResource(v1.ResourcePods)}

// Index returns the index of the resource.
func (r Resource) Index() Index { return r.index }

// Name returns the name of the resource, as in the requests of a pod.
func (r Resource) Name() v1.ResourceName { return r.name }

// Compare orders resources: CPU, memory and the other common ones, then the extended ones by name.
func (r Resource) Compare(other Resource) int {
	return cmp.Or(cmp.Compare(r.index, other.index), cmp.Compare(r.name, other.name))
}

// AllocatableOf returns the allocatable amount of a node, 0 if it lacks the resource.
func (r Resource) AllocatableOf(node *v1.Node) int64 {
	return r.Amount(node.Status.Allocatable[r.name])
}

// CapacityOf returns the capacity of a node, at least its allocatable amount.
func (r Resource) CapacityOf(node *v1.Node) int64 {
	return max(r.Amount(node.Status.Capacity[r.name]), r.AllocatableOf(node))
}

// Amount converts a quantity of the resource to its unit.
func (r Resource) Amount(quantity resource.Quantity) int64 {
	// Compare before the conversion: a conversion that overflows wraps around.
	largest := int64(math.MaxInt64)
	if r.index == CPU {
		largest /= 1000
	}
	switch {
	case quantity.Sign() <= 0:
		return 0
	case quantity.CmpInt64(largest) > 0:
		return math.MaxInt64
	case r.index == CPU:
		return quantity.MilliValue()
	}
	return quantity.Value()
}
