package v1alpha1

// The defaults of a policy; the CRD has the same.
const (
	DefaultGranularity = 5
	DefaultRate        = "10%"
)

// Default fills in what is left out, as the API server does.
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
