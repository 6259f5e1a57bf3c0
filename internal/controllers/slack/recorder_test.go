package slack

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// recorded is a time at which recorders of tests begin.
var recorded = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

// after returns a time after the begin of the recording.
func after(seconds int) metav1.Time {
	return metav1.NewTime(recorded.Add(time.Duration(seconds) * time.Second))
}

// scheduledPod returns a running pod that was created, and then got a node, seconds after the begin of the recording.
func scheduledPod(name, node string, created, scheduled int) *v1.Pod {
	pod := newPod(name, node)
	pod.UID, pod.CreationTimestamp = types.UID(name), after(created)
	pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: after(scheduled)}}
	return pod
}

// ended returns a copy of a pod that succeeded.
func ended(pod *v1.Pod, seconds int) *v1.Pod {
	pod = pod.DeepCopy()
	pod.Status.Phase = v1.PodSucceeded
	pod.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{
		Terminated: &v1.ContainerStateTerminated{FinishedAt: after(seconds)},
	}}}
	return pod
}

// TestRecorder checks the history and the outcome of pods of each kind.
func TestRecorder(t *testing.T) {
	placeholder, daemon := scheduledPod("placeholder", "web", 5, 6), scheduledPod("daemon", "web", 5, 6)
	placeholder.Labels = map[string]string{slack.PlaceholderLabel: "web"}
	daemon.OwnerReferences = []metav1.OwnerReference{{Kind: "DaemonSet", APIVersion: "apps/v1", Controller: new(true)}}
	manifest := scheduledPod("manifest", "web", 5, 6)
	manifest.Status.Conditions = nil
	r := newRecorder(recorded)
	var counted []string
	for _, pod := range []*v1.Pod{
		scheduledPod("old", "web", -100, -90), scheduledPod("waiting", "web", -100, 20), // got its node 120 s after its creation
		scheduledPod("at-once", "web", 5, 15), scheduledPod("waited", "web", 5, 16), ended(scheduledPod("job", "web", 30, 31), 91),
		ended(scheduledPod("before", "web", -50, -40), -10), scheduledPod("elsewhere", "other", 5, 6), newPod("pending", ""),
		placeholder, daemon, manifest,
	} {
		if p, ok := recordOf(pod, false, after(100).Time); ok && r.observe(p, pod.Spec.NodeName == "web") {
			counted = append(counted, fmt.Sprint(pod.Name, " ", p.wait()))
		}
	}
	if diff := cmp.Diff([]string{"waiting 120", "at-once 10", "waited 11", "job 1"}, counted); diff != "" {
		t.Errorf("counted: -want +got:\n%s", diff)
	}
	const gib = 4 << 30
	want := &slack.History{Start: recorded, Seconds: 100, Pods: []slack.HistoryPod{
		{Arrival: -100, Duration: math.MaxInt64, MilliCPU: 1000, Memory: gib},
		{Arrival: -100, Duration: math.MaxInt64, MilliCPU: 1000, Memory: gib},
		{Arrival: 5, Duration: math.MaxInt64, MilliCPU: 1000, Memory: gib},
		{Arrival: 5, Duration: math.MaxInt64, MilliCPU: 1000, Memory: gib},
		{Arrival: 30, Duration: 60, MilliCPU: 1000, Memory: gib},
	}}
	if diff := cmp.Diff(want, r.history(after(100).Time)); diff != "" {
		t.Errorf("history: -want +got:\n%s", diff)
	}
	// Waits of 1, 10, 11 and 120 s: two pods within 10 s.
	wantOutcome := &v1alpha1.Outcome{
		From: after(0), To: after(100), AtOnce: 2, Waited: 2, P99WaitSeconds: 120, LongestWaitSeconds: 120, PlaceholderHours: "0",
	}
	if diff := cmp.Diff(wantOutcome, r.outcome(after(100).Time)); diff != "" {
		t.Errorf("outcome: -want +got:\n%s", diff)
	}
	// 24 hours and 16 s after the begin, the pod that got its node at 15 s is no longer in the period.
	if got := r.outcome(after(24*3600 + 16).Time); got.AtOnce != 1 || got.Waited != 2 || !got.From.Equal(new(after(16))) {
		t.Errorf("outcome after a day: %+v", got)
	}
	// After seven days and 91 s, the job is no longer in the history.
	if got := r.history(after(7*24*3600 + 91).Time); len(got.Pods) != 4 || got.Seconds != 7*24*3600 || got.Pods[3].Arrival != -86 {
		t.Errorf("history after seven days and 91 s: %+v", got)
	}
}

// TestRefusedPod checks that a pod that a kubelet has refused, without containers, ended when it got its node, and not when it is deleted.
func TestRefusedPod(t *testing.T) {
	pod := scheduledPod("refused", "web", 5, 6)
	pod.Status.Phase = v1.PodFailed
	for _, isDeleted := range []bool{false, true} {
		if p, ok := recordOf(pod, isDeleted, after(1000).Time); !ok || p.end != secondsOf(after(6).Time) {
			t.Errorf("deleted %t: %+v, %t", isDeleted, p, ok)
		}
	}
}

// TestPodsCountOnce checks that a pod counts once, whatever the order and the repetition of its events, and also if its node is known
// late: then by an event after it.
func TestPodsCountOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRecorder(recorded)
		want, got := map[string]int{}, map[string]int{}
		isKnown := map[string]bool{"web": true}
		for step := range rapid.IntRange(1, 60).Draw(rt, "steps") {
			i := rapid.IntRange(0, 5).Draw(rt, "pod")
			name, node := fmt.Sprint("pod-", i), []string{"web", "web", "web", "late", "late", "other"}[i]
			kind := rapid.SampledFrom([]string{"pending", "scheduled", "ended", "deleted", "node"}).Draw(rt, "kind")
			pod := scheduledPod(name, node, 5, 50)
			switch kind {
			case "pending":
				pod = newPod(name, "")
			case "ended":
				pod = ended(pod, 60)
			case "node":
				isKnown["late"] = true
				continue
			}
			p, ok := recordOf(pod, kind == "deleted", after(100+step).Time)
			if ok != (kind != "pending") {
				rt.Fatalf("%s is recorded: %t", kind, ok)
			}
			if ok && isKnown[node] {
				want[name] = 1
			}
			if ok && r.observe(p, isKnown[node]) {
				got[name]++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Errorf("counts: -want +got:\n%s", diff)
		}
	})
}

// TestHold checks placeholder hours and their price: 4 placeholders for 1.5 hours at 0.2 per hour, then 2 without a price.
func TestHold(t *testing.T) {
	r := newRecorder(recorded)
	r.hold(recorded, 4, 0.2)
	r.hold(after(3600).Time, 4, 0.2)
	if since := r.hold(after(5400).Time, 2, math.NaN()); since.Placeholders != 2 || since.Price != 0.1 {
		t.Errorf("the half hour has %+v, want 4 x 0.5 hours, and 0.1", since)
	}
	if got := r.outcome(after(5400).Time); got.PlaceholderHours != "6" || got.Price != "0.3" {
		t.Errorf("with a price: %+v", got)
	}
	r.hold(after(9000).Time, 0, math.NaN())
	if got := r.outcome(after(9000).Time); got.PlaceholderHours != "8" || got.Price != "" {
		t.Errorf("an hour without a price: %+v", got)
	}
	// With 3 placeholders, every period of 24 hours has 72 hours, whatever part of the first hour is in it.
	r = newRecorder(recorded)
	for minute := range 60 * 60 {
		now := after(60 * minute).Time
		if r.hold(now, 3, math.NaN()); minute > 25*60 {
			if got := r.outcome(now); got.PlaceholderHours != "72" {
				t.Fatalf("after %d minutes: %+v", minute, got)
			}
		}
	}
	if len(r.Hours) != 25 {
		t.Errorf("%d hours are kept, want 25", len(r.Hours))
	}
}

// TestNextOutcome checks that an outcome changes at most once in five minutes, and not if only the period changed.
func TestNextOutcome(t *testing.T) {
	r := newRecorder(recorded)
	add := func(name string, at int) {
		p, _ := recordOf(scheduledPod(name, "web", at, at), false, after(at).Time)
		r.observe(p, true)
	}
	if got := r.nextOutcome(nil, after(1).Time); got != nil {
		t.Errorf("without pods: %+v", got)
	}
	add("a", 2)
	first := r.nextOutcome(nil, after(3).Time)
	if first == nil || first.AtOnce != 1 {
		t.Fatalf("first outcome %+v", first)
	}
	if got := r.nextOutcome(first, after(1000).Time); got != first {
		t.Errorf("only the period changed: %+v", got)
	}
	add("b", 4)
	if got := r.nextOutcome(first, after(3+299).Time); got != first {
		t.Errorf("after 299 s: %+v", got)
	}
	if got := r.nextOutcome(first, after(3+300).Time); got.AtOnce != 2 || !got.To.Equal(new(after(303))) {
		t.Errorf("after 300 s: %+v", got)
	}
}

// fill records pods of the pool: a number that ended, one every four seconds, and a number that run. Gates held every second pod.
func fill(t testing.TB, ended, running int) *recorder {
	t.Helper()
	r := newRecorder(recorded)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range ended + running {
		at := secondsOf(recorded) + uint32(i)*4
		p := podRecord{
			podID: podID{random.Uint32() | 1, at}, gated: uint32(i % 2), scheduled: at + uint32(i%2) + uint32(random.IntN(3)),
			milliCPU: uint32(random.IntN(40)) * 100, mebibytes: 512,
		}
		if i < ended {
			p.end = p.scheduled + 1 + uint32(random.IntN(7200))
		}
		if !r.observe(p, true) {
			t.Fatalf("pod %d does not count", i)
		}
	}
	return r
}

// TestRecorderIsBounded checks that a recorder has at most 100,000 pods: it loses the pods that ended first, and records no more
// pods if all of them run.
func TestRecorderIsBounded(t *testing.T) {
	r := fill(t, maxRecords+5, 100)
	running := 0
	for _, p := range r.records {
		if p.end == 0 {
			running++
		}
	}
	if len(r.records) > maxRecords || len(r.records) < maxRecords*8/10 || running != 100 || r.from == secondsOf(recorded) {
		t.Errorf("%d records, %d of them run, from %d", len(r.records), running, r.from)
	}
	r = fill(t, 0, maxRecords)
	p, _ := recordOf(scheduledPod("more", "web", 1, 2), false, recorded)
	if r.observe(p, true) || len(r.records) != maxRecords || r.from != secondsOf(recorded) {
		t.Errorf("%d records from %d", len(r.records), r.from)
	}
}

// TestSavedRecorder checks that encoding keeps a recorder, that a size limit removes the oldest pods, and that invalid data is an
// error.
func TestSavedRecorder(t *testing.T) {
	pool := newPolicy("web", "web").Spec.Pool
	r := fill(t, 500, 100)
	r.hold(recorded, 3, 0.5)
	r.hold(after(600).Time, 3, 0.5)
	now := after(3000).Time
	data, err := r.clone().encode(pool, now, kube.MaxSaved)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decode(data, pool)
	if err != nil || got.ended != secondsOf(now) || len(got.index) != 100 {
		t.Fatalf("%v, %+v", err, got)
	}
	if diff := cmp.Diff(r.history(now), got.history(now)); diff != "" {
		t.Errorf("history: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(r.outcome(now), got.outcome(now)); diff != "" {
		t.Errorf("outcome: -want +got:\n%s", diff)
	}
	if other, err := decode(data, v1alpha1.Pool{}); other != nil || err != nil {
		t.Errorf("the recorder of another pool: %v, %v", other, err)
	}
	limit := len(data) / 2
	if data, err = r.clone().encode(pool, now, limit); err != nil || len(data) > limit || len(data) < limit/2 || len(r.records) != 600 {
		t.Fatalf("%d bytes of %d, %d pods remain in memory: %v", len(data), limit, len(r.records), err)
	}
	if got, err = decode(data, pool); err != nil || got.from <= secondsOf(recorded) || len(got.index) != 100 || len(got.records) < 200 {
		t.Errorf("the shorter history: %v, from %d, %d pods, %d run", err, got.from, len(got.records), len(got.index))
	}
	// The 100 pods that run need more than 500 bytes: a new tracker finds them. They do not count again.
	if data, err = r.clone().encode(pool, now, 500); err != nil || len(data) > 500 {
		t.Fatalf("a limit of 500 bytes: %d bytes, %v", len(data), err)
	}
	got, err = decode(data, pool)
	if err != nil || len(got.records) != 0 || got.from <= secondsOf(recorded) || got.observe(r.records[599], true) {
		t.Errorf("without the pods that run: %v, from %d, %d pods", err, got.from, len(got.records))
	}
	const small = "records without pods need "
	if _, err := r.clone().encode(pool, now, 10); err == nil || !strings.Contains(err.Error(), small) {
		t.Errorf("a limit of 10 bytes: %v, want %s", err, small)
	}
	for want, s := range map[string]savedPool{
		"version: invalid value 2: must be 1":                       {Version: 2},
		"pods[0]: invalid values [1 2 0 0 0 0 0]":                   {Version: 1, Pods: [][7]uint32{{1, 2}}},
		"pods[0]: invalid values [2 1 0 0 0 0 2]":                   {Version: 1, Pods: [][7]uint32{{2, 1, 0, 0, 0, 0, 2}}},
		"pods[1]: invalid values [4294967295 0 0 0 0 0 0]":          {Version: 1, Pods: [][7]uint32{{1}, {math.MaxUint32}}},
		"has 0 pods and 26 hours, maximum is 100000 and 25":         {Version: 1, Hours: make([]heldHour, 26)},
		"has 100001 pods and 0 hours, maximum is 100000 and 25":     {Version: 1, Pods: make([][7]uint32, maxRecords+1)},
		"pods[0]: invalid values [4294967295 0 4294967295 0 0 0 0]": {Version: 1, Pods: [][7]uint32{{math.MaxUint32, 0, math.MaxUint32}}},
	} {
		data, err := kube.Compress(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(data, v1alpha1.Pool{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// FuzzDecode checks that any decoded recorder can be used, and encoded again.
func FuzzDecode(f *testing.F) {
	f.Add(`{"version":1,"from":5,"saved":90,"hours":[{"hour":1,"placeholders":2}],"pods":[[7,1,3,1,2,0],[1,0,0,1,2,9]]}`)
	f.Fuzz(func(t *testing.T, text string) {
		data, err := kube.Compress(json.RawMessage(text))
		if err != nil {
			return
		}
		r, err := decode(data, v1alpha1.Pool{})
		if err != nil || r == nil {
			return
		}
		want := r.history(after(0).Time)
		if data, err = r.clone().encode(v1alpha1.Pool{}, after(0).Time, math.MaxInt); err != nil {
			return // a sum of hours that is not finite
		}
		again, err := decode(data, v1alpha1.Pool{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, again.history(after(0).Time)); diff != "" {
			t.Errorf("history: -want +got:\n%s", diff)
		}
	})
}

// TestRecorderMemory checks that 100,000 pods, 10,000 of them running, need at most 90 bytes each, and 900 KiB when saved.
func TestRecorderMemory(t *testing.T) {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	r := fill(t, maxRecords*9/10, maxRecords/10)
	perPod := float64(heap()-before) / maxRecords
	data, err := r.clone().encode(v1alpha1.Pool{}, recorded, math.MaxInt)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.0f bytes in memory and %.1f bytes saved per pod", perPod, float64(len(data))/maxRecords)
	if perPod > 90 || len(r.records) != maxRecords || len(data) > kube.MaxSaved {
		t.Errorf("%.0f bytes per pod, %d bytes saved for %d pods", perPod, len(data), len(r.records))
	}
}

// BenchmarkRecord measures the parts of an event of a pod that is recorded already: reading the pod once, and each policy.
func BenchmarkRecord(b *testing.B) {
	r, pod := newRecorder(recorded), scheduledPod("a", "web", 1, 2)
	p, _ := recordOf(pod, false, recorded)
	b.Run("pod", func(b *testing.B) {
		for b.Loop() {
			recordOf(pod, false, recorded)
		}
	})
	b.Run("policy", func(b *testing.B) {
		for b.Loop() {
			r.observe(p, true)
		}
	})
	b.Run("beyond the maximum", func(b *testing.B) {
		full := fill(b, 0, maxRecords)
		for b.Loop() {
			full.observe(p, true)
		}
	})
}
