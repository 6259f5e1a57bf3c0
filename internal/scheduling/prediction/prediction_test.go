package prediction

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// rig is a keeper over a node with two pods, which request a CPU each, and its stores.
type rig struct {
	keeper *Keeper
	nodes  *load.Store
	pods   *load.PodStore
	now    time.Time
	// missed has the predictions of CPU that were reported: predicted and measured.
	missed [][2]float64
}

func newRig() *rig {
	r := &rig{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	node := schedtest.Node("n", "cpu", "4", "memory", "16Gi")
	var pods []*v1.Pod
	for _, name := range []string{"web-1", "web-2"} {
		pod := schedtest.CPU(name, "n", "1", "")
		controller := true
		pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: &controller}}
		pods = append(pods, pod)
	}
	clock := func() time.Time { return r.now }
	r.nodes, r.pods = load.NewStore(time.Hour, clock), load.NewPodStore(time.Hour, clock)
	r.keeper = New(predict.Options{HistoryWeight: 1, HalfLife: 3600},
		func(visit func(*v1.Node, []*v1.Pod)) { visit(node, pods) },
		func(resource v1.ResourceName, predicted, measured float64) {
			if resource == v1.ResourceCPU {
				r.missed = append(r.missed, [2]float64{predicted, measured})
			}
		})
	r.keeper.Watch(r.nodes, r.pods)
	return r
}

// usage stores a reading in which each pod uses the given millicores.
func (r *rig) usage(t *testing.T, millicores float64) {
	t.Helper()
	reading := load.PodReading{Time: r.now, Window: time.Minute}
	for _, name := range []string{"web-1", "web-2"} {
		reading.Pods = append(reading.Pods, load.PodUsage{Namespace: "default", Name: name, CPU: millicores, Memory: 1 << 30})
	}
	must.Succeed(t, r.pods.Put(reading))
}

// load stores the utilization of the node.
func (r *rig) load(t *testing.T, mean float64) {
	t.Helper()
	reading := load.Reading{Time: r.now, Window: time.Minute, Nodes: map[string]load.Node{"n": schedtest.CPULoad(mean, 0.01)}}
	must.Succeed(t, r.nodes.Put(reading))
}

// ratio returns the expected usage of the workload, as a multiple of its request.
func (r *rig) ratio() float64 {
	key := resources.Workload{Namespace: "default", Kind: "ReplicaSet", Name: "web"}.Key()
	return r.keeper.Model().Estimate(key, predict.CPU, 1000).Mean / 1000
}

// TestLearns checks that the keeper learns the usage of pods from the usage itself, from the load of their node, and from both.
func TestLearns(t *testing.T) {
	for name, tc := range map[string]struct {
		usage, load bool
		low, high   float64
	}{
		"nothing":        {false, false, 1, 1},
		"usage":          {true, false, 0.2, 0.35},
		"usage and load": {true, true, 0.2, 0.35},
		"load":           {false, true, 1, 1}, // the shift of the node says it
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig()
			for range 60 {
				r.now = r.now.Add(time.Minute)
				if tc.usage {
					r.usage(t, 200)
				}
				if tc.load {
					r.load(t, 0.1) // 400 of 4000 millicores
				}
			}
			if got := r.ratio(); got < tc.low || got > tc.high {
				t.Errorf("pods are expected to use %.3f of their requests, want %v to %v", got, tc.low, tc.high)
			}
			if workloads, updated := r.keeper.Known(); tc.usage != (workloads == 1) || tc.usage != updated.Equal(r.now) {
				t.Errorf("%d workloads are known, updated %s", workloads, updated)
			}
		})
	}
}

// TestLearnsFromUsageAlone checks that the keeper continues to learn from the usage of pods when the load of nodes is too
// old.
func TestLearnsFromUsageAlone(t *testing.T) {
	r := newRig()
	r.usage(t, 200)
	r.load(t, 0.1)
	r.now = r.now.Add(time.Hour + time.Minute)
	for range 60 {
		r.now = r.now.Add(time.Minute)
		r.usage(t, 600)
	}
	if got := r.ratio(); got < 0.5 || got > 0.7 {
		t.Errorf("pods are expected to use %.3f of their requests, want about 0.6", got)
	}
}

// TestMissed checks that predictions are reported with the measured values: none for the first reading, which has no
// prediction, then within a hundredth of a constant load.
func TestMissed(t *testing.T) {
	r := newRig()
	for range 30 {
		r.now = r.now.Add(time.Minute)
		r.load(t, 0.3)
	}
	if len(r.missed) != 29 {
		t.Fatalf("%d predictions of 30 readings were reported, want 29", len(r.missed))
	}
	if last := r.missed[28]; last[1] != 0.3 || last[0] < 0.29 || last[0] > 0.31 {
		t.Errorf("predicted and measured %v, want 0.3 and about that", last)
	}
}

// TestRestoreIgnoresImpossible checks that histories of workloads whose pods use more than the largest node has, or more pods than any
// cluster has, are ignored: whoever may write the ConfigMap could make each workload seem to fill nodes.
func TestRestoreIgnoresImpossible(t *testing.T) {
	usage := func(mean, pods float64) predict.PastUsage {
		return predict.PastUsage{Pods: pods, Seconds: 1e6, Mean: mean, Request: 1000}
	}
	for _, tc := range []struct {
		cpu, memory predict.PastUsage
		ignored     int
	}{
		{usage(4000, 10), usage(16<<30, 10), 0},
		{usage(4001, 10), usage(1<<30, 10), 1},
		{usage(1000, 10), usage(17<<30, 10), 1},
		{usage(1e18, 1e18), predict.PastUsage{}, 1},
		{usage(1000, 1e7), predict.PastUsage{}, 1},
	} {
		r := newRig()
		forged := predict.Past{Namespace: "default", Kind: "ReplicaSet", Name: "web", CPU: tc.cpu, Memory: tc.memory}
		ignored := r.keeper.Restore([]predict.Past{forged}, time.Now().Add(-time.Hour), time.Now())
		if workloads, _ := r.keeper.Known(); ignored != tc.ignored || workloads != 1-tc.ignored {
			t.Errorf("%+v: ignored %d, known %d", tc, ignored, workloads)
		}
	}
}

// A cluster without nodes, such as one that is scaled to zero, says nothing of what pods can use: the history is kept.
func TestRestoreWithoutNodes(t *testing.T) {
	keeper := New(predict.Options{HistoryWeight: 1, HalfLife: 3600}, func(func(*v1.Node, []*v1.Pod)) {},
		func(v1.ResourceName, float64, float64) {})
	past := predict.Past{Namespace: "default", Kind: "ReplicaSet", Name: "web", CPU: predict.PastUsage{Pods: 1, Seconds: 1e6, Mean: 1000}}
	if ignored := keeper.Restore([]predict.Past{past}, time.Now().Add(-time.Hour), time.Now()); ignored != 0 {
		t.Errorf("%d workloads are ignored", ignored)
	}
}
