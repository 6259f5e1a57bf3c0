// Package telemetry shows how reading load goes, as Prometheus metrics. Each
// scrape looks at the stores; nothing is counted twice.
package telemetry

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Collector has the metrics of stores. The zero value is good.
type Collector struct {
	mu     sync.Mutex
	stores []watched
}

type watched struct {
	source string
	store  *load.Store
}

// Watch adds a store, which is read from a source of that name. Of stores with
// the same name, the first counts.
func (c *Collector) Watch(source string, store *load.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(c.stores, func(w watched) bool { return w.source == source }) {
		c.stores = append(c.stores, watched{source, store})
	}
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plimsoll_load_"+name, "[ALPHA] "+help, append([]string{"source"}, labels...), nil)
}

var (
	age      = describe("age_seconds", "Age of the newest reading of the load. Absent before the first one.")
	maxAge   = describe("max_age_seconds", "Age from which on a reading is not used.")
	degraded = describe("degraded", "1 if there is no load fresh enough to be used, else 0.")
	nodes    = describe("nodes", "Nodes whose load is known and fresh.")
	stale    = describe("nodes_stale", "Nodes that the source knows, but of which it has only old values.")
	reads    = describe("reads_total", "Readings taken over.")
	failures = describe("read_failures_total", "Reads that brought nothing, by reason.", "reason")
	took     = describe("read_duration_seconds", "Time that reads took, those that failed included.")
	lost     = describe("series_lost_total", "Series that a reading came without, by series.", "series")
	rejected = describe("values_rejected_total", "Values left out because they make no sense or belong to no node.")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{age, maxAge, degraded, nodes, stale, reads, failures, took, lost, rejected} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	stores := slices.Clone(c.stores)
	c.mu.Unlock()
	for _, w := range stores {
		gauge := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, w.source)
		}
		counter := func(desc *prometheus.Desc, value int, labels ...string) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), append([]string{w.source}, labels...)...)
		}
		if a, known := w.store.Age(); known {
			gauge(age, a.Seconds())
		}
		gauge(maxAge, w.store.MaxAge().Seconds())
		fresh, bad := w.store.Fresh(), 0.0
		if fresh == nil {
			bad = 1
		}
		gauge(degraded, bad)
		gauge(nodes, float64(len(fresh.Reading().Nodes)))
		gauge(stale, float64(fresh.Reading().Stale))
		stats := w.store.Stats()
		counter(reads, stats.Reads)
		counter(rejected, stats.Rejected)
		out <- durations(stats.Durations, w.source)
		for _, reason := range load.Reasons {
			counter(failures, stats.Failures[reason], string(reason))
		}
		for _, series := range load.AllSeries {
			counter(lost, stats.Lost[series], string(series))
		}
	}
}

// durations returns how long the reads of a source took.
func durations(d load.Durations, source string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(load.DurationBounds))
	for i, bound := range load.DurationBounds {
		buckets[bound.Seconds()] = uint64(d.Within[i])
	}
	return prometheus.MustNewConstHistogram(took, uint64(d.Count), d.Sum.Seconds(), buckets, source)
}
