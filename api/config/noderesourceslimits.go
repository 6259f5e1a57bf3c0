package config

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// NodeResourcesLimitsArgs are the arguments of NodeResourcesLimits.
//
// +kubebuilder:object:root=true
type NodeResourcesLimitsArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Resources to score by. The default is cpu and memory, both with weight 1.
	Resources []ResourceWeight `json:"resources,omitempty"`
	// DefaultLimits are the limits that pods without a limit count with, by resource: cpu, memory or
	// ephemeral-storage. For other resources such a pod counts with the whole node.
	DefaultLimits map[string]resource.Quantity `json:"defaultLimits,omitempty"`
}

// Default sets the defaults of empty fields.
func (a *NodeResourcesLimitsArgs) Default() {
	a.Resources = defaultResources(a.Resources, 1)
}

// Validate returns all invalid fields with their allowed values. The defaults must be set.
func (a *NodeResourcesLimitsArgs) Validate() error {
	errs := validateResources(a.Resources)
	path := field.NewPath("defaultLimits")
	for _, name := range slices.Sorted(maps.Keys(a.DefaultLimits)) {
		quantity := a.DefaultLimits[name]
		if !slices.Contains(unboundedResources, name) {
			errs = append(errs, field.NotSupported(path, name, unboundedResources))
		}
		if quantity.Sign() <= 0 {
			errs = append(errs, field.Invalid(path.Key(name), quantity.String(), "must be greater than 0"))
		}
	}
	return errs.ToAggregate()
}
