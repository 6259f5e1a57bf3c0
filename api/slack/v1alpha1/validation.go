package v1alpha1

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Millionth is the unit of rates: 100,000 are 10 %.
const Millionth = 1_000_000

// rate is what a rate may look like; the CRD has the same pattern.
var rate = regexp.MustCompile(`^[0-9]{1,4}(\.[0-9]{1,6})?%?$`)

// ParseRate reads a rate such as 10% or 0.1, in millionths.
func ParseRate(text string) (int64, error) {
	if !rate.MatchString(text) {
		return 0, fmt.Errorf("found %q, want a rate such as 10%% or 0.1, at least 0", text)
	}
	number, percent := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return 0, fmt.Errorf("found %q, want a rate such as 10%% or 0.1", text)
	}
	if percent {
		value /= 100
	}
	return int64(math.Round(value * Millionth)), nil
}

// Validate returns what is wrong with a policy whose defaults are filled in,
// each with its field and what is allowed.
func (s *ResourceSlackSpec) Validate() error {
	var errs field.ErrorList
	path := field.NewPath("spec")
	parsed, err := ParseRate(s.MinRate)
	switch {
	case err != nil:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate, "must be a rate such as 10% or 0.1, at least 0"))
	case s.Base == BaseAllocatable && parsed >= Millionth:
		errs = append(errs, field.Invalid(path.Child("minRate"), s.MinRate, "must be under 100% where base is Allocatable: the nodes that the slack brings count themselves"))
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
	if s.Backend != BackendCapacityBuffer && s.Backend != BackendDeployment {
		errs = append(errs, field.NotSupported(path.Child("backend"), s.Backend, []Backend{BackendCapacityBuffer, BackendDeployment}))
	}
	return errs.ToAggregate()
}
