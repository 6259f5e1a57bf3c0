package replay

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// maxPoints is how many points a course has at most: as many as a chart can show
// and a document can carry, however long the run is.
const maxPoints = 240

// course records the course of a run. A nil one records nothing.
type course struct {
	every  int64
	points []point
	now    counts // of the step that is being looked at
	risks  risks
	// scales: an autoscaler makes nodes; keeps: it keeps slack.
	scales, keeps bool
}

// counts are what is counted in a step.
type counts struct{ overloaded, overcommitted, pending, used, there, kept float64 }

// point is the sum of some steps.
type point struct {
	counts
	steps float64
}

// newCourse returns a course of a run that goes to a second.
func newCourse(horizon int64) *course {
	steps := max(horizon/Step, 1)
	return &course{
		every: (steps + maxPoints - 1) / maxPoints * Step,
		risks: risks{every: (steps + maxRisks - 1) / maxRisks * Step},
	}
}

// node takes in a step on a node that has so many pods.
func (c *course) node(has outcome.Node, pods int, step outcome.Step) {
	if c == nil || pods == 0 {
		return
	}
	c.now.used++
	if step.Overloaded() {
		c.now.overloaded++
	}
	if step.CPULimits > has.CPU || step.MemoryLimits > has.Memory {
		c.now.overcommitted++
	}
}

// scaled takes in what an autoscaler has in a step: nodes, and a part of the slack
// that it is to keep.
func (c *course) scaled(r *run) {
	if c == nil || r.scaler == nil {
		return
	}
	c.scales, c.keeps = true, r.scaler.slack != nil
	for i := range r.nodes {
		if r.nodes[i].up {
			c.now.there++
		}
	}
	if c.keeps {
		c.now.kept = r.scaler.slack.kept.part
	}
}

// endStep ends the step of a second, in which so many pods waited.
func (c *course) endStep(second int64, waiting int) {
	if c == nil {
		return
	}
	for int64(len(c.points)) <= second/c.every {
		c.points = append(c.points, point{})
	}
	p := &c.points[second/c.every]
	p.overloaded += c.now.overloaded
	p.overcommitted += c.now.overcommitted
	p.pending += float64(waiting)
	p.used += c.now.used
	p.there += c.now.there
	p.kept += c.now.kept
	p.steps++
	c.now = counts{}
}

// course returns what was recorded, of nodes as they were summed up.
func (c *course) course(sums *outcome.Totals) *result.TimeSeries {
	if c == nil {
		return nil
	}
	cpu, memory := sums.LimitRatios()
	course := &result.TimeSeries{
		EverySeconds:       c.every,
		OverloadedNodes:    c.series(func(p *point) float64 { return p.overloaded }),
		OvercommittedNodes: c.series(func(p *point) float64 { return p.overcommitted }),
		PendingPods:        c.series(func(p *point) float64 { return p.pending }),
		NodesUsed:          c.series(func(p *point) float64 { return p.used }),
		CPULimitRatios:     rounded(cpu), MemoryLimitRatios: rounded(memory),
		RiskEverySeconds: c.risks.every, MeanRisks: rounded(c.risks.means), HighestRisks: rounded(c.risks.highest),
	}
	if c.scales {
		course.Nodes = c.series(func(p *point) float64 { return p.there })
	}
	if c.keeps {
		course.SlackKept = c.series(func(p *point) float64 { return p.kept })
	}
	return course
}

// series returns the means of one of the counts.
func (c *course) series(of func(*point) float64) []float64 {
	means := make([]float64, len(c.points))
	for i := range c.points {
		means[i] = part(of(&c.points[i]), c.points[i].steps)
	}
	return rounded(means)
}

// rounded keeps three decimals: more cannot be seen, and documents carry many.
func rounded(values []float64) []float64 {
	short := make([]float64, len(values))
	for i, v := range values {
		short[i] = round(v)
	}
	return short
}

// round keeps three decimals of a value.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }
