package doctor

import (
	"bytes"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// only returns the single finding, which has to be of a level.
func only(t *testing.T, x *examination, level Level) Finding {
	t.Helper()
	if len(x.findings) != 1 || x.findings[0].Level != level {
		t.Fatalf("got %+v, want one of level %s", x.findings, level)
	}
	if level != OK && x.findings[0].Fix == "" {
		t.Errorf("%+v does not say what to do", x.findings[0])
	}
	return x.findings[0]
}

// The scheduler is of 1.37: an API server of 1.37 or 1.38 goes with
// it, one of 1.36 is older than a scheduler may be, one of 1.39 too new.
func TestVersionSkew(t *testing.T) {
	for said, want := range map[string]Level{
		"v1.36.9": Warning, "v1.37.0": OK, "v1.37.4-gke.1200": OK, "v1.38.0": OK, "v0.0.0-master+$Format:%H$": OK, "v1.39.0": Warning, "v2.0.0": Warning,
	} {
		x := &examination{Cluster: &Cluster{own: "v1.37.1"}}
		x.version.GitVersion = said
		if err := x.server(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f := only(t, x, want); !strings.Contains(f.Message, said) {
			t.Errorf("%+v does not name %s", f, said)
		}
	}
	x := &examination{Cluster: &Cluster{own: "v1.37.1"}}
	x.version.GitVersion = "today's"
	if err := x.server(t.Context()); err == nil {
		t.Error("a version that is none is taken")
	}
}

// Half of the time that the answer took, and the second that the date is cut to, are
// in favour of the clock: 7 - 1/2 - 1 is over 5 seconds, 6 - 1/2 - 1 is not.
func TestClocks(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		want  Level
	}{{0, OK}, {6 * time.Second, OK}, {-6 * time.Second, OK}, {7 * time.Second, Warning}, {-7 * time.Second, Warning}, {32 * time.Second, Problem}, {-time.Hour, Problem}} {
		x := &examination{}
		x.compareClocks(c.ahead, time.Second)
		only(t, x, c.want)
	}
}

// encoded is what a load-watcher would answer.
func encoded(t *testing.T, at time.Time, nodes ...string) []byte {
	t.Helper()
	reading := load.Reading{Source: "test", Time: at, Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	for _, name := range nodes {
		reading.Nodes[name] = load.Node{CPU: load.Utilization{Mean: 0.4, StdDev: 0.1}, HasCPU: true}
	}
	var b bytes.Buffer
	if err := wire.Encode(&b, reading); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer []byte
		want   Level
		says   string
	}{
		{"fresh and complete", encoded(t, noon.Add(-30*time.Second), "a", "b"), OK, "all 2 nodes, 30s old"},
		{"old", encoded(t, noon.Add(-6*time.Minute), "a", "b"), Problem, "6m0s old"},
		{"one node is missing", encoded(t, noon, "a"), Warning, "no load of 1 of 2 nodes: b"},
		{"other names", encoded(t, noon, "10.0.0.1:9100", "10.0.0.2:9100"), Problem, "none of them has the name of a node"},
		{"no load", []byte("<html>"), Problem, "what is no load"},
	} {
		x := &examination{now: noon}
		for _, name := range []string{"a", "b"} {
			x.nodes = append(x.nodes, v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		x.judgeLoad("ns/watcher", c.answer, "kubectl logs")
		if f := only(t, x, c.want); !strings.Contains(f.Message, c.says) {
			t.Errorf("%s: %q does not say %q", c.name, f.Message, c.says)
		}
	}
}

func TestUnreadyNodes(t *testing.T) {
	node := func(name string, ready v1.ConditionStatus) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}}}
	}
	x := &examination{Cluster: &Cluster{kube: fake.NewClientset(node("a", v1.ConditionTrue), node("b", v1.ConditionUnknown), node("c", v1.ConditionFalse))}}
	if err := x.readNodes(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := only(t, x, Warning); f.Message != "2 of 3 nodes are not ready: b, c" {
		t.Error(f.Message)
	}
}
