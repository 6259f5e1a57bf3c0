package v1alpha1

const (
	// DefaultGranularity is the default of spec.granularity, as in the CRD.
	DefaultGranularity = 5
	// DefaultMaxPlaceholders, DefaultMaxPerWorkload and DefaultMaxPerNamespace are the defaults of
	// spec.maxPlaceholders and of the fields of spec.mirrors, as in the CRD.
	DefaultMaxPlaceholders, DefaultMaxPerWorkload, DefaultMaxPerNamespace = 10_000, 100, 200
	// DefaultBootSeconds is the default of spec.recommend.bootSeconds, as in the CRD.
	DefaultBootSeconds = 120
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
	if s.Spread != nil && s.Spread.MinPerDomain == nil {
		s.Spread.MinPerDomain = new(int32(1))
	}
	if s.MaxPlaceholders == nil {
		s.MaxPlaceholders = new(int32(DefaultMaxPlaceholders))
	}
	if s.Mirrors.MaxPerWorkload == nil {
		s.Mirrors.MaxPerWorkload = new(int32(DefaultMaxPerWorkload))
	}
	if s.Mirrors.MaxPerNamespace == nil {
		s.Mirrors.MaxPerNamespace = new(int32(DefaultMaxPerNamespace))
	}
	if s.Recommend != nil && s.Recommend.BootSeconds == nil {
		s.Recommend.BootSeconds = new(int32(DefaultBootSeconds))
	}
	if s.Backend == "" {
		s.Backend = BackendCapacityBuffer
	}
}
