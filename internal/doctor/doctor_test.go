package doctor

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// onlyFinding returns the single finding, which must have the level.
func onlyFinding(t *testing.T, e *examination, level Level) Finding {
	t.Helper()
	if len(e.findings) != 1 || e.findings[0].Level != level {
		t.Fatalf("got %+v, want one of level %s", e.findings, level)
	}
	if level != OK && e.findings[0].Fix == "" {
		t.Errorf("finding %+v has no fix", e.findings[0])
	}
	return e.findings[0]
}

// TestVersionSkew expects that API servers of the versions that the scheduler emulates are supported, and those that are one minor
// version newer than the scheduler. An API server that emulates a version counts as one of that version.
func TestVersionSkew(t *testing.T) {
	for _, tc := range []struct {
		server version.Info
		level  Level
		want   string
	}{
		{version.Info{GitVersion: "v1.33.9"}, Warning, "v1.33.9; plimsoll-scheduler, which is kube-scheduler v1.37.1, supports 1.34 to 1.38"},
		{version.Info{GitVersion: "v1.34.0"}, OK, "v1.34.0; the scheduler is kube-scheduler v1.37.1 and emulates 1.34"},
		{version.Info{GitVersion: "v1.37.4-gke.1200"}, OK, "v1.37.4-gke.1200; the scheduler is kube-scheduler v1.37.1"},
		{
			version.Info{GitVersion: "v1.37.1", Major: "1", Minor: "37", EmulationMajor: "1", EmulationMinor: "36"},
			OK,
			"1.36; the scheduler is kube-scheduler v1.37.1 and emulates 1.36",
		},
		{version.Info{GitVersion: "v1.38.0"}, OK, "v1.38.0; the scheduler is kube-scheduler v1.37.1"},
		{version.Info{GitVersion: "v0.0.0-master+$Format:%H$"}, OK, "the scheduler is kube-scheduler v1.37.1"},
		{version.Info{GitVersion: "v1.39.0"}, Warning, "v1.39.0; plimsoll-scheduler, which is kube-scheduler v1.37.1, supports 1.34 to 1.38"},
	} {
		e := &examination{Cluster: &Cluster{kubernetesVersion: "v1.37.1"}, version: tc.server}
		must.Succeed(t, e.checkVersion(t.Context()))
		if f := onlyFinding(t, e, tc.level); !strings.HasSuffix(f.Message, tc.want) {
			t.Errorf("finding %q, want its end to be %q", f.Message, tc.want)
		}
	}
	e := &examination{Cluster: &Cluster{kubernetesVersion: "v1.37.1"}}
	e.version.GitVersion = "invalid"
	if err := e.checkVersion(t.Context()); err == nil {
		t.Error("no error for an invalid version")
	}
}

// encoded returns the response of a load-watcher with the load of nodes.
func encoded(t *testing.T, at time.Time, nodes ...string) []byte {
	t.Helper()
	reading := load.Reading{Source: "test", Time: at, Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for _, name := range nodes {
		reading.Nodes[name] = load.Node{CPU: load.Utilization{Mean: 0.4, StdDev: 0.1}, HasCPU: true}
	}
	var b bytes.Buffer
	must.Succeed(t, wire.Encode(&b, reading))
	return b.Bytes()
}

func TestCheckReading(t *testing.T) {
	for _, c := range []struct {
		name     string
		response []byte
		want     Level
		message  string
	}{
		{"fresh and complete", encoded(t, noon.Add(-30*time.Second), "a", "b"), OK, "load of 2 of 2 nodes, 30s old"},
		{"old", encoded(t, noon.Add(-6*time.Minute), "a", "b"), Problem, "6m old"},
		{"one node is missing", encoded(t, noon, "a"), Warning, "no load of 1 of 2 nodes: b"},
		{"other names", encoded(t, noon, "10.0.0.1:9100", "10.0.0.2:9100"), Problem, "none has the name of a node"},
		{"invalid", []byte("<html>"), Problem, "returns invalid load"},
	} {
		e := &examination{now: noon}
		for _, name := range []string{"a", "b"} {
			e.nodes = append(e.nodes, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		e.checkReading("ns/watcher", c.response, "kubectl logs")
		if f := onlyFinding(t, e, c.want); !strings.Contains(f.Message, c.message) {
			t.Errorf("%s: message %q, want %q in it", c.name, f.Message, c.message)
		}
	}
}

// TestSuspiciousLoad checks the warnings of nodes whose load is 0 or jumps.
func TestSuspiciousLoad(t *testing.T) {
	e := &examination{now: noon}
	reading := load.Reading{Source: "test", Time: noon, Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for name, cpu := range map[string]load.Utilization{
		"steady": {Mean: 0.4, StdDev: 0.1}, "zero": {}, "almost-zero": {Mean: 0.00005, StdDev: 0.001}, "jumps": {Mean: 0.5, StdDev: 0.5},
		"idle": {Mean: 0.002, StdDev: 0.001},
	} {
		e.nodes = append(e.nodes, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		reading.Nodes[name] = load.Node{CPU: cpu, HasCPU: true}
	}
	var b bytes.Buffer
	must.Succeed(t, wire.Encode(&b, reading))
	e.checkReading("ns/watcher", b.Bytes(), "kubectl logs")
	var got []string
	for _, f := range e.findings {
		got = append(got, string(f.Level)+" "+f.Message)
	}
	want := []string{
		"warning ns/watcher reports for 2 of 5 nodes no CPU usage, though each node runs at least its kubelet: almost-zero, zero",
		"warning ns/watcher reports for 1 of 5 nodes a CPU usage that jumps, with a standard deviation of over 30%: jumps",
		"ok ns/watcher has load of 5 of 5 nodes, 0s old",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestNodes checks that nodes with swap are named, and nodes that are not ready.
func TestNodes(t *testing.T) {
	node := func(name string, ready v1.ConditionStatus, swap *v1.NodeSwapStatus) *v1.Node {
		status := v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}}
		status.NodeInfo.Swap = swap
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: status}
	}
	e := &examination{Cluster: &Cluster{kube: fake.NewClientset(
		node("a", v1.ConditionTrue, nil), node("b", v1.ConditionUnknown, &v1.NodeSwapStatus{}),
		node("c", v1.ConditionFalse, &v1.NodeSwapStatus{Capacity: new(int64(0))}),
		node("d", v1.ConditionTrue, &v1.NodeSwapStatus{Capacity: new(int64(1 << 30))}))}}
	must.Succeed(t, e.checkNodes(t.Context()))
	var got []string
	for _, f := range e.findings {
		got = append(got, string(f.Level)+" "+f.Message)
	}
	text := strings.Join(got, "\n")
	for _, want := range []string{"warning 1 of 4 nodes is configured with swap: d: ", "warning 2 of 4 nodes are not ready: b, c"} {
		if len(got) != 2 || !strings.Contains(text, want) {
			t.Errorf("findings %q, want %q", got, want)
		}
	}
}

// TestUnknownScheduler checks that a pod of a scheduler that does not run is a problem.
func TestUnknownScheduler(t *testing.T) {
	pending := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "typo", CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))},
	}
	pending.Spec.SchedulerName = "plimsol"
	e := &examination{now: noon, Cluster: &Cluster{kube: fake.NewClientset(pending)}}
	must.Succeed(t, e.checkSchedulers(t.Context()))
	if f := onlyFinding(t, e, Problem); !strings.Contains(f.Message, `with "plimsol" in spec.schedulerName: ns/typo`) {
		t.Errorf("%+v", f)
	}
}
