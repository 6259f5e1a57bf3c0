package agent

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/clusterscore"
)

// metrics are what the agent tells of itself.
type metrics struct {
	score      *prometheus.GaugeVec
	reported   prometheus.Gauge
	validUntil prometheus.Gauge
	foreign    prometheus.Gauge
	writes     *prometheus.CounterVec
	failures   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "plimsoll", "agent"
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}
	}
	counter := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}, []string{label})
	}
	m := &metrics{
		score:      prometheus.NewGaugeVec(gauge("score", "Scores of the cluster, in [-100, 100]."), []string{"score"}),
		reported:   prometheus.NewGauge(gauge("last_report_timestamp_seconds", "When the agent last knew that the hub has what it would say: it was written, or is the same. 0 before the first time.")),
		validUntil: prometheus.NewGauge(gauge("valid_until_timestamp_seconds", "Until when the scores that the hub has are valid.")),
		foreign:    prometheus.NewGauge(gauge("resources_foreign", "1 if somebody else reports the cluster's resources, else 0.")),
		writes:     counter("writes_total", "Reports that the hub has taken, by kind.", "kind"),
		failures:   counter("failures_total", "Reports that failed, by reason.", "reason"),
	}
	registry.MustRegister(m.score, m.reported, m.validUntil, m.foreign, m.writes, m.failures)
	return m
}

func (m *metrics) scored(scores []clusterscore.Score) {
	for _, name := range clusterscore.Names {
		i := slices.IndexFunc(scores, func(s clusterscore.Score) bool { return s.Name == name })
		if i < 0 {
			m.score.DeleteLabelValues(name)
			continue
		}
		m.score.WithLabelValues(name).Set(float64(scores[i].Value))
	}
}

func (m *metrics) wrote(kind string, validUntil time.Time) {
	m.writes.WithLabelValues(kind).Inc()
	if !validUntil.IsZero() {
		m.validUntil.Set(float64(validUntil.Unix()))
	}
}

// upToDate notes that the hub knew everything at an instant.
func (m *metrics) upToDate(at time.Time) { m.reported.Set(float64(at.UnixMilli()) / 1000) }

func (m *metrics) yielded(foreign bool) {
	m.foreign.Set(0)
	if foreign {
		m.foreign.Set(1)
	}
}

func (m *metrics) failed(reason string) { m.failures.WithLabelValues(reason).Inc() }
