package replay

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/internal/trace/generate"
)

// placements returns where the pods of a run go, in the order in which they do, and
// its outcome without what is recorded.
func placements(t *testing.T, in input.Cluster, o Options) ([]string, result.Run) {
	t.Helper()
	var all []string
	o.Placed = func(pod, node string) { all = append(all, pod+" "+node) }
	got := outcomeOf(t, in, o)
	got.TimeSeries, got.NodeUse, got.Decisions = nil, nil, nil
	return all, got
}

// Recording changes nothing: with and without it every pod goes to the same node,
// after the same wait. The cluster has more nodes than kube-scheduler looks at for a
// pod, so that where it goes on looking counts; it is overfull, so that pods wait
// and are tried again; and half of the pods have no shape, so that they are tried
// each time.
func TestRecordingChangesNothing(t *testing.T) {
	spec, err := generate.Parse("nodes=130,pods=1500,fill=1.5,over=1200,life=3600,best-effort=0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range profiles.Names {
		t.Run(profile, func(t *testing.T) {
			in := input.FromTrace(spec.Cluster(3), usage.Limits{CPU: 3, Memory: 2, Unlimited: 0.1}, 3)
			for i := range in.Pods {
				if i%2 == 0 {
					in.Pods[i].Shape = 0
				}
			}
			o := options(t, profile, "bursts:mean=0.8", 3)
			without, base := placements(t, in, o)
			o.Record = true
			with, recorded := placements(t, in, o)
			if diff := cmp.Diff(without, with); diff != "" {
				t.Error("pods go elsewhere:", diff)
			}
			if diff := cmp.Diff(base, recorded); diff != "" {
				t.Error(diff)
			}
			if len(without) == 0 || base.Unschedulable == 0 && base.PendingSeconds.Max == 0 {
				t.Errorf("%d placed, and none waited: this proves little", len(without))
			}
		})
	}
}

// Two nodes of 4 cores and one of 8. The sixth pod of 2 cores still fits, on one
// node only; a pod of 9 cores fits none, one of 8 waits until all of the large node
// is free.
func TestDecisionsByHand(t *testing.T) {
	cluster := &trace.Cluster{Nodes: []trace.Node{machine("a", 4, 16), machine("b", 4, 16), machine("c", 8, 64)}}
	for i := range int64(8) {
		cluster.Pods = append(cluster.Pods, needs(fmt.Sprintf("p%d", i), 2, 1, i, 300))
	}
	cluster.Pods = append(cluster.Pods, needs("waits", 8, 1, 60, 400), needs("never", 9, 1, 61, 400))
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record = true
	nodes := recorder{}
	o.Placed = nodes.placed
	decisions := outcomeOf(t, input.FromTrace(cluster, usage.Limits{CPU: 2, Memory: 2}, 1), o).Decisions
	if len(decisions) != 10 {
		t.Fatalf("%d decisions, want all 10", len(decisions))
	}
	for i, is := range decisions {
		if is.Arrival != i+1 || is.Nodes != 3 || is.Node != nodes.nodes[cluster.Pods[i].Name] {
			t.Errorf("%+v", is)
		}
		if i < 8 && (is.WaitedSeconds != 0 || is.Feasible == 0 || is.Scores[0].Node != is.Node || is.AttemptSecond != int64(i)) {
			t.Errorf("%+v", is)
		}
		for _, score := range is.Scores {
			var total int64
			for _, p := range score.Plugins {
				total += p.Score * p.Weight
			}
			if total != score.Total || len(score.Plugins) == 0 {
				t.Errorf("pod %d, node %s: scores add up to %d, the total is %d", i, score.Node, total, score.Total)
			}
		}
		// The scheduler looks at all of three nodes, and takes the best.
		for _, other := range is.Scores[min(1, len(is.Scores)):] {
			if other.Total > is.Scores[0].Total {
				t.Errorf("%s scores %d, the chosen one %d", other.Node, other.Total, is.Scores[0].Total)
			}
		}
	}
	// It comes at 60 s, when pods are everywhere, and gets c at 300 s.
	waits := decisions[8]
	if waits.Node != "c" || waits.WaitedSeconds != 240 || waits.AttemptSecond != 300 || waits.Feasible != 1 || len(waits.Scores) != 1 || waits.Selection != result.LargePod {
		t.Errorf("%+v", waits)
	}
	if diff := cmp.Diff([]result.NodesReason{{Filter: "NodeResourcesFit", Reason: "Insufficient cpu", Nodes: 2}}, waits.Reasons); diff != "" {
		t.Error(diff)
	}
	// The run ends 600 s after the last pod has come, at 720 s.
	never := decisions[9]
	if never.Node != "" || never.WaitedSeconds != 720-61 || never.Feasible != 0 || never.CPURequest != 9000 || never.Reasons[0].Nodes != 3 {
		t.Errorf("%+v", never)
	}
}

// The same pods are kept with every profile, beside the first that wait; and no
// more than there are to be.
func TestDecisionsOfTheSamePods(t *testing.T) {
	spec, err := generate.Parse("nodes=20,pods=600,fill=1.2,over=600")
	if err != nil {
		t.Fatal(err)
	}
	var first []int
	for _, profile := range []string{"default", "most-allocated", "low-risk"} {
		o := options(t, profile, "beta", 3)
		o.Record = true
		var chosen []int
		waited := 0
		for _, is := range outcomeOf(t, input.FromTrace(spec.Cluster(3), usage.Limits{CPU: 2, Memory: 2}, 3), o).Decisions {
			if is.Selection == result.WaitedPod {
				waited++
			} else {
				chosen = append(chosen, is.Arrival)
			}
		}
		if len(chosen) > spreadPods+largePods || len(chosen) < spreadPods || waited != waitedPods {
			t.Errorf("%s: %d and %d that waited", profile, len(chosen), waited)
		}
		if first == nil {
			first = chosen
		}
		if diff := cmp.Diff(first, chosen); diff != "" {
			t.Error(profile, diff)
		}
		if chosen[0] != 1 || chosen[len(chosen)-1] != 600 {
			t.Errorf("from %d to %d, want from 1 to 600", chosen[0], chosen[len(chosen)-1])
		}
	}
}

// A pod that is tried again and again is looked at a few times, and keeps its node
// when it gets one after that.
func TestManyTrials(t *testing.T) {
	cluster := &trace.Cluster{Nodes: []trace.Node{machine("a", 4, 16)}}
	cluster.Pods = append(cluster.Pods, needs("all", 4, 1, 0, 4000), needs("waits", 3, 1, 1, 9000))
	in := input.FromTrace(cluster, usage.Limits{CPU: 1, Memory: 1}, 1)
	in.Pods[1].Shape = 0 // tried each time that anything happens
	for i := range int64(10) {
		node := machine(fmt.Sprintf("small-%d", i), 1, 1)
		in.Nodes = append(in.Nodes, input.Node{Object: input.NodeOf(&node), Boot: 60 * (i + 1)})
	}
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record, o.Tail = true, 4800
	got := outcomeOf(t, in, o).Decisions[1]
	if got.Node != "a" || got.WaitedSeconds != 3999 || len(got.Scores) != 0 || got.Feasible != 0 || got.AttemptSecond >= 600 {
		t.Errorf("%+v", got)
	}
}

// Pods that run from the start are not decided on.
func TestNoDecisions(t *testing.T) {
	node := machine("a", 4, 16)
	running := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	running.Spec.NodeName = "a"
	in := input.Cluster{Nodes: []input.Node{{Object: input.NodeOf(&node)}}, Pods: []input.Pod{{Object: running, Duration: trace.Never}}}
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record = true
	if got := outcomeOf(t, in, o).Decisions; got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
