package v1alpha1

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Millionth is the unit of rates: a rate of 100,000 is 10%.
const Millionth = 1_000_000

// rateForm describes the valid rates in errors.
const rateForm = "must be a rate such as 10% or 0.1, at least 0"

// ratePattern matches valid rates, as the pattern in the CRD does.
var ratePattern = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,6})?%?$`)

// ParseRate parses a rate such as 10% or 0.1 and returns it in millionths.
func ParseRate(text string) (int64, error) {
	if !ratePattern.MatchString(text) {
		return 0, fmt.Errorf("invalid value %q: %s", text, rateForm)
	}
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid value %q: %s", text, rateForm)
	}
	if percent {
		value /= 100
	}
	return int64(math.Round(value * Millionth)), nil
}

// Validate validates a policy after Default. Each error names the field and the allowed values.
func (s *ResourceSlackSpec) Validate() error {
	var errs field.ErrorList
	path := field.NewPath("spec")
	parsed, err := ParseRate(s.MinRate)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate, rateForm))
	case s.Base == BaseAllocatable && parsed >= Millionth:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate,
			"must be less than 100% if base is Allocatable: the base includes the nodes that the slack adds"))
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
