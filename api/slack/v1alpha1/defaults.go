package v1alpha1

import "cmp"

// DefaultRate is the rate of command "plimsoll slack plan" without a policy.
const DefaultRate = "10%"

// Default sets the defaults of missing fields, as the API server does by the CRD.
func (s *ResourceSlackSpec) Default() {
	s.Base = cmp.Or(s.Base, BaseRequested)
	s.Backend = cmp.Or(s.Backend, BackendCapacityBuffer)
	setDefault(&s.Granularity, 5)
	setDefault(&s.CoverBiggestPod, true)
	setDefault(&s.MaxPlaceholders, 10_000)
	setDefault(&s.Mirrors.MaxPerWorkload, 100)
	setDefault(&s.Mirrors.MaxPerNamespace, 200)
	if s.Spread != nil {
		setDefault(&s.Spread.MinPerDomain, 1)
	}
}

// setDefault sets a missing field.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
