package agent

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of the agent.
type metrics struct {
	score      *prometheus.GaugeVec
	reported   prometheus.Gauge
	validUntil prometheus.Gauge
	unmanaged  prometheus.Gauge
	writes     *prometheus.CounterVec
	failures   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "plimsoll", "agent"
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}
	}
	counter := func(name, help, label string) *prometheus.CounterVec {
		options := prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}
		return prometheus.NewCounterVec(options, []string{label})
	}
	m := &metrics{
		score: prometheus.NewGaugeVec(gauge("score", "Scores of the cluster, from -100 to 100."), []string{"score"}),
		reported: prometheus.NewGauge(gauge("last_report_timestamp_seconds",
			"Time of the last successful report, or of the last check that found the hub up to date. 0 before the first report.")),
		validUntil: prometheus.NewGauge(gauge("valid_until_timestamp_seconds", "Time until which the scores on the hub are valid.")),
		unmanaged: prometheus.NewGauge(gauge("resources_foreign",
			"1 if another client reports the resources of the cluster, otherwise 0.")),
		writes:   counter("writes_total", "Number of successful reports, by kind.", "kind"),
		failures: counter("failures_total", "Number of failed reports, by reason.", "reason"),
	}
	registry.MustRegister(m.score, m.reported, m.validUntil, m.unmanaged, m.writes, m.failures)
	return m
}

// recordScores sets the scores and deletes absent scores.
func (m *metrics) recordScores(scores []namedScore) {
	for _, name := range scoreNames {
		i := slices.IndexFunc(scores, func(s namedScore) bool { return s.Name == name })
		if i < 0 {
			m.score.DeleteLabelValues(name)
			continue
		}
		m.score.WithLabelValues(name).Set(float64(scores[i].Value))
	}
}
