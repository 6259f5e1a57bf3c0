package baselines

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// start is the time of the first reading.
var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testNode(name string) *v1.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU:    resource.MustParse("10"),
		v1.ResourceMemory: resource.MustParse("100Gi"),
		v1.ResourcePods:   resource.MustParse("110"),
	}
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts}}
}

// testPod requests one core and 10 GiB, and is limited to twice that.
func testPod(name, node string, bound time.Time) *v1.Pod {
	list := func(cpu, memory string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)}
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: "uid-pending"},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: v1.DefaultSchedulerName, Containers: []v1.Container{{
			Name: "c", Resources: v1.ResourceRequirements{Requests: list("1", "10Gi"), Limits: list("2", "20Gi")},
		}}},
	}
	if node != "" {
		pod.UID = "uid-bound"
		pod.Status.Conditions = []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(bound)},
		}
	}
	return pod
}

const profile = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    score:
      enabled:
      - {name: TargetLoadPacking}
      - {name: LoadVariationRiskBalancing}
      - {name: OriginalLowRiskOverCommitment}
      - {name: LoadAwareScheduling}
      - {name: Dynamic}
`

// TestScores scores two nodes, a and b, of 10 cores and 100 GiB. Node b has no load. Node a has one pod that was bound 30 s
// before the end of the window. Its CPU is used to 0.2 with a deviation of 0.1, its memory to 0.3 with 0.05; an hour and 10
// minutes before, it was 0.5 and 0.4, and half an hour before 0.4 and 0.4.
func TestScores(t *testing.T) {
	cfg, err := config.Decode("profile", []byte(profile))
	if err != nil {
		t.Fatal(err)
	}
	now := start
	e, err := engine.New(t.Context(), engine.Cluster{
		Nodes:   []*v1.Node{testNode("a"), testNode("b")},
		Running: []*v1.Pod{testPod("running", "a", start.Add(-30*time.Second))},
	}, engine.Options{Config: cfg, ExtraPlugins: Registry(Future{}), Clock: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	for _, reading := range []struct {
		before      time.Duration
		cpu, memory float64
	}{{70 * time.Minute, 0.5, 0.4}, {30 * time.Minute, 0.4, 0.4}, {0, 0.2, 0.3}} {
		now = start.Add(-reading.before)
		if err := e.SetLoad(load.Reading{Time: now, Window: 15 * time.Minute, Nodes: map[string]load.Node{"a": {
			CPU: load.Utilization{Mean: reading.cpu, StdDev: 0.1}, Memory: load.Utilization{Mean: reading.memory, StdDev: 0.05},
			HasCPU: true, HasMemory: true,
		}}}); err != nil {
			t.Fatal(err)
		}
	}
	now = start.Add(15 * time.Second)
	scores, err := e.Score(t.Context(), testPod("pending", "", time.Time{}), "")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int64{
		// 2 cores are used, and the pending pod and the unmeasured pod have limits of 2 cores each: 60 % of 10 cores.
		// 40 x 40 / 60 = 26.67.
		TargetLoadPacking: 27,
		// CPU 1 - (0.2 + 0.1 + 0.1)/2 = 0.8; memory 1 - (0.3 + 0.1 + 0.05)/2 = 0.775, rounded.
		LoadVariationRiskBalancing: 78,
		// Both estimates are 0.85 x 2 = 1.7 cores and 0.7 x 20 = 14 GiB. CPU 2 + 3.4 = 5.4 of 10: 46; memory 30 + 28 = 58 of
		// 100: 42.
		LoadAwareScheduling: 44,
		// CPU 0.2 x 0.8 + 0.3 x 0.6 + 0.5 x 0.5 = 0.59; memory 0.2 x 0.7 + 0.3 x 0.6 + 0.5 x 0.6 = 0.62; 60.5. One pod in
		// the last minute is not hot.
		Dynamic: 60,
	} {
		if got := scores.Nodes[0].Plugins[name].Raw; got != want {
			t.Errorf("%s scores %d, want %d", name, got, want)
		}
		if got := scores.Nodes[1].Plugins[name].Raw; got != 0 {
			t.Errorf("%s scores %d without load", name, got)
		}
	}
	// The load is above the requests of 0.1 and below the limits of 0.2 with a risk that TestLowRisk checks: CPU given
	// that it is at most 0.2, memory the same with a mean of 0.3.
	cpu, memory := commitment{0.2, 0.4, 0.1, 0.2}, commitment{0.2, 0.4, 0.1, 0.2}
	want := int64(math.Round(100 * (1 - max(lowRisk(cpu, 0.2, 0.1, true), lowRisk(memory, 0.3, 0.05, true)))))
	if got := scores.Nodes[0].Plugins[LowRiskOverCommitment].Raw; got != want || want == 0 || want == 100 {
		t.Errorf("%s scores %d, want %d", LowRiskOverCommitment, got, want)
	}
}

// TestWindow compares the maximum of a window with the maximum of all values within its length.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := window{length: 10 * time.Second}
		var all []timed
		now := start
		for range rapid.IntRange(1, 50).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(1, 15).Draw(t, "seconds")) * time.Second)
			all = append(all, timed{now, float64(rapid.IntRange(0, 5).Draw(t, "value"))})
			w.add(now, all[len(all)-1].value)
			want := 0.0
			for _, v := range all {
				if now.Sub(v.time) <= w.length {
					want = max(want, v.value)
				}
			}
			if w.max() != want || len(w.values) > 11 {
				t.Fatalf("maximum %v of %v, want %v", w.max(), w.values, want)
			}
		}
	})
}
