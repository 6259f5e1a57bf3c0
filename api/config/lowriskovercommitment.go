package config

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
)

// The defaults of LowRiskOverCommitment.
const (
	DefaultSmoothingWindowSize int64 = risk.DefaultWindow
	DefaultRiskLimitWeight           = risk.DefaultLimitWeight
)

// LowRiskOverCommitmentArgs are the arguments of LowRiskOverCommitment.
//
// +kubebuilder:object:root=true
type LowRiskOverCommitmentArgs struct {
	metav1.TypeMeta `json:",inline"`
	// SmoothingWindowSize is the number of samples that the measured standard deviation is averaged
	// over, at least 1. The default is 5.
	SmoothingWindowSize *int64 `json:"smoothingWindowSize,omitempty"`
	// RiskLimitWeight is the weight of limit risk, in [0, 1]; load risk has the rest. The default is
	// 0.5.
	RiskLimitWeight *float64 `json:"riskLimitWeight,omitempty"`
	// RiskLimitWeights overrides RiskLimitWeight for cpu or memory.
	RiskLimitWeights map[string]float64 `json:"riskLimitWeights,omitempty"`
	// WatcherAddress is the URL of a load-watcher service that load is read from. Without it and
	// without MetricProvider, nodes are scored by limits only.
	WatcherAddress string `json:"watcherAddress,omitempty"`
	// MetricProvider is a metric provider that the scheduler reads load from itself, in place of a
	// load-watcher service.
	MetricProvider metricprovider.Config `json:"metricProvider,omitzero"`
	// PollInterval is the time between two reads of the load, at least 100ms. The default is 30s.
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
	// MaxLoadAge is the age up to which load counts, at least 1s and at least PollInterval. The
	// default is 5m. Nodes without fresh load are scored by limits only.
	MaxLoadAge *metav1.Duration `json:"maxLoadAge,omitempty"`
	// CountRecentPods adds to the measured load of a node the requests of pods that were bound so
	// recently that the measurement does not include them. The default is true. A container without
	// requests counts with kube-scheduler's defaults, 100m CPU and 200Mi memory.
	CountRecentPods *bool `json:"countRecentPods,omitempty"`
}

// Default sets the defaults of empty fields.
func (a *LowRiskOverCommitmentArgs) Default() {
	setDefault(&a.SmoothingWindowSize, DefaultSmoothingWindowSize)
	setDefault(&a.RiskLimitWeight, DefaultRiskLimitWeight)
	setDefault(&a.PollInterval, metav1.Duration{Duration: metricprovider.DefaultPollInterval})
	setDefault(&a.CountRecentPods, true)
	setDefault(&a.MaxLoadAge, metav1.Duration{Duration: metricprovider.DefaultMaxAge})
}

// Validate returns all invalid fields with their allowed values. The defaults must be set.
func (a *LowRiskOverCommitmentArgs) Validate() error {
	var errs field.ErrorList
	if *a.SmoothingWindowSize < 1 {
		errs = append(errs, field.Invalid(field.NewPath("smoothingWindowSize"), *a.SmoothingWindowSize, "must be at least 1"))
	}
	errs = append(errs, validateFraction(field.NewPath("riskLimitWeight"), *a.RiskLimitWeight)...)
	path := field.NewPath("riskLimitWeights")
	for _, name := range slices.Sorted(maps.Keys(a.RiskLimitWeights)) {
		if !slices.Contains(measuredResources, name) {
			errs = append(errs, field.NotSupported(path, name, measuredResources))
		}
		errs = append(errs, validateFraction(path.Key(name), a.RiskLimitWeights[name])...)
	}
	errs = append(errs, validateLoadSource(a.WatcherAddress, a.MetricProvider, a.PollInterval.Duration, a.MaxLoadAge.Duration)...)
	return errs.ToAggregate()
}

// LimitWeight returns the weight of limit risk for a resource, in [0, 1].
func (a *LowRiskOverCommitmentArgs) LimitWeight(resource v1.ResourceName) float64 {
	if weight, ok := a.RiskLimitWeights[string(resource)]; ok {
		return weight
	}
	return *a.RiskLimitWeight
}

func validateFraction(path *field.Path, value float64) field.ErrorList {
	if !(value >= 0 && value <= 1) {
		return field.ErrorList{field.Invalid(path, value, "must be in [0, 1]")}
	}
	return nil
}
