package replay

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/generate"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// TestTimeSeries has two nodes of 4 cores and 16 GiB, each with a pod of 2 cores and 4 GiB and
// limits of twice the requests. At 60 s a third pod, of 1 core and 4 GiB, is bound to one of
// them, which then has limits of 6 cores and a demand for all of them. A pod of 100 cores waits
// from 60 s on. The run ends at 660 s, after 11 steps.
func TestTimeSeries(t *testing.T) {
	cluster := generate.NewCluster{
		Nodes: []recording.Node{machine("a", 4, 16), machine("b", 4, 16), machine("gone", 0, 0)},
		Pods: []generate.NewPod{
			needs("p1", 2, 4, 0, recording.Never), needs("p2", 2, 4, 0, recording.Never),
			needs("p3", 1, 4, 60, recording.Never), needs("large", 100, 4, 60, recording.Never),
		},
	}
	o := options(t, "default", "constant:mean=3,max=4", 1)
	if got := outcomeOf(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1), o).TimeSeries; got != nil {
		t.Errorf("%+v without Record", got)
	}
	o.Record = true
	later := append([]float64{0}, slices.Repeat([]float64{1}, 10)...)
	want := &result.TimeSeries{
		EverySeconds:       60,
		HighestLoads:       append([]float64{1}, slices.Repeat([]float64{1.5}, 10)...),
		OverloadedNodes:    later,
		OvercommittedNodes: later,
		PendingPods:        later,
		NodesUsed:          slices.Repeat([]float64{2}, 11),
	}
	if diff := cmp.Diff(want, outcomeOf(t, completed(cluster, generate.Limits{CPU: 2, Memory: 2}, 1), o).TimeSeries); diff != "" {
		t.Error(diff)
	}
}

// TestTimeSeriesOfLongRun verifies that the time series of a long run have at most maxPoints
// points, and that each is a mean.
func TestTimeSeriesOfLongRun(t *testing.T) {
	const steps = 2*maxPoints + 1
	c := newTimeSeries(steps * Step)
	if c.sums.EverySeconds != 3*Step {
		t.Fatalf("interval of %d s, want %d", c.sums.EverySeconds, 3*Step)
	}
	has := result.Capacity{CPU: 4, Memory: 4}
	for i := range int64(steps) {
		if i%3 == 0 {
			c.addNode(has, 1, result.Step{Victims: 1})
		}
		c.addNode(has, 1, result.Step{CPULimits: 4, MemoryLimits: 5})
		c.addNode(has, 0, result.Step{})
		c.endStep(i*Step, int(i%3))
	}
	got := c.result()
	points := (steps + 2) / 3
	if len(got.NodesUsed) != points || points > maxPoints {
		t.Fatalf("%d points, want %d, at most %d", len(got.NodesUsed), points, maxPoints)
	}
	if got.OverloadedNodes[1] != 0.333 || got.OvercommittedNodes[1] != 1 || got.PendingPods[1] != 1 || got.NodesUsed[1] != 1.333 {
		t.Errorf("%v, %v, %v, %v", got.OverloadedNodes[1], got.OvercommittedNodes[1], got.PendingPods[1], got.NodesUsed[1])
	}
	// The last point has one step instead of three.
	if last := got.OverloadedNodes[points-1]; last != 1 {
		t.Errorf("last point %v, want 1", last)
	}
}
