package replay

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// placements returns the pods and nodes of a run in the order of binding, and its outcome
// without the recorded parts.
func placements(t *testing.T, in recording.Input, o Options) ([]string, result.Run) {
	t.Helper()
	var all []string
	o.Placed = func(pod, node string) { all = append(all, pod+" "+node) }
	got := outcomeOf(t, in, o)
	got.TimeSeries, got.Decisions, got.Overloaded = nil, nil, nil
	return all, got
}

// TestRecordingPreservesPlacements verifies that recording changes neither the node nor the
// pending time of any pod. The cluster has more nodes than kube-scheduler evaluates for one
// pod, so that the start index of the next evaluation matters; it is overcommitted, so that
// pods wait and are retried; and half of the pods have no shape, so that they are retried
// on every event.
func TestRecordingPreservesPlacements(t *testing.T) {
	spec, err := recording.ParseGenerated("nodes=130,pods=1500,fill=1.5,over=1200,life=3600,best-effort=0.1")
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range engine.BuiltInProfiles {
		t.Run(profile, func(t *testing.T) {
			in := spec.Input(3, recording.Limits{CPU: 3, Memory: 2, Unlimited: 0.1})
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
				t.Error("placements differ:", diff)
			}
			if diff := cmp.Diff(base, recorded); diff != "" {
				t.Error(diff)
			}
			if len(without) == 0 || base.Unschedulable == 0 && base.PendingSeconds.Max == 0 {
				t.Errorf("%d pods placed, none waited: the test covers no pending pods", len(without))
			}
		})
	}
}

// TestDecisions has two nodes of 4 cores and one of 8, and eight pods of 2 cores, which fill them.
// A pod of 9 cores fits no node, a pod of 8 cores waits until the large node is empty.
func TestDecisions(t *testing.T) {
	cluster := recording.Input{Nodes: []recording.Node{machine("a", 4, 16), machine("b", 4, 16), machine("c", 8, 64)}}
	for i := range int64(8) {
		cluster.Pods = append(cluster.Pods, needs(fmt.Sprintf("p%d", i), 2, 1, i, 300))
	}
	cluster.Pods = append(cluster.Pods, needs("waits", 8, 1, 60, 400), needs("never", 9, 1, 61, 400))
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record = true
	nodes := recorder{}
	o.Placed = nodes.placed
	decisions := outcomeOf(t, completed(cluster, recording.Limits{CPU: 2, Memory: 2}, 1), o).Decisions
	if len(decisions) != 10 {
		t.Fatalf("%d decisions, want all 10", len(decisions))
	}
	for i, decision := range decisions {
		if decision.Arrival != i+1 || decision.Nodes != 3 || decision.Node != nodes.nodes[cluster.Pods[i].Object.Name] {
			t.Errorf("%+v", decision)
		}
		if i < 8 && (decision.WaitedSeconds != 0 || decision.Feasible == 0 || decision.Scores[0].Node != decision.Node ||
			decision.AttemptSecond != int64(i)) {
			t.Errorf("%+v", decision)
		}
		for _, score := range decision.Scores {
			var total int64
			for _, p := range score.Plugins {
				total += p.Score * p.Weight
			}
			if total != score.Total || len(score.Plugins) == 0 {
				t.Errorf("pod %d, node %s: the sum of the scores is %d, the total %d", i, score.Node, total, score.Total)
			}
		}
		// kube-scheduler evaluates all three nodes and selects the node with the highest score.
		for _, other := range decision.Scores[min(1, len(decision.Scores)):] {
			if other.Total > decision.Scores[0].Total {
				t.Errorf("%s scores %d, the selected node %d", other.Node, other.Total, decision.Scores[0].Total)
			}
		}
	}
	// It arrives at 60 s, when all nodes have pods, and is bound to c at 300 s.
	waits := decisions[8]
	if waits.Node != "c" || waits.WaitedSeconds != 240 || waits.AttemptSecond != 300 || waits.Feasible != 1 || len(waits.Scores) != 1 ||
		waits.Selection != result.LargePod {
		t.Errorf("%+v", waits)
	}
	if diff := cmp.Diff([]result.NodesReason{{Filter: "NodeResourcesFit", Reason: "Insufficient cpu", Nodes: 2}},
		waits.Reasons); diff != "" {
		t.Error(diff)
	}
	// The run ends at 720 s: 600 s after the last arrival, in steps of 60 s.
	never := decisions[9]
	if never.Node != "" || never.WaitedSeconds != 720-61 || never.Feasible != 0 || never.CPURequest != 9000 || never.Reasons[0].Nodes != 3 {
		t.Errorf("%+v", never)
	}
}

// TestDecisionsOfSamePods verifies that the decisions on the same pods are recorded with every
// profile, in addition to decisions on the first pods that wait, up to the maximum numbers.
func TestDecisionsOfSamePods(t *testing.T) {
	spec, err := recording.ParseGenerated("nodes=20,pods=600,fill=1.2,over=600")
	if err != nil {
		t.Fatal(err)
	}
	var first []int
	for _, profile := range []string{"default", "most-allocated", "low-risk"} {
		o := options(t, profile, "beta", 3)
		o.Record = true
		var selected []int
		waited := 0
		for _, decision := range outcomeOf(t, spec.Input(3, recording.Limits{CPU: 2, Memory: 2}), o).Decisions {
			if decision.Selection == result.WaitedPod {
				waited++
			} else {
				selected = append(selected, decision.Arrival)
			}
		}
		if len(selected) > spreadPods+largePods || len(selected) < spreadPods || waited != waitedPods {
			t.Errorf("%s: %d pods, and %d that waited", profile, len(selected), waited)
		}
		if first == nil {
			first = selected
		}
		if diff := cmp.Diff(first, selected); diff != "" {
			t.Error(profile, diff)
		}
		if selected[0] != 1 || selected[len(selected)-1] != 600 {
			t.Errorf("pods %d to %d, want 1 to 600", selected[0], selected[len(selected)-1])
		}
	}
}

// TestManyAttempts verifies that only the first attempts to schedule a pod are recorded in detail,
// and that the node of a pod that is bound later is recorded.
func TestManyAttempts(t *testing.T) {
	cluster := recording.Input{Nodes: []recording.Node{machine("a", 4, 16)}}
	cluster.Pods = append(cluster.Pods, needs("all", 4, 1, 0, 4000), needs("waits", 3, 1, 1, 9000))
	in := completed(cluster, recording.Limits{CPU: 1, Memory: 1}, 1)
	in.Pods[1].Shape = 0 // retried on every event
	for i := range int64(10) {
		node := machine(fmt.Sprintf("small-%d", i), 1, 1)
		node.Appeared = 60 * (i + 1)
		in.Nodes = append(in.Nodes, node)
	}
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record, o.Tail = true, 4800
	got := outcomeOf(t, in, o).Decisions[1]
	if got.Node != "a" || got.WaitedSeconds != 3999 || len(got.Scores) != 0 || got.Feasible != 0 || got.AttemptSecond >= 600 {
		t.Errorf("%+v", got)
	}
}

// TestNoDecisions verifies that there are no decisions on pods that run from the start.
func TestNoDecisions(t *testing.T) {
	node := machine("a", 4, 16)
	running := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1"}}
	running.Spec.NodeName = "a"
	in := recording.Input{Nodes: []recording.Node{node}, Pods: []recording.InputPod{{Object: running, Duration: recording.Never}}}
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record = true
	if got := outcomeOf(t, in, o).Decisions; got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
