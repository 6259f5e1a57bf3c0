package replay

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/autoscale"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// autoscaler returns one of some groups.
func autoscaler(t testing.TB, groups ...string) *Autoscaler {
	t.Helper()
	spec, err := autoscale.Parse(groups)
	if err != nil {
		t.Fatal(err)
	}
	return &Autoscaler{Spec: spec}
}

// keeping adds a policy with a rate, and without room for the biggest pod.
func (a *Autoscaler) keeping(rate string) *Autoscaler {
	a.Slack = &v1alpha1.ResourceSlack{
		ObjectMeta: metav1.ObjectMeta{Name: "slack"},
		Spec:       v1alpha1.ResourceSlackSpec{MinRate: rate, CoverBiggestPod: new(false)},
	}
	a.Slack.Spec.Default()
	return a
}

// scaledRun runs a cluster with an autoscaler.
func scaledRun(t *testing.T, cluster *trace.Cluster, a *Autoscaler, tail int64) (Outcome, map[string]string) {
	t.Helper()
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Autoscaler, o.Tail = a, tail
	r := &recorder{nodes: map[string]string{}}
	o.Placed = r.placed
	return outcomeOf(t, FromTrace(cluster, usage.Limits{CPU: 2, Memory: 2}, 1), o), r.nodes
}

// One node of 4 cores that 4 pods fill. At 605 s a burst of 4 more comes.
//
// Without slack the autoscaler sees them at 610 and makes a node, which is there at
// 730: each has waited for 125 s. With a rate of 100 %, it has made a node for 4
// placeholders at the start, and none of them waits; at 610 it makes another.
func TestBurst(t *testing.T) {
	cluster := &trace.Cluster{Nodes: []trace.Node{machine("first", 4, 16)}}
	for _, name := range []string{"a", "b", "c", "d"} {
		cluster.Pods = append(cluster.Pods, needs(name, 1, 2, 0, trace.Never))
	}
	for _, name := range []string{"e", "f", "g", "h"} {
		cluster.Pods = append(cluster.Pods, needs(name, 1, 2, 605, trace.Never))
	}
	const group = "shape=4x16,boot=120"
	got, on := scaledRun(t, cluster, autoscaler(t, group), 3600)
	if got.PendingSeconds.Max != 125 || got.PendingSeconds.Mean != 62.5 || on["e"] != "group-1-00001" {
		t.Errorf("without slack: pending %+v, on %v", got.PendingSeconds, on)
	}
	// The run ends at 660 + 3600 s. The second node is there from 610 on.
	want := Scaling{Cost: (4260 + 3650) / 3600.0, NodeHours: (4260 + 3650) / 3600.0, ScaleUps: 1, NodesAdded: 1, NodesPeak: 2}
	if *got.Scaling != want {
		t.Errorf("without slack: %+v, want %+v", *got.Scaling, want)
	}
	got, on = scaledRun(t, cluster, autoscaler(t, group).keeping("100%"), 3600)
	if got.PendingSeconds.Max != 0 || on["e"] != "group-1-00001" {
		t.Errorf("with slack: pending %+v, on %v", got.PendingSeconds, on)
	}
	t.Logf("%+v %+v", *got.Scaling, *got.Scaling.Slack)
}
