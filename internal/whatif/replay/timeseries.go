package replay

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// maxPoints is the maximum number of points of a time series: as many as a chart can
// show.
const maxPoints = 240

// maxRisks is the maximum number of points of the risks. Each takes an integral per
// node and resource, as long as scoring a pod.
const maxRisks = 60

// timeSeries records the time series of a run. A nil timeSeries records nothing.
type timeSeries struct {
	every   int64
	points  []point
	current counts // of the current step
	// hasAutoscaler and hasSlack state which series exist.
	hasAutoscaler, hasSlack bool
	// riskEvery is the interval of the risks.
	riskEvery         int64
	meanRisks, maxima []float64
}

// counts are the values of a step.
type counts struct{ overloaded, highestLoad, overcommitted, pending, used, nodes, slackKept float64 }

// point is the sum of the steps of a point.
type point struct {
	counts
	steps float64
}

// newTimeSeries returns the time series of a run that ends at a second.
func newTimeSeries(horizon int64) *timeSeries {
	steps := max(horizon/Step, 1)
	return &timeSeries{
		every:     (steps + maxPoints - 1) / maxPoints * Step,
		riskEvery: (steps + maxRisks - 1) / maxRisks * Step,
	}
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
func (t *timeSeries) addAutoscaler(nodes int, a *autoscaler.Autoscaler) {
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
	for int64(len(t.points)) <= second/t.every {
		t.points = append(t.points, point{})
	}
	p := &t.points[second/t.every]
	p.overloaded += t.current.overloaded
	p.highestLoad += t.current.highestLoad
	p.overcommitted += t.current.overcommitted
	p.pending += float64(pending)
	p.used += t.current.used
	p.nodes += t.current.nodes
	p.slackKept += t.current.slackKept
	p.steps++
	t.current = counts{}
}

// risksDue reports whether the risks have to be added at a second.
func (t *timeSeries) risksDue(second int64) bool {
	return t != nil && second >= 0 && second%t.riskEvery == 0
}

// addRisks adds the risks of the nodes with pods.
func (t *timeSeries) addRisks(risks []float64) {
	var sum, highest float64
	for _, v := range risks {
		sum, highest = sum+v, max(highest, v)
	}
	t.meanRisks, t.maxima = append(t.meanRisks, result.Ratio(sum, float64(len(risks)))), append(t.maxima, highest)
}

// result returns the time series, nil if nothing was recorded.
func (t *timeSeries) result() *result.TimeSeries {
	if t == nil {
		return nil
	}
	series := &result.TimeSeries{
		EverySeconds:       t.every,
		OverloadedNodes:    t.means(func(p *point) float64 { return p.overloaded }),
		HighestLoads:       t.means(func(p *point) float64 { return p.highestLoad }),
		OvercommittedNodes: t.means(func(p *point) float64 { return p.overcommitted }),
		PendingPods:        t.means(func(p *point) float64 { return p.pending }),
		NodesUsed:          t.means(func(p *point) float64 { return p.used }),
		RiskEverySeconds:   t.riskEvery, MeanRisks: roundAll(t.meanRisks), HighestRisks: roundAll(t.maxima),
	}
	if t.hasAutoscaler {
		series.Nodes = t.means(func(p *point) float64 { return p.nodes })
	}
	if t.hasSlack {
		series.SlackKept = t.means(func(p *point) float64 { return p.slackKept })
	}
	return series
}

// means returns the mean of a count at each point.
func (t *timeSeries) means(count func(*point) float64) []float64 {
	means := make([]float64, len(t.points))
	for i := range t.points {
		means[i] = result.Ratio(count(&t.points[i]), t.points[i].steps)
	}
	return roundAll(means)
}

// roundAll rounds values to three decimals, which keeps documents small.
func roundAll(values []float64) []float64 {
	rounded := make([]float64, len(values))
	for i, v := range values {
		rounded[i] = math.Round(1000*v) / 1000
	}
	return rounded
}
