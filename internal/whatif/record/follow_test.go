package record

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// after returns a time in seconds after the start.
func after(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }

func newNode(name string, created time.Time) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(created)},
		Status:     v1.NodeStatus{Allocatable: v1.ResourceList{v1.ResourceCPU: resource.MustParse("4")}},
	}
}

// newPod returns a pod that runs on a node since its creation, or that is pending without a node.
func newPod(name, node string, created time.Time) *v1.Pod {
	at := metav1.NewTime(created)
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), CreationTimestamp: at},
		Spec: v1.PodSpec{NodeName: node, Containers: []v1.Container{{
			Name: "c", Env: []v1.EnvVar{{Name: "PASSWORD", Value: "hush-hush"}},
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("100m")}},
		}}},
	}
	if node != "" {
		pod.Status = v1.PodStatus{Phase: v1.PodRunning, StartTime: &at, Conditions: []v1.PodCondition{
			{Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: at},
		}}
	}
	return pod
}

// real is the clock of recordings in real time.
func real(at time.Time) time.Time { return at }

// newRecorder starts a recording in steps of ten seconds.
func newRecorder(t *testing.T, path string, from time.Time) *followRecorder {
	t.Helper()
	file, err := recording.Create(path, recording.About{From: from, To: from, Step: 10})
	must.Succeed(t, err)
	return newFollowRecorder(file, nil, real)
}

// reading returns a usage of 100 millicores and of 1 MiB for each name.
func reading(names ...string) *load.PodReading {
	r := &load.PodReading{}
	for _, name := range names {
		r.Pods = append(r.Pods, load.PodUsage{Namespace: "default", Name: name, CPU: 100, Memory: 1 << 20})
	}
	return r
}

// TestRecorder records, step by step, pods that are created and deleted, also while nothing is recorded, and starts another file after a
// crash.
func TestRecorder(t *testing.T) {
	folder := t.TempDir()
	r := newRecorder(t, filepath.Join(folder, "1.ndjson.gz"), begin)
	observe := func(v view) {
		t.Helper()
		must.Succeed(t, r.observe(v))
	}
	nodes := []*v1.Node{newNode("a", after(-100)), newNode("b", after(-100))}
	old, short, pending := newPod("old", "a", after(-50)), newPod("short", "a", after(11)), newPod("pending", "", after(12))
	observe(view{at: after(0), nodes: nodes, pods: []*v1.Pod{old}, usage: reading("old")})
	// The pod "short" was created and deleted between two steps.
	observe(view{
		at:      after(20),
		nodes:   nodes,
		pods:    []*v1.Pod{old, pending},
		removed: []removal{{short, after(18)}},
		usage:   reading("old", "stranger"),
	})
	must.Succeed(t, r.commit())
	// A crash loses all data after the commit.
	observe(view{at: after(30), nodes: nodes[:1], pods: []*v1.Pod{newPod("lost", "a", after(25))}})
	must.Succeed(t, r.file.Abandon())
	r = newRecorder(t, filepath.Join(folder, "2.ndjson.gz"), after(100))
	bound := newPod("pending", "a", after(12))
	bound.Status.Conditions[0].LastTransitionTime = metav1.NewTime(after(70))
	observe(view{at: after(100), nodes: nodes[:1], pods: []*v1.Pod{bound}, usage: reading("pending")})
	done := bound.DeepCopy()
	done.Status.Phase = v1.PodSucceeded
	done.Status.ContainerStatuses = []v1.ContainerStatus{{State: v1.ContainerState{
		Terminated: &v1.ContainerStateTerminated{FinishedAt: metav1.NewTime(after(105))},
	}}}
	observe(view{at: after(110), nodes: nodes[:1], pods: []*v1.Pod{done}})
	must.Succeed(t, errors.Join(r.commit(), r.file.Finish()))
	got, err := recording.Open(folder)
	must.Succeed(t, err)
	type times struct{ created, scheduled, started, ended int64 }
	want := map[string]times{
		"old":     {-50, -50, -50, 20}, // seen last at 20 s
		"short":   {11, 11, 11, 18},
		"pending": {12, 70, 70, 105},
	}
	if len(got.Pods) != len(want) {
		t.Errorf("%d pods, want %d", len(got.Pods), len(want))
	}
	for _, p := range got.Pods {
		if found := (times{p.Created, p.Scheduled, p.Started, p.Ended}); found != want[p.Object.Name] {
			t.Errorf("pod %s: %+v, want %+v", p.Object.Name, found, want[p.Object.Name])
		}
		if len(p.Object.Spec.Containers[0].Env) > 0 || p.Object.Spec.NodeName != "" {
			t.Errorf("pod %s has fields that a recording must not have: %+v", p.Object.Name, p.Object.Spec)
		}
	}
	if n := got.Nodes; len(n) != 2 || n[0].Gone != recording.Never || n[1].Gone != 20 || n[0].Appeared != -100 {
		t.Errorf("nodes %+v", n)
	}
	for step, used := range map[int]bool{0: true, 1: false, 2: true, 3: false} {
		if cpu, ok := got.Pods[0].CPU.At(step); ok != used || used && (cpu < 99.9 || cpu > 100.1) {
			t.Errorf("step %d: %g, %v", step, cpu, ok)
		}
	}
	missing := fmt.Sprint(got.About.Missing)
	for _, text := range []string{"the time from 2026-03-01T00:00:20Z to 2026-03-01T00:01:40Z", "could not be read at 1 of 2 steps (50.0 %)"} {
		if !strings.Contains(missing, text) {
			t.Errorf("missing lacks %q: %s", text, missing)
		}
	}
}

// newFollower returns a follower of a cluster without nodes and other objects, in steps of a second, whose recordings take a minute and
// 2 MiB. Its log may be nil.
func newFollower(folder string, log func(string)) *follower {
	if log == nil {
		log = func(string) {}
	}
	factory := informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	return &follower{
		FollowConfig: FollowConfig{
			Folder: folder, Step: time.Second, Rotate: time.Minute, MaxBytes: 2 << 20, Log: log, Client: fake.NewClientset(),
			Objects: func(context.Context) (*Cluster, error) { return nil, errors.New("forbidden") },
		},
		pods: factory.Core().V1().Pods().Informer(), nodes: factory.Core().V1().Nodes().Informer(),
	}
}

// TestRotate checks that recordings are finished after their time, and that the oldest are removed when all are too large.
func TestRotate(t *testing.T) {
	folder := t.TempDir()
	for i := range 4 {
		name := filepath.Join(folder, after(3600*i).Format(nameFormat)+suffix)
		must.Succeed(t, os.WriteFile(name, make([]byte, 300<<10), 0o600))
	}
	must.Succeed(t, os.WriteFile(filepath.Join(folder, "other.ndjson.gz"), nil, 0o600))
	f := newFollower(folder, nil)
	step := func(seconds int) {
		t.Helper()
		f.now = func() time.Time { return after(seconds) }
		must.Succeed(t, f.step(t.Context()))
	}
	step(86400)
	// Half of 2 MiB holds three of 300 KiB.
	if names, _ := Recordings(f.Folder); len(names) != 4 || !strings.Contains(names[0], "T010000Z") {
		t.Errorf("left %v", names)
	}
	step(86430)
	first := f.current.file
	step(86460)
	if names, _ := Recordings(f.Folder); f.current.file == first || len(names) != 5 {
		t.Errorf("not rotated: %v", names)
	}
	r, err := recording.Open(filepath.Join(folder, after(86400).Format(nameFormat)+suffix))
	if err != nil || !strings.Contains(fmt.Sprint(r.About.Missing), "they could not be read: forbidden") {
		t.Errorf("the finished recording: %+v, error %v", r, err)
	}
}

// usageSource is a source of usage that fails with an error unless it is nil.
type usageSource struct{ err error }

func (usageSource) String() string { return "the test" }

func (s *usageSource) ReadPods(context.Context) (load.PodReading, error) {
	return load.PodReading{Time: begin}, s.err
}

// TestUsageFails checks that a failure of the source of usage is reported when it begins, and that other steps have usage.
func TestUsageFails(t *testing.T) {
	reported := 0
	f := newFollower(t.TempDir(), func(line string) {
		if line == "the test: forbidden" {
			reported++
		}
	})
	source := &usageSource{}
	f.Usage, f.now = source, func() time.Time { return begin }
	failure := errors.New("forbidden")
	for i, step := range []struct {
		err      error
		reported int
	}{{nil, 0}, {failure, 1}, {failure, 1}, {nil, 1}, {failure, 2}} {
		source.err = step.err
		if known := f.view(t.Context(), begin).usage != nil; known != (step.err == nil) || reported != step.reported {
			t.Errorf("step %d: usage known: %t, reported %d times, want %d", i, known, reported, step.reported)
		}
	}
}

// TestAPIServerFails has an API server that does not respond while the source of usage does: the failure is reported once.
func TestAPIServerFails(t *testing.T) {
	reported := 0
	f := newFollower(t.TempDir(), func(line string) {
		if strings.HasPrefix(line, "the API server does not respond: ") {
			reported++
		}
	})
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://127.0.0.1:1"})
	must.Succeed(t, err)
	f.Client, f.Usage = client, &usageSource{}
	for i := range 3 {
		f.now = func() time.Time { return after(i) }
		must.Succeed(t, f.step(t.Context()))
	}
	if reported != 1 {
		t.Errorf("reported %d times", reported)
	}
}

// TestLastingErrors has a server that the client does not trust: trying again would not help.
func TestLastingErrors(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	must.Succeed(t, err)
	f := FollowConfig{Client: client, Log: func(line string) { t.Error(line) }}
	if err := f.checkAccess(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("error %v", err)
	}
}

func TestFollowConfigErrors(t *testing.T) {
	for want, config := range map[string]FollowConfig{
		"step: invalid value 1ms":                              {Step: time.Millisecond},
		"rotate: invalid value 1s: must be at least 10s, ten ": {Step: time.Second, Rotate: time.Second},
		"maxBytes: invalid value 5: must be at least 1 MiB":    {Step: time.Second, Rotate: time.Hour, MaxBytes: 5},
	} {
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
