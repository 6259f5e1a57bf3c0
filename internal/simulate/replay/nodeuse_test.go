package replay

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/usage"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
)

// TestNodeUse has two nodes of 4 cores and 16 GiB. On each of them a pod of 2 cores uses 1
// core and 2 of its 4 GiB; at 60 s a second pod with the same usage is bound to one of them.
// The run ends at 660 s, after 11 steps.
func TestNodeUse(t *testing.T) {
	cluster := &trace.Cluster{
		Nodes: []trace.Node{machine("a", 4, 16), machine("b", 4, 16), machine("idle", 1, 1)},
		Pods: []trace.Pod{
			needs("p1", 2, 4, 0, trace.Never), needs("p2", 2, 4, 0, trace.Never), needs("p3", 2, 4, 60, trace.Never),
		},
	}
	o := options(t, "default", "constant:mean=0.5", 1)
	o.Record = true
	got := outcomeOf(t, input.FromTrace(cluster, usage.Limits{CPU: 2, Memory: 2}, 1), o).NodeUse
	// One node is at 1/4 once and at 1/2 ten times: a mean of 5.25/11, a deviation of
	// 1/4 sqrt(10)/11. The other node is always at 1/4.
	if diff := cmp.Diff([]float64{0.477, 0.25}, got.CPU.Means); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{0.072, 0}, got.CPU.Deviations); diff != "" {
		t.Error(diff)
	}
	// 1/8 once and 2/8 ten times.
	if diff := cmp.Diff([]float64{0.239, 0.125}, got.Memory.Means); diff != "" {
		t.Error(diff)
	}
	// b is the lower median; a is highest by every criterion.
	if len(got.CPU.Notable) != 2 {
		t.Fatalf("%+v", got.CPU.Notable)
	}
	b, a := got.CPU.Notable[0], got.CPU.Notable[1]
	if diff := cmp.Diff([]string{"b", "a"}, []string{b.Node, a.Node}); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{result.BusiestNode, result.MostVariableNode, result.WorstFitNode}, a.Reasons); diff != "" {
		t.Error(diff)
	}
	if a.Steps != 11 || a.Observed[4] != 0.091 || a.Observed[9] != 0.909 || a.Alpha <= 0 || a.Beta <= 0 || a.Distance <= 0.2 {
		t.Errorf("%+v", a)
	}
	// Constant usage has no beta distribution, and the fitted histogram equals the observed one.
	if b.Alpha != 0 || b.Distance != 0 || b.Observed[4] != 1 || b.Fitted[4] != 1 {
		t.Errorf("%+v", b)
	}
	if got.CPU.Distance.Max != got.CPU.Distance.P50*2 {
		t.Errorf("%+v, want half of the maximum as the median of 0 and the maximum", got.CPU.Distance)
	}
}

func TestRoundSignificant(t *testing.T) {
	for v, want := range map[float64]float64{0: 0, 1.23456: 1.235, 12345.6: 12350, 0.000123456: 0.0001235} {
		if got := roundSignificant(v); got < want*(1-1e-12) || got > want*(1+1e-12) {
			t.Errorf("%v: %v, want %v", v, got, want)
		}
	}
}
