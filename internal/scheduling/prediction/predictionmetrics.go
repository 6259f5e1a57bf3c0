package prediction

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
)

// errorBuckets are differences as fractions of the allocatable amount. The alert PlimsollPredictionDrifts uses 0.1.
var errorBuckets = []float64{-0.5, -0.3, -0.2, -0.1, -0.05, -0.02, 0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5}

// History is the state of the history of the usage of workloads.
type History struct {
	// Workloads is the number of workloads whose usage is known.
	Workloads int
	// Updated is the time of the newest usage, zero if there is none.
	Updated time.Time
	// Saved is the time of the last save, zero if there was none. SavedBytes is the size of the saved history, and
	// Dropped the number of workloads that did not fit.
	Saved               time.Time
	SavedBytes, Dropped int
	// Ignored is the number of impossible workloads in the restored history.
	Ignored int
}

// Metrics are the metrics of the predictions of one process. A nil Metrics ignores everything.
type Metrics struct {
	errors *prometheus.HistogramVec
	now    func() time.Time
	// history returns the state of the history, nil if there is none.
	history atomic.Pointer[func() History]
}

// NewMetrics returns metrics without values, to be registered as a collector. now is the clock; time.Now if nil.
func NewMetrics(now func() time.Time) *Metrics {
	if now == nil {
		now = time.Now
	}
	return &Metrics{now: now, errors: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "plimsoll_prediction_error_ratio",
		Help: "[ALPHA] Measured minus predicted mean utilization of a node, as a fraction of its allocatable amount: " +
			"one observation per node and reading of load. The sum can decrease.",
		Buckets: errorBuckets,
	}, []string{"resource"})}
}

// ObserveError counts the difference between the measured and the predicted mean utilization of a node. Both are fractions of
// the allocatable amount; values that are not numbers are ignored.
func (m *Metrics) ObserveError(resource v1.ResourceName, predicted, measured float64) {
	if difference := measured - predicted; m != nil && difference == difference {
		m.errors.WithLabelValues(string(resource)).Observe(difference)
	}
}

// WatchHistory exposes the state that the function history returns, in place of a previous function, until ctx is done. The
// function is called on every scrape, and must be safe for concurrent use.
func (m *Metrics) WatchHistory(ctx context.Context, history func() History) {
	if m == nil {
		return
	}
	m.history.Store(&history)
	context.AfterFunc(ctx, func() { m.history.CompareAndSwap(&history, nil) })
}

func describeMetric(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("plimsoll_prediction_"+name, "[ALPHA] "+help, nil, nil)
}

var (
	workloads  = describeMetric("workloads", "Workloads whose usage is known from the usage of their pods.")
	age        = describeMetric("history_age_seconds", "Age of the newest usage in the history of the workloads. Absent if there is none.")
	saved      = describeMetric("history_saved_timestamp_seconds", "Time at which the history was saved last. Absent if it was not.")
	savedBytes = describeMetric("history_saved_bytes", "Size of the history when it was saved last.")
	dropped    = describeMetric("history_dropped_workloads", "Workloads that did not fit when the history was saved last.")
	ignored    = describeMetric("history_ignored_workloads", "Impossible workloads of the restored history.")
)

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.errors.Describe(out)
	for _, desc := range []*prometheus.Desc{workloads, age, saved, savedBytes, dropped, ignored} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.errors.Collect(out)
	watched := m.history.Load()
	if watched == nil {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
	state := (*watched)()
	gauge(workloads, float64(state.Workloads))
	gauge(ignored, float64(state.Ignored))
	if !state.Updated.IsZero() {
		gauge(age, m.now().Sub(state.Updated).Seconds())
	}
	if !state.Saved.IsZero() {
		gauge(saved, float64(state.Saved.UnixMilli())/1000)
		gauge(savedBytes, float64(state.SavedBytes))
		gauge(dropped, float64(state.Dropped))
	}
}
