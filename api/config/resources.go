package config

import (
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// MaxWeight is the largest weight of a resource.
const MaxWeight = math.MaxInt32

// ResourceWeight is a resource with its weight.
type ResourceWeight struct {
	// Name of the resource as in the status.allocatable of a node: cpu, memory, ephemeral-storage,
	// hugepages-2Mi, nvidia.com/gpu.
	Name string `json:"name"`
	// Weight in [1, 2147483647]. The default is 1.
	Weight *int64 `json:"weight,omitempty"`
}

var (
	// measuredResources are the resources whose load is measured.
	measuredResources = []string{string(v1.ResourceCPU), string(v1.ResourceMemory)}
	// unboundedResources are the resources that a container without a limit may use without bound, so
	// that a default limit is meaningful.
	unboundedResources = append(slices.Clone(measuredResources), string(v1.ResourceEphemeralStorage))
)

// defaultResources sets the defaults of a list of resources.
func defaultResources(resources []ResourceWeight, cpuWeight int64) []ResourceWeight {
	if len(resources) == 0 {
		one := int64(1)
		return []ResourceWeight{{Name: "cpu", Weight: &cpuWeight}, {Name: "memory", Weight: &one}}
	}
	for i := range resources {
		setDefault(&resources[i].Weight, 1)
	}
	return resources
}

func validateResources(resources []ResourceWeight) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	for i, r := range resources {
		path := field.NewPath("resources").Index(i)
		if seen[r.Name] {
			errs = append(errs, field.Duplicate(path.Child("name"), r.Name))
		}
		seen[r.Name] = true
		errs = append(errs, validateResourceName(path.Child("name"), r.Name)...)
		if *r.Weight < 1 || *r.Weight > MaxWeight {
			errs = append(errs, field.Invalid(path.Child("weight"), *r.Weight, fmt.Sprintf("must be in [1, %d]", MaxWeight)))
		}
	}
	return errs
}

// validateResourceName accepts the resources that a node can have: cpu, memory, ephemeral-storage, huge
// pages, and extended resources, whose names have a domain.
func validateResourceName(path *field.Path, name string) field.ErrorList {
	isHugePages := strings.HasPrefix(name, v1.ResourceHugePagesPrefix) && len(name) > len(v1.ResourceHugePagesPrefix)
	if isHugePages || slices.Contains(unboundedResources, name) {
		return nil
	}
	const allowed = "must be cpu, memory, ephemeral-storage, hugepages-SIZE or an extended resource such as nvidia.com/gpu"
	domain, _, hasDomain := strings.Cut(name, "/")
	if !hasDomain || domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io") || len(validation.IsQualifiedName(name)) > 0 {
		return field.ErrorList{field.Invalid(path, name, allowed)}
	}
	return nil
}
