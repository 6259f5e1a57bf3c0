package replay

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// recordedNode returns a node of 4 cores and 16 GiB.
func recordedNode(name string, appeared, gone int64) recording.Node {
	amounts := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("4"), v1.ResourceMemory: resource.MustParse("16Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	return recording.Node{Appeared: appeared, Gone: gone, Object: &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts},
	}}
}

// recordedPod returns a pod that requests cores and GiB, and used as many cores and GiB from its first step on.
func recordedPod(name string, cores string, created, scheduled, ended int64, node string, used ...float64) recording.Pod {
	p := recording.Pod{Created: created, Scheduled: scheduled, Started: scheduled, Ended: ended, Node: node, Object: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cores), v1.ResourceMemory: resource.MustParse("1Gi")},
		}}}},
	}}
	first := int(max(scheduled, 0)+59) / 60
	for i, value := range used {
		p.CPU.Set(first+i, value*1000)
		p.Memory.Set(first+i, value*gib)
	}
	return p
}

// inputOf returns a recording of ten minutes as input.
func inputOf(t *testing.T, o recording.Source, nodes []recording.Node, pods []recording.Pod) recording.Input {
	t.Helper()
	from := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	in, err := (&recording.Recording{
		About: recording.About{From: from, To: from.Add(10 * time.Minute), Step: 60}, Nodes: nodes, Pods: pods,
	}).Part(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return in.Input(o)
}

const never = recording.Never

// TestRecording replays ten minutes, once with the recorded placements and once with the scheduler:
//
//	a, b   nodes; b is removed at 300 s
//	old    runs on a since before the start, requests 3 cores of 4 and uses 2
//	job    is created at 60 s, waits 30 s in the recording, and ran on a from 90 to 330 s, with 3 cores from 120 s on.
//	       The scheduler places it on b at 60 s, as only that has 2 cores free, from where it is evicted at 300 s, its
//	       end. On a, 2 + 3 cores of 4 are overload from 120 s on, 4 minutes.
//	large  is created at 0 s, requests 5 cores, and is deleted at 120 s
//	stuck  is created at 240 s, requests 5 cores, and waits at the end, for 360 s
func TestRecording(t *testing.T) {
	nodes := []recording.Node{recordedNode("a", -1, never), recordedNode("b", -1, 300)}
	nodes[1].Object.Labels = map[string]string{"disk": "ssd"} // another kind of node
	pods := []recording.Pod{
		recordedPod("old", "3", -100, -90, never, "a", 2, 2, 2, 2, 2, 2, 2, 2, 2, 2),
		recordedPod("large", "5", 0, never, 120, ""),
		recordedPod("job", "2", 60, 90, 330, "a", 3, 3, 3, 3),
		recordedPod("stuck", "5", 240, never, never, ""),
	}
	o := options(t, "default", "constant:mean=1", 1)
	measured := outcomeOf(t, inputOf(t, recording.Source{Measured: true}, nodes, pods), o)
	if measured.OverloadMinutes != 4 || measured.NodesUsedPeak != 1 || measured.Unschedulable != 2 || measured.Churn != 0 {
		t.Errorf("measured: %+v", measured.Outcome)
	}
	// 30, 120 and 360 s.
	if want := 510.0 / 3; measured.PendingSeconds.Mean != want || measured.Seconds != 600 {
		t.Errorf("measured: pending %+v, want a mean of %v", measured.PendingSeconds, want)
	}
	simulated := outcomeOf(t, inputOf(t, recording.Source{}, nodes, pods), o)
	if simulated.OverloadMinutes != 0 || simulated.NodesUsedPeak != 2 || simulated.Unschedulable != 2 || simulated.Churn != 0 ||
		simulated.Recorded.NodesChanged != 1 {
		t.Errorf("simulated: %+v", simulated.Outcome)
	}
	if want := 480.0 / 3; simulated.PendingSeconds.Mean != want {
		t.Errorf("simulated: pending %+v, want a mean of %v", simulated.PendingSeconds, want)
	}
	if want := (result.Placements{Other: 1}); simulated.Recorded.Placements != want {
		t.Errorf("placements %+v, want %+v", simulated.Recorded.Placements, want)
	}
	if want := map[string]int{"Insufficient cpu": 2}; !cmp.Equal(simulated.Reasons, want) {
		t.Errorf("reasons %v, want %v", simulated.Reasons, want)
	}
	// The load of a is 0.5 in six steps and 1.25 in four steps; the load of b is 0 in its five steps.
	got := measured.Recorded.CPULoad
	if want := (0.5*6 + 1.25*4) / 15; math.Abs(got.Max-1.25) > 0.002 || math.Abs(got.Mean-want) > 0.002 || math.Abs(got.P50-0.5) > 0.002 {
		t.Errorf("CPU load %+v, want a mean of %v", got, want)
	}
}

// TestParts divides the ten minutes of TestRecording: of the measured overload at 120, 180, 240 and 300 s, three minutes are in the first five,
// in which all pods are created. Of the time of old and job on nodes, 600 and 240 s, the scheduler placed the 240 s of job, which it starts
// at 60 s and evicts at 300 s.
func TestParts(t *testing.T) {
	nodes := []recording.Node{recordedNode("a", -1, never), recordedNode("b", -1, 300)}
	pods := []recording.Pod{
		recordedPod("old", "3", -100, -90, never, "a", 2, 2, 2, 2, 2, 2, 2, 2, 2, 2),
		recordedPod("large", "5", 0, never, 120, ""),
		recordedPod("job", "2", 60, 90, 330, "a", 3, 3, 3, 3),
		recordedPod("stuck", "5", 240, never, never, ""),
	}
	o := options(t, "default", "constant:mean=1", 1)
	o.Parts = 2
	measured := outcomeOf(t, inputOf(t, recording.Source{Measured: true}, nodes, pods), o)
	for i, want := range []result.Outcome{{OverloadMinutes: 3, Unschedulable: 2}, {OverloadMinutes: 1}} {
		if got := measured.Parts[i]; got.OverloadMinutes != want.OverloadMinutes || got.Unschedulable != want.Unschedulable {
			t.Errorf("part %d: %+v", i, got.Outcome)
		}
	}
	if got := measured.Parts[0].PendingSeconds; got != measured.PendingSeconds {
		t.Errorf("pending times %+v, want %+v", got, measured.PendingSeconds)
	}
	simulated := outcomeOf(t, inputOf(t, recording.Source{}, nodes, pods), o)
	if got, want := simulated.Recorded.PlacedShare, 240.0/840; measured.Recorded.PlacedShare != 0 || got != want {
		t.Errorf("shares %v and %v, want 0 and %v", measured.Recorded.PlacedShare, got, want)
	}
}

// TestRecordedNodes has a node that appears at 120 s. A DaemonSet pod runs on it from 120 s on, regardless of the
// scheduler. A pod that was created at 0 s, and ran on a from 450 s on, fits on it at 120 s already. The node is removed at
// 480 s, and the pod is scheduled again at once on a, which is free since 450 s.
func TestRecordedNodes(t *testing.T) {
	controller := true
	daemon := recordedPod("daemon", "100m", 118, 120, 480, "late", 0.1)
	daemon.Object.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &controller},
	}
	nodes := []recording.Node{recordedNode("a", -1, never), recordedNode("late", 130, 480)}
	pods := []recording.Pod{
		recordedPod("old", "4", -100, -90, 450, "a", 1, 1, 1, 1, 1, 1, 1, 1),
		recordedPod("waits", "2", 0, 450, never, "a", 1, 1, 1),
		daemon,
	}
	got := outcomeOf(t, inputOf(t, recording.Source{}, nodes, pods), options(t, "default", "constant:mean=1", 1))
	// Scheduled on late at 120 s: a scrape saw the node after the first pod was scheduled on it. The daemon waited 2 s.
	if got.PendingSeconds.Mean != (120+2)/2.0 || got.Unschedulable != 0 || got.Churn != 1 || got.Recorded.NodesChanged != 1 {
		t.Errorf("%+v, want pending times of 120 s and 2 s and one eviction", got.Outcome)
	}
	if want := (result.Placements{Same: 1}); got.Recorded.Placements != want { // the nodes are interchangeable
		t.Errorf("placements %+v, want %+v", got.Recorded.Placements, want)
	}
}

// TestReschedule verifies that pods that had a node at the start are placed by the scheduler, which spreads them, and that
// their usage keeps its time: both use four cores from 300 s on.
func TestReschedule(t *testing.T) {
	nodes := []recording.Node{recordedNode("a", -1, never), recordedNode("b", -1, never)}
	pods := []recording.Pod{
		recordedPod("p", "1", -100, -90, never, "a", 0, 0, 0, 0, 0, 4, 4, 4, 4, 4),
		recordedPod("q", "1", -100, -90, never, "a", 0, 0, 0, 0, 0, 4, 4, 4, 4, 4),
	}
	o := options(t, "default", "constant:mean=1", 1)
	if got := outcomeOf(t, inputOf(t, recording.Source{}, nodes, pods), o); got.OverloadMinutes != 5 || got.NodesUsedPeak != 1 {
		t.Errorf("%+v, want both pods on a", got.Outcome)
	}
	got := outcomeOf(t, inputOf(t, recording.Source{Reschedule: true, Pack: 1}, nodes, pods), o)
	if got.OverloadMinutes != 0 || got.NodesUsedPeak != 2 || got.Scheduled != 2 || got.Recorded.CPULoad.Max > 1 {
		t.Errorf("%+v, %+v, want a pod on each node", got.Outcome, got.Recorded)
	}
}

// TestEvictedPodsWait has two pods of 2 cores on a node that is removed at 300 s, and no other place for them:
//
//	moved    runs on the node from the start, and waits from 300 s until the end at 60 + 600 s, for 360 s
//	deleted  arrives at 60 s, is scheduled at once, and is deleted at 420 s after it has waited for 120 s
//
// None counts as scheduled, and each has one pending time: (360 + 120) / 2 = 240 s on average. The input does not change: a second
// run has the same result.
func TestEvictedPodsWait(t *testing.T) {
	in := completed(generate.NewCluster{
		Nodes: []recording.Node{machine("a", 1, 16), machine("b", 4, 16)},
		Pods:  []generate.NewPod{needs("moved", 2, 1, 0, never), needs("deleted", 2, 1, 60, never)},
	}, generate.Limits{CPU: 2, Memory: 2}, 1)
	in.Nodes[1].Gone = 300
	in.Pods[0].Object.Spec.NodeName = "b"
	in.Pods[1].Recorded = &recording.Recorded{Deleted: 420}
	for _, run := range []string{"first", "second"} {
		got := outcomeOf(t, in, options(t, "default", "constant:mean=1", 1))
		if got.Scheduled != 0 || got.Unschedulable != 2 || got.Churn != 2 || got.PendingSeconds.Mean != 240 {
			t.Errorf("%s run: %d scheduled, %d unschedulable, %d evicted, pending %+v",
				run, got.Scheduled, got.Unschedulable, got.Churn, got.PendingSeconds)
		}
	}
}
