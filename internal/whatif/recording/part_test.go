package recording

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

const never = Never

// testStart is the time at which the recordings of the tests start.
var testStart = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// testNode returns a node with 4 cores, of a machine with 5.
func testNode(name string, appeared, gone int64) Node {
	node := schedtest.Node(name, "cpu", "5", "memory", "10Gi")
	node.Status.Allocatable = schedtest.Amounts("cpu", "4", "memory", "10Gi")
	return Node{Appeared: appeared, Gone: gone, Object: node}
}

// testPod returns a pod with a limit of a core.
func testPod(name string, created, scheduled, ended int64, node string) Pod {
	return Pod{Created: created, Scheduled: scheduled, Started: scheduled, Ended: ended, Node: node, Object: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: v1.PodSpec{Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
			Limits: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")},
		}}}},
	}}
}

// prepare returns the part of a recording of an hour.
func prepare(t testing.TB, r Recording, from, to int64) *Part {
	t.Helper()
	r.About = About{From: testStart, To: testStart.Add(time.Hour), Step: 30, Missing: r.About.Missing}
	in, err := r.Part(from, to)
	must.Succeed(t, err)
	return in
}

// TestPartOfRecording takes the second from 600 to 1200 of an hour: times are relative to its start, pods that ended before are
// left out, and later events have not happened.
func TestPartOfRecording(t *testing.T) {
	in := prepare(t, Recording{
		Nodes: []Node{testNode("a", -1, never), testNode("gone", -1, 600), testNode("late", 900, 1100), testNode("later", 1200, never)},
		Pods: []Pod{
			testPod("ended", -50, -40, 600, "a"), testPod("old", -50, -40, 1000, "a"), testPod("waited", 500, 700, 1900, "a"),
			testPod("new", 950, 960, 1150, "late"), testPod("stuck", 1000, 1300, never, "a"), testPod("after", 1200, 1200, never, "a"),
			testPod("lost", 800, 800, never, "gone"), testPod("deleted", 990, never, 1190, ""),
		},
	}, 600, 1200).Input(Source{})
	type pod struct {
		name, node        string
		arrival, duration int64
		waited, deleted   int64
	}
	var got []pod
	for _, p := range in.Pods {
		got = append(got, pod{p.Object.Name, p.Object.Spec.NodeName, p.Arrival, p.Duration, p.Recorded.Waited, p.Recorded.Deleted})
		if p.Requests.CPU != 1000 {
			t.Errorf("%s requests %d millicores, want its limit", p.Object.Name, p.Requests.CPU)
		}
	}
	want := []pod{
		{"old", "a", 0, 400, 0, 0},
		{"waited", "", 0, Never, 100, 0},
		{"new", "", 350, 140, 0, 0}, // 1100 - 960: its node is gone before it ended
		{"stuck", "", 400, Never, 0, 0},
		{"deleted", "", 390, Never, 0, 590},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(pod{})); diff != "" {
		t.Error(diff)
	}
	if len(in.Nodes) != 2 || in.Nodes[1].Appeared != 300 || in.Nodes[1].Gone != 500 || in.End != 600 {
		t.Errorf("nodes %+v, end %d", in.Nodes, in.End)
	}
	text := strings.Join(in.Assumptions, "\n")
	for _, sentence := range []string{
		"recorded from 2026-11-21T12:10:00Z to 2026-11-21T12:20:00Z", "1 pod had a node at the start and keeps it",
		"2 pods never had a node in the recording", "1 pod is left out: the node is not in the recording",
		"1 node appears and 1 node is removed as recorded", "the usage of 5 of 5 pods is not recorded, and generated",
	} {
		if !strings.Contains(text, sentence) {
			t.Errorf("assumptions lack %q:\n%s", sentence, text)
		}
	}
}

// TestMeasured verifies that pods are placed where and when they were recorded, after the time that they waited.
func TestMeasured(t *testing.T) {
	in := prepare(t, Recording{
		Nodes: []Node{testNode("a", -1, never)},
		Pods:  []Pod{testPod("p", -30, 90, 300, "a"), testPod("stuck", 60, never, never, "")},
	}, 0, 0).Input(Source{Measured: true})
	want := []Recorded{{Node: "a", Fixed: true, Waited: 120}, {Fixed: true}}
	got := []Recorded{*in.Pods[0].Recorded, *in.Pods[1].Recorded}
	if !cmp.Equal(want, got) || in.Pods[0].Arrival != 90 || in.Pods[1].Arrival != 60 {
		t.Errorf("%+v at %d and %d", got, in.Pods[0].Arrival, in.Pods[1].Arrival)
	}
}

// TestFixedNode verifies that a pod whose creator chose its node stays on it, whether it runs at the start or arrives later.
func TestFixedNode(t *testing.T) {
	old, fixed := testPod("old", -30, -30, never, "a"), testPod("new", 60, 61, never, "a")
	for _, p := range []*Pod{&old, &fixed} {
		p.Object = p.Object.DeepCopy()
		p.Object.ManagedFields = []metav1.ManagedFieldsEntry{{FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:nodeName":{}}}`)}}
	}
	in := prepare(t, Recording{Nodes: []Node{testNode("a", -1, never)}, Pods: []Pod{old, fixed}}, 0, 0).Input(Source{Reschedule: true})
	if first, second := in.Pods[0], in.Pods[1]; first.Object.Spec.NodeName != "a" || !second.Recorded.Fixed || second.Arrival != 61 {
		t.Errorf("first on %q, second %+v at %d; want both on a", first.Object.Spec.NodeName, *second.Recorded, second.Arrival)
	}
}

// TestScheduledAfterPart has a pod that was scheduled after the end of the part: it waits, in measured runs too.
func TestScheduledAfterPart(t *testing.T) {
	r := Recording{Nodes: []Node{testNode("a", -1, never)}, Pods: []Pod{testPod("p", 60, 700, never, "a")}}
	for measured, want := range map[bool]Recorded{true: {Fixed: true}, false: {}} {
		in := prepare(t, r, 0, 600).Input(Source{Measured: measured})
		if got := *in.Pods[0].Recorded; got != want || in.Pods[0].Arrival != 60 {
			t.Errorf("measured %t: %+v at %d, want %+v", measured, got, in.Pods[0].Arrival, want)
		}
	}
}

// TestRecordedUsage has samples of 30 s from second 90 to 180, with a gap at 150: 100, 200, none and 400 millicores. The pod was
// scheduled at second 80.
func TestRecordedUsage(t *testing.T) {
	p := testPod("p", 80, 80, never, "a")
	p.CPU = NewSeries(3, 100, 200, math.NaN(), 400)
	p.Memory = NewSeries(3, 1, 1, 1, 1)
	r := Recording{Nodes: []Node{testNode("a", -1, never)}, Pods: []Pod{p}}
	in := prepare(t, r, 0, 0).Input(Source{})
	for _, test := range []struct {
		age  int64
		want float64
	}{
		{-600, 100}, {0, 100}, {9, 100}, {10, 100}, {39, 100}, {40, 200}, {70, 200}, {99, 200}, {100, 400}, {3000, 400}, {70, 200}, {0, 100},
	} {
		if cpu, _ := in.Pods[0].Usage.At(test.age, 0); math.Abs(cpu-test.want) > 0.5 {
			t.Errorf("age %d: %v, want %v", test.age, cpu, test.want)
		}
	}
	text := strings.Join(in.Assumptions, "\n")
	if !strings.Contains(text, "1 of 8 usage samples is missing: the value before each gap is repeated") {
		t.Error(text)
	}
}

// TestWithoutGaps compares a series whose gaps are filled with a search, for any steps.
func TestWithoutGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SampledFrom([]float64{math.NaN(), 1, 2, 4, 8}), 0, 20).Draw(t, "values")
		series := NewSeries(5, append([]float64{16}, values...)...)
		filled, gaps := series.withoutGaps()
		if unknown := len(slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return !math.IsNaN(v) })); gaps != unknown {
			t.Fatalf("%d gaps, want %d", gaps, unknown)
		}
		for _, step := range rapid.SliceOfN(rapid.IntRange(0, 40), 1, 20).Draw(t, "steps") {
			want := 16.0
			for i := 5; i <= step; i++ {
				if value, ok := series.At(i); ok {
					want = value
				}
			}
			if got := filled.nearest(step); got != want {
				t.Fatalf("step %d: %v, want %v", step, got, want)
			}
		}
	})
}

// TestInstant reads the cluster at second 120: running pods, waiting pods, and the load of 2 cores of 5 in the last step and 1
// core before.
func TestInstant(t *testing.T) {
	p := testPod("p", -10, -5, 600, "a")
	for step := range 5 {
		p.CPU.Set(step, map[bool]float64{true: 2000, false: 1000}[step == 4])
		p.Memory.Set(step, 1<<30)
	}
	instant := prepare(t, Recording{
		Nodes: []Node{testNode("a", -1, never), testNode("late", 121, never)},
		Pods:  []Pod{p, testPod("waits", 100, 130, never, "a"), testPod("after", 130, 130, never, "a"), testPod("ended", 0, 0, 120, "a")},
	}, 0, 0).At(120)
	objects, reading := instant.Objects, instant.Load
	if len(objects.Running) != 1 || objects.Running[0].Spec.NodeName != "a" || len(objects.Pending) != 1 ||
		objects.Pending[0].Name != "waits" || len(objects.Nodes) != 1 {
		t.Errorf("%+v", objects)
	}
	// Steps 0 to 4: (4 x 0.2 + 0.4) / 5.
	if a := reading.Nodes["a"]; math.Abs(a.CPU.Mean-0.24) > 0.001 || math.Abs(a.Memory.Mean-0.1) > 0.001 {
		t.Errorf("load %+v", a)
	}
	if !reading.Time.Equal(testStart.Add(2 * time.Minute)) {
		t.Errorf("load at %s", reading.Time)
	}
	if used := instant.Usage; len(used.Pods) != 1 || used.Pods[0].Name != "p" || math.Abs(used.Pods[0].CPU-2000) > 2 ||
		used.Pods[0].Memory != 1<<30 || !used.Time.Equal(reading.Time) {
		t.Errorf("usage %+v, want 2000 and 1 GiB of p", used)
	}
	if reading.Window != 5*30*time.Second {
		t.Errorf("the load covers %s, want the five steps since the start", reading.Window)
	}
}

// TestRecordedObjects verifies that a pod whose claim is missing is scheduled without the volume, that a node that is cordoned at
// the end counts as schedulable if a pod was scheduled on it, that the UIDs of pods with the same name differ, and that
// different priorities and pod groups are named.
func TestRecordedObjects(t *testing.T) {
	cordoned := testNode("a", -1, never)
	cordoned.Object.Spec.Unschedulable = true
	cordoned.Object.Spec.Taints = []v1.Taint{
		{Key: "node.kubernetes.io/unschedulable", Effect: v1.TaintEffectNoSchedule}, {Key: "team", Effect: v1.TaintEffectNoSchedule},
	}
	first, second := testPod("web-0", 10, 10, 20, "a"), testPod("web-0", 30, 30, never, "a")
	for _, p := range []*Pod{&first, &second} {
		p.Object.UID = "same"
		p.Object.Spec.Volumes = []v1.Volume{{Name: "data", VolumeSource: v1.VolumeSource{
			PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
		}}}
	}
	priority, group := int32(100), "train"
	second.Object.Spec.Priority = &priority
	second.Object.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &group}
	r := Recording{Nodes: []Node{cordoned}, Pods: []Pod{first, second}}
	in := prepare(t, r, 0, 0).Input(Source{})
	if in.Pods[0].Object.UID == in.Pods[1].Object.UID || len(in.Pods[0].Object.Spec.Volumes) != 0 || len(first.Object.Spec.Volumes) != 1 {
		t.Errorf("%+v", in.Pods[0].Object)
	}
	if spec := in.Nodes[0].Object.Spec; spec.Unschedulable || len(spec.Taints) != 1 || !cordoned.Object.Spec.Unschedulable {
		t.Errorf("node %+v", spec)
	}
	text := strings.Join(in.Assumptions, "\n")
	for _, sentence := range []string{
		"2 pods are scheduled without volumes or devices whose claims are not in the recording", "1 node is cordoned or not ready in the last recorded state",
		"pods have 2 different priorities; preemption is not simulated", "1 pod of pod groups (spec.schedulingGroup) is",
	} {
		if !strings.Contains(text, sentence) {
			t.Errorf("assumptions lack %q:\n%s", sentence, text)
		}
	}
	r.Objects = []kinds.Object{
		{
			Kind: kinds.Of("", "PersistentVolumeClaim"),
			JSON: []byte(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{"name":"data"}}`),
		},
	}
	if in := prepare(t, r, 0, 0).Input(Source{}); len(in.Pods[0].Object.Spec.Volumes) != 1 {
		t.Error("a volume whose claim exists is removed")
	}
	r.Objects = []kinds.Object{
		{Kind: kinds.Of("", "PersistentVolumeClaim"), JSON: []byte(`{"apiVersion":"v1","kind":"PersistentVolumeClaim","metadata":{}}`)},
	}
	r.About = About{From: testStart, To: testStart.Add(time.Hour), Step: 30}
	if _, err := r.Part(0, 0); err == nil || !strings.Contains(err.Error(), "object 1: ") {
		t.Errorf("%v, want the number of the invalid object", err)
	}
}
