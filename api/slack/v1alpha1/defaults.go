package v1alpha1

const (
	// DefaultGranularity is the default of spec.granularity, as in the CRD.
	DefaultGranularity = 5
	// DefaultRate is the rate of command "plimsoll slack plan" without a policy.
	DefaultRate = "10%"
)

// Default sets the defaults of missing fields, as the API server does.
func (s *ResourceSlackSpec) Default() {
	if s.Base == "" {
		s.Base = BaseRequested
	}
	if s.Granularity == nil {
		s.Granularity = new(int32(DefaultGranularity))
	}
	if s.CoverBiggestPod == nil {
		s.CoverBiggestPod = new(true)
	}
	if s.Backend == "" {
		s.Backend = BackendCapacityBuffer
	}
}
