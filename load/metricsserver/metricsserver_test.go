package metricsserver

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// api is a fake metrics API. An integration test uses a real one.
type api struct {
	items []metricsv1beta1.NodeMetrics
	err   error
}

func (a *api) List(context.Context, metav1.ListOptions) (*metricsv1beta1.NodeMetricsList, error) {
	return &metricsv1beta1.NodeMetricsList{Items: a.items}, a.err
}

func metrics(node string, at time.Time, cpu, memory string) metricsv1beta1.NodeMetrics {
	m := metricsv1beta1.NodeMetrics{ObjectMeta: metav1.ObjectMeta{Name: node}, Timestamp: metav1.NewTime(at), Usage: v1.ResourceList{}}
	if cpu != "" {
		m.Usage[v1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		m.Usage[v1.ResourceMemory] = resource.MustParse(memory)
	}
	return m
}

// newSource returns a source for nodes a and b with 4 cores and 16 GiB, and node empty without capacity.
func newSource(t *testing.T, a *api, now *time.Time) *Source {
	t.Helper()
	s, err := New(Config{
		Metrics: a, Now: func() time.Time { return *now },
		Nodes: func() ([]*v1.Node, error) {
			var nodes []*v1.Node
			for name, cpu := range map[string]string{"a": "4", "b": "4", "empty": "0"} {
				nodes = append(nodes, &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: v1.ResourceList{
					v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("16Gi"),
				}}})
			}
			return nodes, nil
		},
	})
	must.Succeed(t, err)
	return s
}

func TestRead(t *testing.T) {
	a, now := &api{}, noon
	s := newSource(t, a, &now)
	for _, step := range []struct {
		what            string
		after           time.Duration
		items           []metricsv1beta1.NodeMetrics
		want            map[string]load.Node
		rejected, stale int
	}{
		{
			"the first sample has no deviation", 0,
			[]metricsv1beta1.NodeMetrics{metrics("a", noon, "1", "4Gi"), metrics("b", noon, "500m", "8Gi")},
			map[string]load.Node{"a": node(0.25, 0, 0.25, 0), "b": node(0.125, 0, 0.5, 0)},
			0, 0,
		},
		{
			"the same sample once more changes nothing", 5 * time.Second,
			[]metricsv1beta1.NodeMetrics{metrics("a", noon, "1", "4Gi"), metrics("b", noon, "500m", "8Gi")},
			map[string]load.Node{"a": node(0.25, 0, 0.25, 0), "b": node(0.125, 0, 0.5, 0)},
			0, 0,
		},
		{ // (0.25 + 0.75) / 2 = 0.5, each 0.25 away
			"a second sample",
			15 * time.Second,
			[]metricsv1beta1.NodeMetrics{
				metrics("a", noon.Add(15*time.Second), "3", "4Gi"),
				metrics("b", noon.Add(15*time.Second), "500m", "8Gi"),
			},
			map[string]load.Node{"a": node(0.5, 0.25, 0.25, 0), "b": node(0.125, 0, 0.5, 0)},
			0,
			0,
		},
		{
			"what makes no sense is left out", 20 * time.Second,
			[]metricsv1beta1.NodeMetrics{
				metrics("a", noon.Add(20*time.Second), "-1", "4Gi"), metrics("b", noon.Add(time.Hour), "4", "8Gi"),
				metrics("stranger", noon.Add(20*time.Second), "1", "1Gi"), metrics("empty", noon.Add(20*time.Second), "1", "1Gi"),
				metrics("a", noon.Add(20*time.Second), "", "4Gi"), metrics("a", noon.Add(20*time.Second), "1", ""),
			},
			map[string]load.Node{"a": node(0.5, 0.25, 0.25, 0), "b": node(0.125, 0, 0.5, 0)},
			6, 0,
		},
		{ // a: (0.25 + 0.75 + 1) / 3; b was last heard of at 15 s
			"more than there is counts as all, and a node falls silent",
			3*time.Minute + 16*time.Second,
			[]metricsv1beta1.NodeMetrics{
				metrics("a", noon.Add(195*time.Second), "8", "4Gi"),
				metrics("b", noon.Add(15*time.Second), "500m", "8Gi"),
			},
			map[string]load.Node{"a": node(2.0/3, 0.3118, 0.25, 0)},
			0,
			1,
		},
	} {
		a.items, now = step.items, noon.Add(step.after)
		got, err := s.Read(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		near := cmp.Comparer(func(x, y float64) bool { return x-y < 1e-4 && y-x < 1e-4 })
		if diff := cmp.Diff(step.want, got.Nodes, near); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
		if got.Rejected != step.rejected || got.Stale != step.stale {
			t.Errorf("%s: rejected %d, stale %d", step.what, got.Rejected, got.Stale)
		}
	}
	now = noon.Add(time.Hour)
	if _, err := s.Read(t.Context()); load.ReasonOf(err) != load.Empty ||
		!strings.Contains(err.Error(), "no node has fresh metrics: 2 listed, 0 of them invalid or of unknown nodes, 2 older than 3m0s") {
		t.Error(err)
	}
}

// TestWindow checks that a reading covers what its samples cover: each the time that the API reports, at most the configured window.
func TestWindow(t *testing.T) {
	a, now := &api{}, noon
	s := newSource(t, a, &now)
	for _, step := range []struct {
		at           time.Duration
		sample, want time.Duration
	}{
		{0, 0, 15 * time.Second}, // metrics-server's resolution by default
		{20 * time.Second, 10 * time.Second, 30 * time.Second},
		{80 * time.Second, 10 * time.Second, 90 * time.Second},
		{16 * time.Minute, 10 * time.Second, 14*time.Minute + 50*time.Second}, // since 80 s
		{17 * time.Minute, 10 * time.Second, 70 * time.Second},                // since 16 min
		{40 * time.Minute, 10 * time.Second, 10 * time.Second},
	} {
		now = noon.Add(step.at)
		a.items = []metricsv1beta1.NodeMetrics{metrics("a", now, "1", "4Gi")}
		a.items[0].Window.Duration = step.sample
		got, err := s.Read(t.Context())
		if must.Succeed(t, err); got.Window != step.want {
			t.Errorf("after %s: the window is %s, want %s", step.at, got.Window, step.want)
		}
	}
	for i := range 120 {
		now = noon.Add(time.Hour + time.Duration(i)*15*time.Second)
		a.items = []metricsv1beta1.NodeMetrics{metrics("a", now, "1", "4Gi")}
		if _, err := s.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Read(t.Context()); err != nil || got.Window != defaultWindow {
		t.Errorf("a full window is %s, %v, want %s", got.Window, err, defaultWindow)
	}
}

// TestRecreatedNode expects no samples of an earlier node of the same name, which a reader misses if it reads rarely.
func TestRecreatedNode(t *testing.T) {
	a, now, created := &api{}, noon, noon.Add(-time.Hour)
	s := newSource(t, a, &now)
	nodes := s.config.Nodes
	s.config.Nodes = func() ([]*v1.Node, error) {
		all, err := nodes()
		for _, n := range all {
			if n.Name == "a" {
				n.CreationTimestamp = metav1.NewTime(created)
			}
		}
		return all, err
	}
	read := func(samples ...metricsv1beta1.NodeMetrics) load.Reading {
		a.items = samples
		reading, err := s.Read(t.Context())
		must.Succeed(t, err)
		return reading
	}
	b := metrics("b", noon, "1", "4Gi")
	if got := read(metrics("a", noon, "4", "16Gi"), b); got.Nodes["a"].CPU.Mean != 1 {
		t.Errorf("before: %+v", got)
	}
	// The metrics API still has the sample of the earlier node.
	now, created = noon.Add(30*time.Second), noon.Add(20*time.Second)
	if got := read(metrics("a", noon.Add(15*time.Second), "4", "16Gi"), b); got.Nodes["a"].HasCPU || got.Rejected != 1 {
		t.Errorf("without samples since the node was created: %+v", got)
	}
	now = noon.Add(45 * time.Second)
	if got := read(metrics("a", now, "1", "4Gi"), b); got.Nodes["a"] != node(0.25, 0, 0.25, 0) {
		t.Errorf("after: %+v", got)
	}
}

func node(cpu, cpuDeviation, memory, memoryDeviation float64) load.Node {
	return load.Node{
		CPU: load.Utilization{Mean: cpu, StdDev: cpuDeviation}, HasCPU: true,
		Memory: load.Utilization{Mean: memory, StdDev: memoryDeviation}, HasMemory: true,
	}
}

func TestErrors(t *testing.T) {
	nodes := schema.GroupResource{Group: "metrics.k8s.io", Resource: "nodes"}
	for name, tc := range map[string]struct {
		err    error
		reason load.Reason
		want   string
	}{
		"not installed": {apierrors.NewNotFound(nodes, ""), load.Unreachable, "check that metrics-server is installed"},
		"not running": {
			apierrors.NewServiceUnavailable("the server is currently unable to handle the request"), load.Unreachable,
			"check that metrics-server is running",
		},
		"forbidden": {
			apierrors.NewForbidden(nodes, "", errors.New("no")), load.Denied, "list of nodes in the group metrics.k8s.io",
		},
		"too many requests": {apierrors.NewTooManyRequests("slow down", 7), load.Throttled, "slow down"},
		"an internal error": {apierrors.NewInternalError(errors.New("boom")), load.ServerError, "boom"},
		"a timeout":         {apierrors.NewTimeoutError("late", 0), load.Timeout, "late"},
		"no server":         {&net.OpError{Op: "dial", Err: errors.New("connection refused")}, load.Unreachable, "connection refused"},
		"context deadline":  {context.DeadlineExceeded, load.Timeout, "deadline"},
		"other":             {errors.New("what"), load.Invalid, "what"},
	} {
		t.Run(name, func(t *testing.T) {
			now := noon
			_, err := newSource(t, &api{err: tc.err}, &now).Read(t.Context())
			if load.ReasonOf(err) != tc.reason || !strings.Contains(err.Error(), tc.want) || !errors.Is(err, tc.err) {
				t.Errorf("%v (%s), want %s (%s)", err, load.ReasonOf(err), tc.want, tc.reason)
			}
			var typed *load.Error
			if name == "too many requests" && (!errors.As(err, &typed) || typed.RetryAfter != 7*time.Second) {
				t.Errorf("retry after %v", typed)
			}
		})
	}
}

func TestNewErrors(t *testing.T) {
	nodes := func() ([]*v1.Node, error) { return nil, nil }
	for _, config := range []Config{{}, {Metrics: &api{}}, {Nodes: nodes}, {Metrics: &api{}, Nodes: nodes, Window: time.Millisecond}} {
		if _, err := New(config); err == nil {
			t.Errorf("%+v: no error", config)
		}
	}
}

// TestClockJumps checks that metrics are used again with the next sample after the clocks of the API and of
// this process were an hour ahead.
func TestClockJumps(t *testing.T) {
	a, now := &api{}, noon
	s := newSource(t, a, &now)
	for i, jump := range []time.Duration{0, time.Hour, -time.Hour, 15 * time.Second, 15 * time.Second} {
		now = now.Add(jump)
		a.items = []metricsv1beta1.NodeMetrics{metrics("a", now, "1", "4Gi")}
		reading, err := s.Read(t.Context())
		if err != nil || !reading.Time.Equal(now) || len(reading.Nodes) != 1 {
			t.Errorf("read %d: %d nodes at %s, %v; want one at %s", i, len(reading.Nodes), reading.Time, err, now)
		}
	}
}
