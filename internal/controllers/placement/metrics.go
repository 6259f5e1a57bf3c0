package placement

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the controller tells of itself.
type metrics struct {
	decisions prometheus.Histogram
	delays    prometheus.Histogram
	writes    *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "decision_duration_seconds",
			Help: "[ALPHA] Time that decisions took, waiting for each other included, without reading and writing.", Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
		delays: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "latency_seconds",
			Help: "[ALPHA] Time from when the controller heard of a change to when the decisions that came of it were written.", Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "writes_total",
			Help: "[ALPHA] Writes tried, by verb: PlacementDecisions created, updated (their decisions) and deleted, and the status of placements.",
		}, []string{"verb"}),
	}
	registry.MustRegister(m.decisions, m.delays, m.writes)
	return m
}

func (m *metrics) decided(d time.Duration) { m.decisions.Observe(d.Seconds()) }

func (m *metrics) waited(d time.Duration) { m.delays.Observe(d.Seconds()) }

func (m *metrics) wrote(verb string) { m.writes.WithLabelValues(verb).Inc() }
