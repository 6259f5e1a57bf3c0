package replay

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// autoscalerConfig returns the configuration of an autoscaler with groups.
func autoscalerConfig(t testing.TB, groups ...string) *scaling.Config {
	t.Helper()
	spec, err := scaling.Parse(groups)
	must.Succeed(t, err)
	return &scaling.Config{Spec: spec}
}

// withSlack adds a policy with a rate, which does not cover the biggest pod.
func withSlack(a *scaling.Config, rate string) *scaling.Config {
	a.Slack = &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: "slack"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: rate, CoverBiggestPod: new(false)},
	}
	a.Slack.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	a.Slack.Spec.Default()
	return a
}

// scaledRun runs a cluster with an autoscaler.
func scaledRun(t *testing.T, cluster generate.NewCluster, a *scaling.Config, tail int64) (result.Run, map[string]string) {
	t.Helper()
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Autoscaler, o.Tail = a, tail
	r := &recorder{nodes: map[string]string{}}
	o.Placed = r.placed
	return outcomeOf(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1), o), r.nodes
}

// TestBurst has one node of 4 cores, which 4 pods fill. At 605 s a burst of 4 more arrives.
//
// Without slack the autoscaler adds a node at 610 s, which is ready at 730 s: each pod has waited
// for 125 s. With a rate of 100 % the autoscaler has added a node for 4 placeholders at the start,
// and no pod waits; at 610 s it adds another node.
func TestBurst(t *testing.T) {
	cluster := generate.NewCluster{Nodes: []recording.Node{machine("first", 4, 16)}}
	for _, name := range []string{"a", "b", "c", "d"} {
		cluster.Pods = append(cluster.Pods, needs(name, 1, 2, 0, recording.Never))
	}
	for _, name := range []string{"e", "f", "g", "h"} {
		cluster.Pods = append(cluster.Pods, needs(name, 1, 2, 605, recording.Never))
	}
	const group = "shape=4x16,boot=120"
	got, on := scaledRun(t, cluster, autoscalerConfig(t, group), 3600)
	if got.PendingSeconds.Max != 125 || got.PendingSeconds.Mean != 62.5 || on["e"] != "group-1-00001" {
		t.Errorf("without slack: pending %+v, on %v", got.PendingSeconds, on)
	}
	// The run ends at 660 + 3600 s. The second node costs from 610 s on.
	want := result.Scaling{Cost: (4260 + 3650) / 3600.0, NodeHours: (4260 + 3650) / 3600.0, ScaleUps: 1, NodesAdded: 1, NodesPeak: 2}
	if diff := cmp.Diff(want, *got.Scaling, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); diff != "" {
		t.Errorf("without slack: -want +got:\n%s", diff)
	}
	got, on = scaledRun(t, cluster, withSlack(autoscalerConfig(t, group), "100%"), 3600)
	if got.PendingSeconds.Max != 0 || on["e"] != "group-1-00001" {
		t.Errorf("with slack: pending %+v, on %v", got.PendingSeconds, on)
	}
	// In the 4260 s there is no slack while the first node for it boots, and for 120 s after
	// the burst has preempted the placeholders.
	if want := (4260 - 240) / 4260.0; math.Abs(got.Scaling.Slack.Mean-want) > 1e-9 || got.Scaling.Slack.Min != 0 {
		t.Errorf("slack kept %+v, want a mean of %v", got.Scaling.Slack, want)
	}
}

// TestNodesAreRemoved has 12 pods of 1 core on nodes of 4 cores: one input node and two added
// nodes. The pods run for 1000 s, on the first node from 0 s on, on the added nodes from 120 s on;
// a and e do not end. From 1120 s on, one added node is empty and the other added node runs e,
// which fits on the first node in addition to a. 600 s later both are removed, and e moves.
func TestNodesAreRemoved(t *testing.T) {
	cluster := generate.NewCluster{Nodes: []recording.Node{machine("first", 4, 16)}}
	for i := range 12 {
		end := int64(1000)
		if i == 0 || i == 4 {
			end = recording.Never
		}
		cluster.Pods = append(cluster.Pods, needs(string(rune('a'+i)), 1, 2, 0, end))
	}
	const group = "shape=4x16,boot=120,after-add=0"
	got, on := scaledRun(t, cluster, autoscalerConfig(t, group), 7200)
	if got.Scaling.NodesAdded != 2 || got.Scaling.NodesRemoved != 2 || math.Abs(got.Scaling.NodeHours-(2*1720+7200)/3600.0) > 1e-9 {
		t.Errorf("%+v", got.Scaling)
	}
	if got.Churn != 1 || on["e"] != "first" || got.Scheduled != 12 || got.Unschedulable != 0 || got.PendingSeconds.Mean != 80 {
		t.Errorf("%d pods evicted, e on %s, %d scheduled, pending %+v", got.Churn, on["e"], got.Scheduled, got.PendingSeconds)
	}
	// A pod that moves runs for the rest of its duration. a runs for 3000 s and e for 5000 s,
	// so that e ends at 5120 s. Nodes with pods, sampled every 60 s: 1 until 60 s (2 times), 3
	// from 120 until 1080 s (17), 2 from 1140 until 1680 s (10), 1 from 1740 until 5100 s (57):
	// (2 + 51 + 20 + 57) / 120.
	cluster.Pods[0].Duration, cluster.Pods[4].Duration = 3000-cluster.Pods[0].Arrival, 5000-cluster.Pods[4].Arrival
	got, _ = scaledRun(t, cluster, autoscalerConfig(t, group), 7200)
	if got.Churn != 1 || math.Abs(got.NodesUsed-130/120.0) > 1e-9 {
		t.Errorf("%d pods evicted, %v nodes used, want %v", got.Churn, got.NodesUsed, 130/120.0)
	}
	got, _ = scaledRun(t, cluster, autoscalerConfig(t, group+",min=2"), 7200)
	if got.Scaling.NodesAdded != 0 || got.Scaling.NodesRemoved != 0 || got.Scaling.NodesPeak != 3 || got.Churn != 0 {
		t.Errorf("minimum of two nodes: %+v", got.Scaling)
	}
}

// TestSlackBeyondMaximum verifies that an excessive minimum adds nodes up to the maximum size of
// the group.
func TestSlackBeyondMaximum(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("first", 4, 16)},
		Pods:  []generate.NewPod{needs("a", 1, 2, 0, recording.Never)},
	}
	// A minimum of 100 cores, on at most 10 nodes of 2 cores.
	config := withSlack(autoscalerConfig(t, "shape=2x8,max=10,interval=60,boot=60"), "0")
	config.Slack.Spec.Minimum = &v1alpha1.Amount{CPU: new(resource.MustParse("100"))}
	got, _ := scaledRun(t, cluster, config, 120)
	if got.Scaling.NodesAdded != 10 || got.Scaling.Slack.Mean >= 1 || got.Unschedulable != 0 {
		t.Errorf("%+v %+v", got.Scaling, got.Scaling.Slack)
	}
}

// TestAutoscalerReasons verifies the reasons of unschedulable pods.
func TestAutoscalerReasons(t *testing.T) {
	one := func(cores int64) generate.NewCluster {
		return generate.NewCluster{
			Nodes: []recording.Node{machine("first", 1, 1)},
			Pods:  []generate.NewPod{needs("a", cores, 2, 0, recording.Never), needs("b", cores, 2, 0, recording.Never)},
		}
	}
	for name, tc := range map[string]struct {
		cluster generate.NewCluster
		group   string
		reasons map[string]int
	}{
		"no nodes": {generate.NewCluster{Pods: one(4).Pods}, "shape=4x16", map[string]int{}},
		"too large": {
			one(5), "shape=4x16",
			map[string]int{"Insufficient cpu, Insufficient memory; fits on no node of the autoscaler's groups": 2},
		},
		"none allowed": {
			one(4), "shape=4x16,max=0",
			map[string]int{"Insufficient cpu, Insufficient memory; the groups that it fits on are at their maximum size": 2},
		},
		"long boot time": {
			one(4), "shape=4x16,boot=86400",
			map[string]int{"Insufficient cpu, Insufficient memory; a node for it is booting": 2},
		},
		"no pods":      {generate.NewCluster{Nodes: one(1).Nodes}, "max=100000", map[string]int{}},
		"no boot time": {one(4), "shape=4x16,boot=0", map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, rate := range []string{"", "0", "200%"} {
				a := autoscalerConfig(t, tc.group)
				if rate != "" {
					withSlack(a, rate)
				}
				got, _ := scaledRun(t, tc.cluster, a, 600)
				if diff := cmp.Diff(tc.reasons, got.Reasons); diff != "" {
					t.Errorf("slack %q: reasons: -want +got:\n%s", rate, diff)
				}
			}
		})
	}
	a := autoscalerConfig(t, "max=3")
	if _, err := a.Check(nil); err == nil ||
		err.Error() != "group-1: shape: required, as the input has no schedulable node to copy it from" {
		t.Errorf("%v", err)
	}
}

// TestAutoscalerSameBytes verifies that with an autoscaler, too, the same input and seed give
// the same bytes, and that the input is not changed.
func TestAutoscalerSameBytes(t *testing.T) {
	spec, err := generate.ParseGenerated("nodes=3,shapes=16x64,fill=4,pods=400,over=3600,bursts=4,life=1200,best-effort=0.1")
	must.Succeed(t, err)
	in := generatedInput(spec.Recording(7, generate.Limits{CPU: 2, Memory: 2}, longestTail))
	before := len(in.Nodes) + len(in.Pods)
	var first string
	for range 2 {
		o := options(t, "low-risk", "bursts:mean=0.8", 7)
		o.Autoscaler, o.Record = withSlack(autoscalerConfig(t, "shape=16x64,idle=120,after-add=60", "name=big,shape=64x256,max=2"),
			"10%"), true
		raw, err := json.Marshal(outcomeOf(t, in, o))
		must.Succeed(t, err)
		if first == "" {
			first = string(raw)
		}
		if string(raw) != first {
			t.Errorf("the same seed gives\n%s and\n%s", first, raw)
		}
	}
	for i := range in.Pods {
		if in.Pods[i].Object.Spec.NodeName != "" {
			t.Fatal("the input has changed")
		}
	}
	if before != len(in.Nodes)+len(in.Pods) {
		t.Error("the input has changed")
	}
}

// TestAutoscalerWithManifests has pods with anti-affinity, a DaemonSet, taints and labels, and
// a node of the input that belongs to the group.
func TestAutoscalerWithManifests(t *testing.T) {
	objects, err := manifest.Read([]string{"testdata/autoscaled.yaml"}, nil)
	must.Succeed(t, err)
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Tail = 3600
	o.Autoscaler = withSlack(autoscalerConfig(t, "name=web,label=pool=web,boot=60,max=4"), "0")
	r := &recorder{}
	o.Placed = r.placed
	got := outcomeOf(t, recording.Source{}.FromManifests(objects), o)
	// The existing node gets one of the three pods with anti-affinity; each of the other two pods
	// gets a new node. The fourth pod has no toleration for the taint that the nodes of the group
	// copy from the existing node. The fifth pod needs capacity that the daemon pod requests on
	// every node.
	want := map[string]string{"apart-1": "web-0", "apart-2": "web-00001", "apart-3": "web-00002"}
	if diff := cmp.Diff(want, r.nodes); diff != "" {
		t.Errorf("nodes: -want +got:\n%s", diff)
	}
	if got.Scaling.NodesAdded != 2 || got.Unschedulable != 2 {
		t.Errorf("%+v, %v", got.Scaling, got.Reasons)
	}
	for reason := range got.Reasons {
		if !strings.HasSuffix(reason, "; fits on no node of the autoscaler's groups") {
			t.Errorf("%q", reason)
		}
	}
}
