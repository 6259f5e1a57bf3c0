package telemetry

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestWatch checks that the metrics of a source are from the first store whose context is not done.
func TestWatch(t *testing.T) {
	collector := &Collector{}
	// The maximum age identifies the store that is collected.
	collected := func() string {
		for seconds, age := range map[string]time.Duration{"60": time.Minute, "120": 2 * time.Minute} {
			want := "# HELP plimsoll_load_max_age_seconds [ALPHA] Maximum age of a reading that is used.\n" +
				"# TYPE plimsoll_load_max_age_seconds gauge\nplimsoll_load_max_age_seconds{source=\"s\"} " + seconds + "\n"
			if testutil.CollectAndCompare(collector, strings.NewReader(want), "plimsoll_load_max_age_seconds") == nil {
				return age.String()
			}
		}
		return "none"
	}
	first, stop := context.WithCancel(t.Context())
	collector.Watch(first, "s", load.NewStore(time.Minute, nil))
	collector.Watch(t.Context(), "s", load.NewStore(2*time.Minute, nil))
	if got := collected(); got != "1m0s" {
		t.Errorf("with two stores of one source: maximum age %s, want 1m0s of the first", got)
	}
	stop()
	eventually.True(t, "the first store is still collected", nil, func(context.Context) (bool, error) { return collected() == "none", nil })
	collector.Watch(t.Context(), "s", load.NewStore(2*time.Minute, nil))
	if got := collected(); got != "2m0s" {
		t.Errorf("after the first store was removed: maximum age %s, want 2m0s of the second", got)
	}
}

// TestWatchPods checks the metrics of a store of the usage of pods beside a store of load of the same source.
func TestWatchPods(t *testing.T) {
	collector, now := &Collector{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	store := load.NewPodStore(time.Minute, func() time.Time { return now })
	collector.Watch(t.Context(), "s", store)
	collector.Watch(t.Context(), "s", load.NewStore(time.Minute, nil))
	check := func(want string) {
		t.Helper()
		names := []string{
			"plimsoll_pod_usage_age_seconds",
			"plimsoll_pod_usage_degraded",
			"plimsoll_pod_usage_pods",
			"plimsoll_pod_usage_rejected_total",
		}
		if err := testutil.CollectAndCompare(collector, strings.NewReader(want), names...); err != nil {
			t.Error(err)
		}
	}
	family := func(name, kind, help, value string) string {
		return "# HELP plimsoll_pod_usage_" + name + " [ALPHA] " + help + "\n# TYPE plimsoll_pod_usage_" + name + " " + kind +
			"\nplimsoll_pod_usage_" + name + `{source="s"} ` + value + "\n"
	}
	metrics := func(degraded, pods, rejected string) string {
		return family("degraded", "gauge", "1 if there is no fresh usage of pods, else 0.", degraded) +
			family("pods", "gauge", "Pods with fresh usage.", pods) +
			family("rejected_total", "counter", "Pods ignored because their usage is missing, invalid or too old.", rejected)
	}
	age := func(value string) string {
		return family("age_seconds", "gauge", "Age of the newest reading of the usage of pods. Absent before the first reading.", value)
	}
	check(metrics("1", "0", "0"))
	must.Succeed(t, store.Put(load.PodReading{Time: now, Pods: make([]load.PodUsage, 3), Rejected: 2}))
	now = now.Add(10 * time.Second)
	check(age("10") + metrics("0", "3", "2"))
	now = now.Add(time.Minute)
	check(age("70") + metrics("1", "0", "2"))
}

// TestNodesWithoutUsage checks that nodes that report no CPU usage have a metric with their name, but not nodes with usage or without CPU.
func TestNodesWithoutUsage(t *testing.T) {
	collector, store := &Collector{}, load.NewStore(time.Minute, nil)
	collector.Watch(t.Context(), "s", store)
	busy := load.Node{CPU: load.Utilization{Mean: 0.001}, HasCPU: true}
	nodes := map[string]load.Node{"a": {HasCPU: true}, "b": busy, "c": {HasMemory: true}}
	must.Succeed(t, store.Put(load.Reading{Time: time.Now(), Nodes: nodes}))
	const want = "# HELP plimsoll_load_node_without_usage " +
		"[ALPHA] 1 for a node whose reading has no CPU usage, for up to 100 nodes by name.\n" +
		"# TYPE plimsoll_load_node_without_usage gauge\nplimsoll_load_node_without_usage{node=\"a\",source=\"s\"} 1\n"
	if err := testutil.CollectAndCompare(collector, strings.NewReader(want), "plimsoll_load_node_without_usage"); err != nil {
		t.Error(err)
	}
}
