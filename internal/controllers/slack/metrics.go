package slack

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
)

// metrics are what the controller tells of itself and of its policies.
type metrics struct {
	amounts      *prometheus.GaugeVec
	placeholders *prometheus.GaugeVec
	placed       *prometheus.GaugeVec
	feasible     *prometheus.GaugeVec
	writes       *prometheus.CounterVec
	plans        prometheus.Histogram
}

func newMetrics(registry prometheus.Registerer) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "plimsoll", Subsystem: "slack", Name: name, Help: "[ALPHA] " + help}, append([]string{"policy"}, labels...))
	}
	m := &metrics{
		amounts:      gauge("resource", "Amounts of a policy, in cores and bytes: the base of the rate, the target, what the placeholders request in total, and what the pool has available beside its pods.", "amount", "resource"),
		placeholders: gauge("placeholders", "Placeholders that are wanted: for the biggest pod (head), for the rate, and like the pods of workloads (mirror).", "of"),
		placed:       gauge("placeholders_placed", "Placeholders that there is room for now."),
		feasible:     gauge("feasible", "1 if what the policy wants can be held in placeholders, else 0."),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "plimsoll", Subsystem: "slack", Name: "writes_total", Help: "[ALPHA] Objects written or deleted, by kind.",
		}, []string{"kind", "verb"}),
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "slack", Name: "plan_duration_seconds", Help: "[ALPHA] Time that plans took, without reading and writing.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}),
	}
	registry.MustRegister(m.amounts, m.placeholders, m.placed, m.feasible, m.writes, m.plans)
	return m
}

// report tells of one policy.
func (m *metrics) report(policy string, is state) {
	for amount, list := range map[string]v1.ResourceList{"base": is.plan.Base, "target": is.plan.Target, "total": is.plan.Total, "available": is.free} {
		m.amounts.WithLabelValues(policy, amount, "cpu").Set(list.Cpu().AsApproximateFloat64())
		m.amounts.WithLabelValues(policy, amount, "memory").Set(list.Memory().AsApproximateFloat64())
	}
	of := map[string]int64{"head": 0, "rate": 0, "mirror": 0}
	for _, group := range is.plan.Groups {
		switch {
		case group.Head:
			of["head"] += group.Count
		case group.Mirror != nil:
			of["mirror"] += group.Count
		default:
			of["rate"] += group.Count
		}
	}
	for name, n := range of {
		m.placeholders.WithLabelValues(policy, name).Set(float64(n))
	}
	m.placed.WithLabelValues(policy).Set(float64(is.room))
	feasible := 0.0
	if is.plan.Feasible {
		feasible = 1
	}
	m.feasible.WithLabelValues(policy).Set(feasible)
}

// forget drops what was told of a policy that is gone.
func (m *metrics) forget(policy string) {
	for _, gauge := range []*prometheus.GaugeVec{m.amounts, m.placeholders, m.placed, m.feasible} {
		gauge.DeletePartialMatch(prometheus.Labels{"policy": policy})
	}
}

func (m *metrics) wrote(kind, verb string) { m.writes.WithLabelValues(kind, verb).Inc() }

func (m *metrics) planned(d time.Duration) { m.plans.Observe(d.Seconds()) }
