package page

import (
	"fmt"
	"math"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/report/svg"
)

// LiveTimeline is the slack of a cluster over time. Times are seconds from the start, in ascending
// order.
type LiveTimeline struct {
	// Unit is the unit of the amounts.
	Unit   string
	Points []TimelinePoint
	Marks  []TimelineMark
}

// TimelinePoint is the state from a time until the next point.
type TimelinePoint struct {
	Seconds, Target, Available float64
	// Waiting is the number of pods without a node.
	Nodes, Waiting int
}

// TimelineMark is an event.
type TimelineMark struct {
	Seconds float64
	Text    string
}

// Layout of the chart in SVG units: two plots over one time axis, and a row with the numbers of the
// marks above them.
const (
	chartLeft, chartRight  = 44.0, 940.0
	discWidth              = 20.0
	amountTop, amountFloor = 30.0, 190.0
	nodesTop, nodesFloor   = 214.0, 254.0
	chartWidth             = chartRight + 16
	chartHeight            = nodesFloor + 24
)

// chart is the chart of a timeline.
type chart struct {
	LiveTimeline
	Width, Height, Left, Right float64
	AmountTop, AmountFloor     float64
	NodesTop, NodesFloor       float64
	// Available is the SVG path of an area, Target and Nodes are those of lines.
	Available, Target, Nodes string
	// Waiting are the periods in which pods had no node.
	Waiting []span
	// Grid are the ticks of the amounts, NodeGrid those of the nodes, Times those of the time axis.
	Grid, NodeGrid, Times []tick
	// Numbers are the marks.
	Numbers []number
	// Last is the last state.
	Last TimelinePoint
}

// span is a period on the time axis.
type span struct{ X, Width float64 }

// tick is a position on an axis and its label.
type tick struct {
	At    float64
	Label string
}

// number is the number of a mark. Disc is its position: that of the mark, or further right if it
// would overlap the previous number.
type number struct {
	At, Disc float64
	Label    string
}

// draw returns the chart of a timeline, nil if it has fewer than two points.
func draw(timeline *LiveTimeline) *chart {
	if timeline == nil || len(timeline.Points) < 2 {
		return nil
	}
	points := timeline.Points
	c := &chart{
		LiveTimeline: *timeline, Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartRight,
		AmountTop: amountTop, AmountFloor: amountFloor, NodesTop: nodesTop, NodesFloor: nodesFloor, Last: points[len(points)-1],
	}
	amount, nodes := 1.0, 1.0
	for _, p := range points {
		amount, nodes = max(amount, p.Target, p.Available), max(nodes, float64(p.Nodes))
	}
	amountStep, nodeStep, timeStep := svg.IntegerStep(amount, 4), svg.IntegerStep(nodes, 3), svg.IntegerStep(c.Last.Seconds, 10)
	x := svg.NewScale(0, max(c.Last.Seconds, timeStep), chartLeft, chartRight)
	amounts := svg.NewScale(0, math.Ceil(amount/amountStep)*amountStep, amountFloor, amountTop)
	counts := svg.NewScale(0, math.Ceil(nodes/nodeStep)*nodeStep, nodesFloor, nodesTop)
	c.Available = stairs(points, x, func(p TimelinePoint) float64 { return amounts.At(p.Available) }) +
		fmt.Sprintf("V%.1fH%.1fZ", amountFloor, x.At(points[0].Seconds))
	c.Target = stairs(points, x, func(p TimelinePoint) float64 { return amounts.At(p.Target) })
	c.Nodes = stairs(points, x, func(p TimelinePoint) float64 { return counts.At(float64(p.Nodes)) })
	c.Grid, c.NodeGrid, c.Times = ticks(amounts, amountStep), ticks(counts, nodeStep), ticks(x, timeStep)
	left := 0.0
	for i, mark := range timeline.Marks {
		at := x.At(mark.Seconds)
		left = max(left, at)
		c.Numbers = append(c.Numbers, number{at, left, fmt.Sprint(i + 1)})
		left += discWidth
	}
	c.Waiting = waiting(points, x)
	return c
}

// stairs returns a path in which each value is constant until the next point.
func stairs(points []TimelinePoint, x svg.Scale, y func(TimelinePoint) float64) string {
	var path strings.Builder
	fmt.Fprintf(&path, "M%.1f %.1f", x.At(points[0].Seconds), y(points[0]))
	for _, p := range points[1:] {
		fmt.Fprintf(&path, "H%.1fV%.1f", x.At(p.Seconds), y(p))
	}
	return path.String()
}

// waiting returns the periods in which pods waited.
func waiting(points []TimelinePoint, x svg.Scale) []span {
	var out []span
	for i, p := range points[:len(points)-1] {
		if p.Waiting == 0 {
			continue
		}
		from, to := x.At(p.Seconds), x.At(points[i+1].Seconds)
		if i > 0 && points[i-1].Waiting > 0 {
			out[len(out)-1].Width = to - out[len(out)-1].X
			continue
		}
		out = append(out, span{from, to - from})
	}
	return out
}

// ticks returns the multiples of a step within a scale.
func ticks(scale svg.Scale, step float64) []tick {
	var out []tick
	for _, t := range scale.Multiples(step) {
		out = append(out, tick{scale.At(t.Value), fmt.Sprint(t.Value)})
	}
	return out
}
