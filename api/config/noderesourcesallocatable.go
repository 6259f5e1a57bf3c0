package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Mode defines which nodes NodeResourcesAllocatable prefers.
type Mode string

const (
	// Least prefers the nodes with the least allocatable resources, so that large nodes stay free for
	// large pods.
	Least Mode = "Least"
	// Most prefers the nodes with the most allocatable resources, so that small nodes stay empty and
	// can be removed.
	Most Mode = "Most"
)

// DefaultAllocatableCPUWeight is the default weight of CPU in NodeResourcesAllocatable. With weight 1
// for memory, one millicore counts as much as one mebibyte.
const DefaultAllocatableCPUWeight int64 = 1 << 20

// NodeResourcesAllocatableArgs are the arguments of NodeResourcesAllocatable.
//
// +kubebuilder:object:root=true
type NodeResourcesAllocatableArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Mode is Least (the default) or Most.
	Mode Mode `json:"mode,omitempty"`
	// Resources to score by. The default is cpu with weight 1048576 and memory with weight 1: one
	// millicore counts as much as one mebibyte.
	Resources []ResourceWeight `json:"resources,omitempty"`
}

// Default sets the defaults of empty fields.
func (a *NodeResourcesAllocatableArgs) Default() {
	if a.Mode == "" {
		a.Mode = Least
	}
	a.Resources = defaultResources(a.Resources, DefaultAllocatableCPUWeight)
}

// Validate returns all invalid fields with their allowed values. The defaults must be set.
func (a *NodeResourcesAllocatableArgs) Validate() error {
	errs := validateResources(a.Resources)
	if a.Mode != Least && a.Mode != Most {
		errs = append(errs, field.NotSupported(field.NewPath("mode"), a.Mode, []Mode{Least, Most}))
	}
	return errs.ToAggregate()
}
