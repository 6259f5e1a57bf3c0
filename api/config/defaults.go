package config

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
)

// The defaults of the arguments; see the fields.
const (
	DefaultAllocatableCPUWeight int64 = 1 << 20
	DefaultSmoothingWindowSize  int64 = risk.DefaultWindow
	DefaultRiskLimitWeight            = risk.DefaultLimitWeight
	DefaultPollInterval               = 30 * time.Second
	DefaultMaxLoadAge                 = 5 * time.Minute
)

// Default fills in what is left out.
func (a *NodeResourcesAllocatableArgs) Default() {
	if a.Mode == "" {
		a.Mode = Least
	}
	a.Resources = defaultResources(a.Resources, DefaultAllocatableCPUWeight)
}

// Default fills in what is left out.
func (a *NodeResourcesLimitsArgs) Default() {
	a.Resources = defaultResources(a.Resources, 1)
}

// Default fills in what is left out.
func (a *LowRiskOverCommitmentArgs) Default() {
	setDefault(&a.SmoothingWindowSize, DefaultSmoothingWindowSize)
	setDefault(&a.RiskLimitWeight, DefaultRiskLimitWeight)
	setDefault(&a.PollInterval, metav1.Duration{Duration: DefaultPollInterval})
	setDefault(&a.CountRecentPods, true)
	setDefault(&a.MaxLoadAge, metav1.Duration{Duration: DefaultMaxLoadAge})
}

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

func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
