// Package telemetry exports the state of stores of load and of the usage of pods as Prometheus metrics. Every scrape
// reads the stores.
package telemetry

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// Collector collects the metrics of stores. The zero value is ready to use.
type Collector struct {
	mu     sync.Mutex
	stores []watchedStore
}

// Store is a *load.Store or a *load.PodStore.
type Store interface {
	Age() (age time.Duration, known bool)
	MaxAge() time.Duration
	Stats() load.Stats
}

// watchedStore is a store with its metrics and the label value of its source.
type watchedStore struct {
	Store
	*family
	source string
}

// Watch adds the store of a source until ctx is done. Until then, another store of the same type and source is
// ignored.
func (c *Collector) Watch(ctx context.Context, source string, store Store) {
	added := watchedStore{store, &ofNodes, source}
	if _, isPods := store.(*load.PodStore); isPods {
		added.family = &ofPods
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	same := func(w watchedStore) bool { return w.source == source && w.family == added.family }
	if slices.ContainsFunc(c.stores, same) {
		return
	}
	c.stores = append(c.stores, added)
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stores = slices.DeleteFunc(c.stores, func(w watchedStore) bool { return w == added })
	})
}

// family has the descriptions of the metrics that stores of nodes and of pods have in common.
type family struct {
	age, maxAge, degraded, fresh, reads, failures, duration, rejected *prometheus.Desc
}

// describe returns the description of a metric with the label source and further labels.
func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("plimsoll_"+name, "[ALPHA] "+help, append([]string{"source"}, labels...), nil)
}

var (
	ofNodes = family{
		age:      describe("load_age_seconds", "Age of the newest reading. Absent before the first reading."),
		maxAge:   describe("load_max_age_seconds", "Maximum age of a reading that is used."),
		degraded: describe("load_degraded", "1 if there is no fresh load, else 0."),
		fresh:    describe("load_nodes", "Nodes with fresh load."),
		reads:    describe("load_reads_total", "Readings stored."),
		failures: describe("load_read_failures_total", "Failed reads, by reason.", "reason"),
		duration: describe("load_read_duration_seconds", "Duration of reads, failed ones included."),
		rejected: describe("load_values_rejected_total", "Values ignored because they are invalid or belong to no node."),
	}
	ofPods = family{
		age:      describe("pod_usage_age_seconds", "Age of the newest reading of the usage of pods. Absent before the first reading."),
		maxAge:   describe("pod_usage_max_age_seconds", "Maximum age of a reading of the usage of pods that is used."),
		degraded: describe("pod_usage_degraded", "1 if there is no fresh usage of pods, else 0."),
		fresh:    describe("pod_usage_pods", "Pods with fresh usage."),
		reads:    describe("pod_usage_reads_total", "Readings of the usage of pods stored."),
		failures: describe("pod_usage_read_failures_total", "Failed reads of the usage of pods, by reason.", "reason"),
		duration: describe("pod_usage_read_duration_seconds", "Duration of reads of the usage of pods, failed ones included."),
		rejected: describe("pod_usage_rejected_total", "Pods ignored because their usage is missing, invalid or too old."),
	}
	noUsage = describe("load_node_without_usage", "1 for a node whose reading has no CPU usage, for up to 100 nodes by name.", "node")

	stale = describe("load_nodes_stale", "Nodes that the source has only old values for.")
	lost  = describe("load_series_lost_total", "Readings without a series, by series.", "series")
)

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range []family{ofNodes, ofPods} {
		for _, desc := range []*prometheus.Desc{f.age, f.maxAge, f.degraded, f.fresh, f.reads, f.failures, f.duration, f.rejected} {
			out <- desc
		}
	}
	out <- stale
	out <- lost
	out <- noUsage
}

// maxNamed is the number of nodes without usage that have a metric.
const maxNamed = 100

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
	c.mu.Lock()
	stores := slices.Clone(c.stores)
	c.mu.Unlock()
	for _, watched := range stores {
		fresh, isFresh := 0, false
		switch store := watched.Store.(type) {
		case *load.Store:
			snapshot := store.Fresh()
			reading := snapshot.Reading()
			fresh, isFresh = len(reading.Nodes), snapshot != nil
			names := slices.Sorted(maps.Keys(reading.Nodes))
			names = slices.DeleteFunc(names, func(name string) bool { return !reading.Nodes[name].HasNoUsage() })
			for _, name := range names[:min(len(names), maxNamed)] {
				out <- prometheus.MustNewConstMetric(noUsage, prometheus.GaugeValue, 1, watched.source, name)
			}
			out <- prometheus.MustNewConstMetric(stale, prometheus.GaugeValue, float64(reading.Stale), watched.source)
			stats := store.Stats()
			for _, series := range load.AllSeries {
				count := float64(stats.Lost[series])
				out <- prometheus.MustNewConstMetric(lost, prometheus.CounterValue, count, watched.source, string(series))
			}
		case *load.PodStore:
			if reading := store.Fresh(); reading != nil {
				fresh, isFresh = len(reading.Pods), true
			}
		}
		watched.collect(out, fresh, isFresh)
	}
}

// collect sends the metrics of the store with the number of nodes or pods that are fresh.
func (w *watchedStore) collect(out chan<- prometheus.Metric, fresh int, isFresh bool) {
	gauge := func(desc *prometheus.Desc, value float64) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, w.source)
	}
	counter := func(desc *prometheus.Desc, value int, labels ...string) {
		values := append([]string{w.source}, labels...)
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), values...)
	}
	if age, known := w.Age(); known {
		gauge(w.age, age.Seconds())
	}
	gauge(w.maxAge, w.MaxAge().Seconds())
	gauge(w.degraded, map[bool]float64{true: 0, false: 1}[isFresh])
	gauge(w.fresh, float64(fresh))
	stats := w.Stats()
	counter(w.reads, stats.Reads)
	counter(w.rejected, stats.Rejected)
	buckets, d := make(map[float64]uint64, len(load.DurationBounds)), stats.Durations
	for i, bound := range load.DurationBounds {
		buckets[bound.Seconds()] = uint64(d.Within[i])
	}
	out <- prometheus.MustNewConstHistogram(w.duration, uint64(d.Count), d.Sum.Seconds(), buckets, w.source)
	for _, reason := range load.Reasons {
		counter(w.failures, stats.Failures[reason], string(reason))
	}
}
