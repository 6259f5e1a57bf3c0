package slack

import (
	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
)

// metrics are the metrics of the controller and its policies.
type metrics struct {
	amounts      *prometheus.GaugeVec
	placeholders *prometheus.GaugeVec
	placed       *prometheus.GaugeVec
	feasible     *prometheus.GaugeVec
	writes       *prometheus.CounterVec
	plans        prometheus.Histogram
	waits        *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "plimsoll", Subsystem: "slack", Name: name, Help: "[ALPHA] " + help},
			append([]string{"policy"}, labels...))
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "plimsoll", Subsystem: "slack", Name: name, Help: "[ALPHA] " + help,
		}, labels)
	}
	m := &metrics{
		amounts: gauge("resource",
			"Amounts of a policy in cores and bytes: the base of the rate, the target, the total requests of placeholders, "+
				"and the free capacity of the pool (available).", "amount", "resource"),
		placeholders: gauge(
			"placeholders",
			"Number of placeholders: for the biggest pod (head), for the rate (rate), for pods with devices (device), and those that mirror "+
				"workloads (mirror).",
			"of",
		),
		placed:   gauge("placeholders_placed", "Number of placeholders that fit the nodes of the pool now."),
		feasible: gauge("feasible", "1 if placeholders can hold the slack that the policy requires, otherwise 0."),
		writes:   counter("writes_total", "Number of objects applied or deleted, by kind.", "kind", "verb"),
		waits: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "slack", Name: "pod_wait_seconds",
			Help: "[ALPHA] Time from the creation of a pod, or the removal of its last scheduling gate, to its node in the pool. " +
				"Pods with more than 10 seconds waited in spite of slack.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800},
		}, []string{"policy"}),
		plans: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "slack", Name: "plan_duration_seconds",
			Help:    "[ALPHA] Duration of the computation of a plan, without reading and writing objects.",
			Buckets: prometheus.ExponentialBuckets(1e-6, 4, 10),
		}),
	}
	registry.MustRegister(m.amounts, m.placeholders, m.placed, m.feasible, m.writes, m.plans, m.waits)
	return m
}

// recordPolicy sets the metrics of one policy.
func (m *metrics) recordPolicy(policy string, o observation) {
	for amount, list := range map[string]v1.ResourceList{
		"base": o.plan.Base, "target": o.plan.Target, "total": o.plan.Total,
		"available": o.free,
	} {
		m.amounts.WithLabelValues(policy, amount, "cpu").Set(list.Cpu().AsApproximateFloat64())
		m.amounts.WithLabelValues(policy, amount, "memory").Set(list.Memory().AsApproximateFloat64())
	}
	counts := map[string]int64{"head": 0, "rate": 0, "device": 0, "mirror": 0}
	for _, group := range o.plan.Groups {
		switch {
		case group.Head:
			counts["head"] += group.Count
		case group.Mirror != nil:
			counts["mirror"] += group.Count
		case group.Devices != "":
			counts["device"] += group.Count
		default:
			counts["rate"] += group.Count
		}
	}
	for name, n := range counts {
		m.placeholders.WithLabelValues(policy, name).Set(float64(n))
	}
	m.placed.WithLabelValues(policy).Set(float64(o.placeable))
	feasible := 0.0
	if o.plan.Feasible {
		feasible = 1
	}
	m.feasible.WithLabelValues(policy).Set(feasible)
	m.waits.WithLabelValues(policy)
}

// deletePolicy deletes the metrics of a deleted policy.
func (m *metrics) deletePolicy(policy string) {
	for _, vector := range []interface{ DeletePartialMatch(prometheus.Labels) int }{
		m.amounts, m.placeholders, m.placed, m.feasible, m.waits,
	} {
		vector.DeletePartialMatch(prometheus.Labels{"policy": policy})
	}
}
