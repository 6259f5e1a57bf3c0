package placement

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics of the controller.
type metrics struct {
	decisions prometheus.Histogram
	latency   prometheus.Histogram
	writes    *prometheus.CounterVec
}

// newMetrics returns metrics that are registered.
func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "decision_duration_seconds",
			Help:    "[ALPHA] Duration of decisions, including the wait for other decisions, without reading and writing objects.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "latency_seconds",
			Help:    "[ALPHA] Time from receiving a change to having written the decisions that take it into account.",
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "writes_total",
			Help: "[ALPHA] Attempted writes by verb: create, update (decisions in the status) and delete of PlacementDecisions, " +
				"and status of placements.",
		}, []string{"verb"}),
	}
	registry.MustRegister(m.decisions, m.latency, m.writes)
	return m
}

func (m *metrics) countWrite(verb string) { m.writes.WithLabelValues(verb).Inc() }
