// Package telemetry exports the state of load stores as Prometheus metrics. Every scrape reads the
// stores.
package telemetry

import (
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Collector collects the metrics of stores. The zero value is ready to use.
type Collector struct {
	mu     sync.Mutex
	stores []watchedStore
}

// watchedStore is a store with the label value of its source.
type watchedStore struct {
	source string
	store  *load.Store
}

// Watch adds the store of a source until ctx is done. A further store with the same source is ignored
// until then.
func (c *Collector) Watch(ctx context.Context, source string, store *load.Store) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.ContainsFunc(c.stores, func(w watchedStore) bool { return w.source == source }) {
		return
	}
	c.stores = append(c.stores, watchedStore{source, store})
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stores = slices.DeleteFunc(c.stores, func(w watchedStore) bool { return w.store == store })
	})
}

// describe returns the description of a metric with the label source and further labels.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plimsoll_load_"+name, "[ALPHA] "+help, append([]string{"source"}, labels...), nil)
}

var (
	age      = describe("age_seconds", "Age of the newest reading. Absent before the first reading.")
	maxAge   = describe("max_age_seconds", "Maximum age of a reading that is used.")
	degraded = describe("degraded", "1 if there is no fresh load, else 0.")
	nodes    = describe("nodes", "Nodes with fresh load.")
	stale    = describe("nodes_stale", "Nodes that the source has only old values for.")
	reads    = describe("reads_total", "Readings stored.")
	failures = describe("read_failures_total", "Failed reads, by reason.", "reason")
	duration = describe("read_duration_seconds", "Duration of reads, failed ones included.")
	lost     = describe("series_lost_total", "Readings without a series, by series.", "series")
	rejected = describe("values_rejected_total", "Values ignored because they are invalid or belong to no node.")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{age, maxAge, degraded, nodes, stale, reads, failures, duration, lost, rejected} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	stores := slices.Clone(c.stores)
	c.mu.Unlock()
	for _, watched := range stores {
		gauge := func(desc *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, watched.source)
		}
		counter := func(desc *prometheus.Desc, value int, labels ...string) {
			values := append([]string{watched.source}, labels...)
			out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), values...)
		}
		if a, known := watched.store.Age(); known {
			gauge(age, a.Seconds())
		}
		gauge(maxAge, watched.store.MaxAge().Seconds())
		fresh, isDegraded := watched.store.Fresh(), 0.0
		if fresh == nil {
			isDegraded = 1
		}
		gauge(degraded, isDegraded)
		gauge(nodes, float64(len(fresh.Reading().Nodes)))
		gauge(stale, float64(fresh.Reading().Stale))
		stats := watched.store.Stats()
		counter(reads, stats.Reads)
		counter(rejected, stats.Rejected)
		out <- histogram(stats.Durations, watched.source)
		for _, reason := range load.Reasons {
			counter(failures, stats.Failures[reason], string(reason))
		}
		for _, series := range load.AllSeries {
			counter(lost, stats.Lost[series], string(series))
		}
	}
}

// histogram returns the durations of the reads of a source.
func histogram(d load.Durations, source string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(load.DurationBounds))
	for i, bound := range load.DurationBounds {
		buckets[bound.Seconds()] = uint64(d.Within[i])
	}
	return prometheus.MustNewConstHistogram(duration, uint64(d.Count), d.Sum.Seconds(), buckets, source)
}
