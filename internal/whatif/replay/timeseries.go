package replay

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// maxPoints is the maximum number of points of a time series: as many as a chart can
// show.
const maxPoints = 240

// timeSeries records the time series of a run. A nil timeSeries records nothing.
type timeSeries struct {
	// sums has the sum of the steps of each point, steps the number of steps of each point.
	sums  result.TimeSeries
	steps []float64
	// current has the values of the current step.
	current counts
	// hasAutoscaler and hasSlack state which series exist.
	hasAutoscaler, hasSlack bool
}

// counts are the values of a step.
type counts struct{ overloaded, highestLoad, overcommitted, used, nodes, slackKept float64 }

// newTimeSeries returns the time series of a run that ends at a second.
func newTimeSeries(horizon int64) *timeSeries {
	steps := max(horizon/Step, 1)
	return &timeSeries{sums: result.TimeSeries{
		EverySeconds: (steps + maxPoints - 1) / maxPoints * Step,
		// Lists in documents are not null.
		OverloadedNodes: []float64{}, HighestLoads: []float64{}, OvercommittedNodes: []float64{}, PendingPods: []float64{},
		NodesUsed: []float64{},
	}}
}

// addNode adds a step of a node with a number of pods.
func (t *timeSeries) addNode(allocatable result.Capacity, pods int, step result.Step) {
	if t == nil || pods == 0 {
		return
	}
	t.current.used++
	t.current.highestLoad = max(t.current.highestLoad,
		result.Ratio(step.CPUDemand, allocatable.CPU), result.Ratio(step.MemoryDemand, allocatable.Memory))
	if step.Overloaded() {
		t.current.overloaded++
	}
	if step.CPULimits > allocatable.CPU || step.MemoryLimits > allocatable.Memory {
		t.current.overcommitted++
	}
}

// addAutoscaler adds the number of ready nodes and the available slack in a step.
func (t *timeSeries) addAutoscaler(nodes int, a *scaling.Autoscaler) {
	if t == nil {
		return
	}
	t.hasAutoscaler, t.current.nodes = true, float64(nodes)
	t.current.slackKept, t.hasSlack = a.SlackKept()
}

// endStep ends a step with a number of pending pods.
func (t *timeSeries) endStep(second int64, pending int) {
	if t == nil {
		return
	}
	point := int(second / t.sums.EverySeconds)
	add := func(series *[]float64, value float64) {
		for len(*series) <= point {
			*series = append(*series, 0)
		}
		(*series)[point] += value
	}
	add(&t.steps, 1)
	add(&t.sums.OverloadedNodes, t.current.overloaded)
	add(&t.sums.HighestLoads, t.current.highestLoad)
	add(&t.sums.OvercommittedNodes, t.current.overcommitted)
	add(&t.sums.PendingPods, float64(pending))
	add(&t.sums.NodesUsed, t.current.used)
	if t.hasAutoscaler {
		add(&t.sums.Nodes, t.current.nodes)
	}
	if t.hasSlack {
		add(&t.sums.SlackKept, t.current.slackKept)
	}
	t.current = counts{}
}

// result returns the time series, nil if nothing was recorded.
func (t *timeSeries) result() *result.TimeSeries {
	if t == nil {
		return nil
	}
	series := t.sums
	for _, sums := range [][]float64{
		series.OverloadedNodes, series.HighestLoads, series.OvercommittedNodes, series.PendingPods, series.NodesUsed, series.Nodes,
		series.SlackKept,
	} {
		for i := range sums {
			sums[i] = rounded(sums[i] / t.steps[i])
		}
	}
	return &series
}

// rounded rounds a value to three decimals, which keeps documents small.
func rounded(v float64) float64 { return math.Round(1000*v) / 1000 }
