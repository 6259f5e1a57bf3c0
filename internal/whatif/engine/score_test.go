package engine

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

func node(name, cpu string) *v1.Node {
	return schedtest.Node(name, "cpu", cpu, "memory", "64Gi", "pods", "110")
}

func pod(name, node, request, limit string) *v1.Pod {
	pod := schedtest.CPU(name, node, request, limit)
	pod.Spec.SchedulerName = v1.DefaultSchedulerName
	return pod
}

func newEngine(t *testing.T, cluster Cluster, options Options) *Engine {
	t.Helper()
	if options.Config == nil {
		cfg, err := DefaultConfig()
		must.Succeed(t, err)
		options.Config = cfg
	}
	e, err := New(t.Context(), cluster, options)
	must.Succeed(t, err)
	return e
}

func TestScore(t *testing.T) {
	running := pod("running", "b", "1", "8")
	e := newEngine(t, Cluster{Nodes: []*v1.Node{node("c", "1"), node("b", "8"), node("a", "8")}, Running: []*v1.Pod{running}}, Options{})
	scores, err := e.Score(t.Context(), pod("p", "", "2", "4"), "")
	must.Succeed(t, err)
	if scores.Selected != "a" {
		t.Errorf("selected %s, want a", scores.Selected)
	}
	var order []string
	for _, n := range scores.Nodes {
		order = append(order, n.Name)
		total := int64(0)
		for _, s := range n.Plugins {
			total += s.Score * s.Weight
		}
		if total != n.Total {
			t.Errorf("%s: the sum of the plugins is %d, the total %d", n.Name, total, n.Total)
		}
	}
	if got := strings.Join(order, " "); got != "c b a" {
		t.Errorf("order %s, want that of the nodes in the cluster", got)
	}
	if c := scores.Nodes[0]; c.Feasible || c.Reason != "Insufficient cpu" || len(c.Plugins) != 0 {
		t.Errorf("node c, which is too small: %+v", c)
	}
	// CPU: (8 - 4) x 100 / 8 = 50; memory: the pod has no limit and counts with
	// allocatable, (64 - 64) x 100 / 64 = 0. On b: (8 - 12) x 100 / 8 = -50, and
	// (64 - 128) x 100 / 64 = -100.
	for name, want := range map[string]PluginScore{"a": {Raw: 50, Score: 100, Weight: 1}, "b": {Raw: -150, Score: 0, Weight: 1}} {
		for _, n := range scores.Nodes {
			if n.Name == name && n.Plugins["NodeResourcesLimits"] != want {
				t.Errorf("%s: %+v, want %+v", name, n.Plugins["NodeResourcesLimits"], want)
			}
		}
	}
}

func TestScoreIgnoresStaleLoad(t *testing.T) {
	measured := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	reading := &load.Reading{Time: measured, Nodes: map[string]load.Node{"a": {CPU: load.Utilization{Mean: 0.9}, HasCPU: true}}}
	for name, tc := range map[string]struct {
		now  time.Time
		want string
	}{"fresh": {measured.Add(5 * time.Minute), "b"}, "stale": {measured.Add(5*time.Minute + time.Second), "a"}} {
		t.Run(name, func(t *testing.T) {
			clock := func() time.Time { return tc.now }
			e := newEngine(t, Cluster{Nodes: []*v1.Node{node("a", "8"), node("b", "8")}}, Options{Load: reading, Clock: clock})
			scores, err := e.Score(t.Context(), pod("p", "", "2", "2"), "")
			if err != nil || scores.Selected != tc.want {
				t.Errorf("selected %s, want %s (%v)", scores.Selected, tc.want, err)
			}
		})
	}
}

func TestScoreUnschedulable(t *testing.T) {
	e := newEngine(t, Cluster{Nodes: []*v1.Node{node("a", "1"), node("b", "1")}}, Options{})
	scores, err := e.Score(t.Context(), pod("p", "", "2", "2"), "")
	if err != nil || scores.Selected != "" || len(scores.Nodes) != 2 {
		t.Errorf("%+v, %v", scores, err)
	}
	if got, want := scores.Reason(""), "The pod fits on no node: Insufficient cpu on 2 of 2."; got != want {
		t.Errorf("reason %q, want %q", got, want)
	}
}

func TestScoreUnknownProfile(t *testing.T) {
	e := newEngine(t, Cluster{Nodes: []*v1.Node{node("a", "1")}}, Options{})
	_, err := e.Score(t.Context(), pod("p", "", "1", "1"), "other")
	if want := `pod default/p: no profile for scheduler name "other": must be one of default-scheduler; keep one profile, which takes all pods, ` +
		"or add one of this name"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestReason(t *testing.T) {
	scores := func(a, b int64) PodScores {
		plugins := func(score int64) map[string]PluginScore {
			return map[string]PluginScore{"P": {Raw: -score, Score: score, Weight: 2}, "Q": {Score: 7, Weight: 1}}
		}
		return PodScores{Nodes: []NodeScores{
			{Name: "a", Feasible: true, Total: 2*a + 7, Plugins: plugins(a)},
			{Name: "b", Feasible: true, Total: 2*b + 7, Plugins: plugins(b)},
			{Name: "c", Reason: "too small"},
		}}
	}
	only := scores(1, 2)
	only.Nodes = only.Nodes[1:]
	for name, tc := range map[string]struct {
		scores       PodScores
		chosen, want string
	}{
		"one higher": {scores(100, 40), "a", "a scores 207, b scores 87: P +120 (-100 against -40)."},
		"equal":      {scores(40, 40), "b", "b and a both score 87; one of them is selected at random."},
		"only node":  {only, "b", "b is the only node on which the pod fits."},
		"not bound":  {scores(1, 2), "", "The pod is not bound, although it fits on b."},
		"outdated": {
			scores(40, 100), "a",
			"a scores 87, b scores 207: P -120 (-40 against -100). The scores have changed since the pod was scheduled.",
		},
		"no nodes": {PodScores{}, "", "The pod fits on no node: there are no nodes."},
		"fits none": {
			PodScores{Nodes: []NodeScores{{Name: "c", Reason: "too small"}}}, "", "The pod fits on no node: too small on 1 of 1.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.scores.Reason(tc.chosen); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestOrderOfNodes verifies that a node that was removed and added again keeps its position, and that a node that is added later is last.
func TestOrderOfNodes(t *testing.T) {
	e := newEngine(t, Cluster{Nodes: []*v1.Node{node("b", "8"), node("c", "8")}}, Options{})
	must.Succeed(t, e.RemoveNode(t.Context(), node("b", "8")))
	e.AddNode(t.Context(), node("b", "8"))
	e.AddNode(t.Context(), node("a", "8"))
	scores, err := e.Score(t.Context(), pod("p", "", "2", "4"), "")
	must.Succeed(t, err)
	var order []string
	for _, n := range scores.Nodes {
		order = append(order, n.Name)
	}
	if got := strings.Join(order, " "); got != "b c a" {
		t.Errorf("order %s, want b c a", got)
	}
}
