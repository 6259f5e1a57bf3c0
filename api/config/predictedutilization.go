package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
)

// The defaults of PredictedUtilization.
const (
	// DefaultDeviations is the number of deviations of a peak.
	DefaultDeviations = 0.5
	// DefaultHistoryWeight is the weight of the usage of a workload's own pods.
	DefaultHistoryWeight = 1.0
	// DefaultTermWeight is the weight of the predicted utilization.
	DefaultTermWeight = 5
)

// The modes of PredictedUtilization.
const (
	// ModeSpread prefers the node with the lowest predicted utilization.
	ModeSpread = "Spread"
	// ModePack prefers the node that comes nearest to the target without exceeding it, for clusters whose nodes come and go.
	ModePack = "Pack"
	// DefaultTarget is the target of ModePack.
	DefaultTarget = 0.75
)

// maxDeviations is the largest accepted number of deviations.
const maxDeviations = 10

// maxTermWeight is the largest accepted weight of a term.
const maxTermWeight = 100

// PredictedUtilizationArgs are the arguments of PredictedUtilization.
//
// +kubebuilder:object:root=true
type PredictedUtilizationArgs struct {
	metav1.TypeMeta `json:",inline"`
	// Mode is Spread (default), which prefers the node with the lowest predicted utilization, or Pack, which prefers the node whose
	// utilization comes nearest to Target without exceeding it, and spreads above.
	Mode string `json:"mode,omitempty"`
	// Target is the predicted utilization up to which Pack fills nodes, as a fraction of allocatable, in (0, 1). The default is 0.75.
	Target *float64 `json:"target,omitempty"`
	// Deviations is how many standard deviations the predicted peak of a node is above its predicted
	// mean, from 0 to 10.
	Deviations *float64 `json:"deviations,omitempty"`
	// HistoryWeight is how much the measured usage of a workload's own pods counts in relation to that
	// of all pods, in [0, 1]. With 0 all pods are expected to use the same multiple of their requests. The
	// default is 1.
	HistoryWeight *float64 `json:"historyWeight,omitempty"`
	// TermWeights are the weights of the terms of the score.
	TermWeights TermWeights `json:"termWeights,omitzero"`
	// WatcherAddress is the URL of a load-watcher service that the load of nodes is read from. Without it
	// and without MetricProvider, load is predicted from requests.
	WatcherAddress string `json:"watcherAddress,omitempty"`
	// MetricProvider is a metric provider that the scheduler reads the load of nodes from itself, in place
	// of a load-watcher service.
	MetricProvider metricprovider.Config `json:"metricProvider,omitzero"`
	// PodUsage is a metric provider that the usage of every pod is read from. Without it, the
	// usage of pods is estimated from the load of nodes.
	PodUsage metricprovider.Config `json:"podUsage,omitzero"`
	// HistoryConfigMap is the namespace and the name, as NAMESPACE/NAME, of an existing ConfigMap that the history of the
	// usage of workloads is saved in, so that it survives a restart. Without it the history is not saved; with PodUsage of
	// type Prometheus it is rebuilt from past metrics.
	HistoryConfigMap string `json:"historyConfigMap,omitempty"`
	// PollInterval is the time between two reads, at least 100ms. The default is 30s.
	PollInterval *metav1.Duration `json:"pollInterval,omitempty"`
	// MaxLoadAge is the age up to which a reading counts, at least 1s and at least PollInterval. The default is
	// 5m. What has been learned from earlier readings remains.
	MaxLoadAge *metav1.Duration `json:"maxLoadAge,omitempty"`
}

// TermWeights are the weights of the terms of a score, from 0 to 100 and not all 0. A term with weight 0 is not computed.
type TermWeights struct {
	// Utilization is the weight of the predicted utilization. The default is 5.
	Utilization *int64 `json:"utilization,omitempty"`
	// LeastAllocated and BalancedAllocation are the weights of the scores of NodeResourcesFit, with its default arguments, and of
	// NodeResourcesBalancedAllocation. They save these plugins, whose scores are to be disabled. The default is 0.
	LeastAllocated     *int64 `json:"leastAllocated,omitempty"`
	BalancedAllocation *int64 `json:"balancedAllocation,omitempty"`
}

// validate returns an error for each invalid weight.
func (w *TermWeights) validate(path *field.Path) (errs field.ErrorList) {
	sum := int64(0)
	for i, weight := range []int64{*w.Utilization, *w.LeastAllocated, *w.BalancedAllocation} {
		if weight < 0 || weight > maxTermWeight {
			name := [...]string{"utilization", "leastAllocated", "balancedAllocation"}[i]
			errs = append(errs, field.Invalid(path.Child(name), weight, "must be in [0, 100]"))
		}
		sum += weight
	}
	if len(errs) == 0 && sum == 0 {
		errs = append(errs, field.Invalid(path, "all 0", "must have at least one weight above 0"))
	}
	return errs
}

// Default sets the defaults of empty fields.
func (a *PredictedUtilizationArgs) Default() {
	if a.Mode == "" {
		a.Mode = ModeSpread
	}
	if a.Mode != ModeSpread {
		setDefault(&a.Target, DefaultTarget)
	}
	setDefault(&a.Deviations, DefaultDeviations)
	setDefault(&a.HistoryWeight, DefaultHistoryWeight)
	setDefault(&a.TermWeights.Utilization, DefaultTermWeight)
	setDefault(&a.TermWeights.LeastAllocated, 0)
	setDefault(&a.TermWeights.BalancedAllocation, 0)
	setDefault(&a.PollInterval, metav1.Duration{Duration: metricprovider.DefaultPollInterval})
	setDefault(&a.MaxLoadAge, metav1.Duration{Duration: metricprovider.DefaultMaxAge})
}

// Validate returns all invalid fields with their allowed values. The defaults must be set.
func (a *PredictedUtilizationArgs) Validate() error {
	var errs field.ErrorList
	if a.Mode != ModeSpread && a.Mode != ModePack {
		errs = append(errs, field.NotSupported(field.NewPath("mode"), a.Mode, []string{ModeSpread, ModePack}))
	}
	if a.Mode == ModeSpread && a.Target != nil {
		errs = append(errs, field.Forbidden(field.NewPath("target"), "must only be set with mode Pack"))
	} else if t := ptr.Deref(a.Target, DefaultTarget); !(t > 0 && t < 1) {
		errs = append(errs, field.Invalid(field.NewPath("target"), t, "must be more than 0 and less than 1"))
	}
	if d := *a.Deviations; !(d >= 0 && d <= maxDeviations) {
		errs = append(errs, field.Invalid(field.NewPath("deviations"), d, "must be in [0, 10]"))
	}
	errs = append(errs, validateFraction(field.NewPath("historyWeight"), *a.HistoryWeight)...)
	errs = append(errs, a.TermWeights.validate(field.NewPath("termWeights"))...)
	errs = append(errs, validateLoadSource(a.WatcherAddress, a.MetricProvider, a.PollInterval.Duration, a.MaxLoadAge.Duration)...)
	errs = append(errs, validateProvider(field.NewPath("podUsage"), a.PodUsage, metricprovider.PodTypes)...)
	errs = append(errs, validateObjectName(field.NewPath("historyConfigMap"), a.HistoryConfigMap)...)
	return errs.ToAggregate()
}
