package v1alpha1

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate validates a policy after Default. Each error names the field and the allowed values.
func (s *ResourceSlackSpec) Validate() error {
	var errs field.ErrorList
	path := field.NewPath("spec")
	parsed, err := ParseRate(s.MinRate)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate, "must be "+RateForm))
	case s.Base == BaseAllocatable && parsed >= Millionth:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate,
			"must be less than 100% if base is Allocatable: the base includes the nodes that the slack adds"))
	case parsed > HighRate && !s.AllowHighRate:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate, "must be at most 200% unless allowHighRate is true"))
	}
	if s.Base != BaseRequested && s.Base != BaseAllocatable {
		errs = append(errs, field.NotSupported(path.Child("base"), s.Base, []Base{BaseRequested, BaseAllocatable}))
	}
	if *s.Granularity < 1 || *s.Granularity > 100 {
		errs = append(errs, field.Invalid(path.Child("granularity"), *s.Granularity, "must be in [1, 100]"))
	}
	errs = append(errs, validateRange(path.Child("maxPlaceholders"), s.MaxPlaceholders, 100_000)...)
	mirrors := path.Child("mirrors")
	errs = append(errs, validateRange(mirrors.Child("maxPerWorkload"), s.Mirrors.MaxPerWorkload, 10_000)...)
	errs = append(errs, validateRange(mirrors.Child("maxPerNamespace"), s.Mirrors.MaxPerNamespace, 100_000)...)
	if _, err := metav1.LabelSelectorAsSelector(s.Mirrors.NamespaceSelector); err != nil {
		errs = append(errs, field.Invalid(mirrors.Child("namespaceSelector"), s.Mirrors.NamespaceSelector, err.Error()))
	}
	if !slices.Contains(Backends, s.Backend) {
		errs = append(errs, field.NotSupported(path.Child("backend"), s.Backend, Backends))
	}
	return errs.ToAggregate()
}

// validateRange returns an error if a number is not in [1, maximum].
func validateRange(path *field.Path, number *int32, maximum int32) field.ErrorList {
	if *number >= 1 && *number <= maximum {
		return nil
	}
	return field.ErrorList{field.Invalid(path, *number, fmt.Sprintf("must be in [1, %d]", maximum))}
}
