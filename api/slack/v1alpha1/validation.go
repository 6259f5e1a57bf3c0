package v1alpha1

import (
	"slices"

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
	if s.MaxPlaceholders != nil && *s.MaxPlaceholders < 1 {
		errs = append(errs, field.Invalid(path.Child("maxPlaceholders"), *s.MaxPlaceholders, "must be at least 1"))
	}
	if !slices.Contains(Backends, s.Backend) {
		errs = append(errs, field.NotSupported(path.Child("backend"), s.Backend, Backends))
	}
	return errs.ToAggregate()
}
