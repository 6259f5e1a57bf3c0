package placement

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are what the controller tells of itself.
type metrics struct {
	decisions prometheus.Histogram
	writes    *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "decision_duration_seconds",
			Help: "Time that decisions took, waiting for each other included, without reading and writing.", Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "writes_total",
			Help: "Writes: PlacementDecisions created, updated and deleted, and the status of placements.",
		}, []string{"verb"}),
	}
	registry.MustRegister(m.decisions, m.writes)
	return m
}

func (m *metrics) decided(d time.Duration) { m.decisions.Observe(d.Seconds()) }

func (m *metrics) wrote(verb string) { m.writes.WithLabelValues(verb).Inc() }
