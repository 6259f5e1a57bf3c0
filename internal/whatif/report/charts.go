package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Dimensions of charts of costs.
const (
	frontierWidth  = 520.0
	frontierHeight = 300.0
	frontierLeft   = 62.0
	frontierRight  = frontierWidth - 70
	frontierTop    = 14.0
	frontierBottom = frontierHeight - 40
)

// frontier shows the cost of nodes against the time that pods are pending, by slack.
type frontier struct {
	CostName  string
	Intervals bool
	SVG       template.HTML
	Rows      []frontierRow
}

// frontierRow is a profile with an amount of slack.
type frontierRow struct {
	Name                                         string
	Cost, CostInterval, Pending, PendingInterval string
	P95, Kept                                    string
}

// newFrontier returns the frontier of a scenario, or nil if it has none.
func newFrontier(s *result.Scenario, settings *result.Settings) *frontier {
	points := s.Frontier()
	if len(points) == 0 {
		return nil
	}
	f := &frontier{CostName: "node hours"}
	if settings.Autoscaler != nil && settings.Autoscaler.Priced {
		f.CostName = "cost of nodes"
	}
	var costs, pending []float64
	for _, p := range points {
		f.Intervals = f.Intervals || p.CostInterval != nil
		costs, pending = append(costs, p.Cost), append(pending, p.Pending)
	}
	costDecimals, pendingDecimals := format.Decimals(costs...), format.Decimals(pending...)
	for _, p := range points {
		row := frontierRow{
			Name: p.Name,
			Cost: format.Format(p.Cost, costDecimals), CostInterval: rangeText(p.CostInterval, costDecimals),
			Pending: format.Format(p.Pending, pendingDecimals), PendingInterval: rangeText(p.PendingInterval, pendingDecimals),
			P95: format.Format(p.PendingP95, min(format.Decimals(p.PendingP95), 1)), Kept: format.None,
		}
		if p.SlackKept > 0 {
			row.Kept = format.Format(100*p.SlackKept, 0) + format.ThinSpace + "%"
		}
		f.Rows = append(f.Rows, row)
	}
	f.SVG = frontierChart(points, f.CostName)
	return f
}

// rangeText formats an interval as "low to high", nil as an empty string.
func rangeText(in *result.Interval, decimals int) string {
	if in == nil {
		return ""
	}
	return format.Format(in.Low, decimals) + " to " + format.Format(in.High, decimals)
}

// axisRange returns the range of an axis that shows the points with their intervals and a margin. It
// starts at 0 if 0 is close.
func axisRange(points []result.FrontierPoint, of func(*result.FrontierPoint) (float64, *result.Interval)) [2]float64 {
	var values []float64
	for i := range points {
		v, in := of(&points[i])
		values = append(values, v)
		if in != nil {
			values = append(values, in.Low, in.High)
		}
	}
	values = slices.DeleteFunc(values, func(v float64) bool { return !format.IsFinite(v) })
	low, high := 0.0, 0.0
	if len(values) > 0 {
		low, high = slices.Min(values), slices.Max(values)
	}
	margin := 0.08 * (high - low)
	if margin == 0 {
		margin = max(0.08*high, 0.5)
	}
	if low-margin < 0.3*high {
		return [2]float64{min(0, low), high + margin}
	}
	return [2]float64{low - margin, high + margin}
}

// NewCostChart starts a chart of costs against another figure, with the names and the ranges of both, and returns its scales.
func NewCostChart(title, name, costName string, figures, costs [2]float64) (d *Drawing, x, y Scale) {
	d = New(frontierWidth, frontierHeight, title, "the table has the numbers")
	x = NewScale(figures[0], figures[1], frontierLeft, frontierRight)
	y = NewScale(costs[0], costs[1], frontierBottom, frontierTop)
	d.YAxis(y.Ticks(5), y, frontierLeft, frontierRight, 6, 4)
	d.XAxis(x.Ticks(6), x, frontierTop, frontierBottom, frontierBottom+15)
	d.Printf(`<text class="middle" x="%v" y="%v">%v</text>`, (frontierLeft+frontierRight)/2, frontierHeight-6, name)
	d.Printf(`<text x="2" y="%v">%v</text>`, frontierTop-3, costName)
	return d, x, y
}

// frontierChart draws the cost of nodes against the mean time that pods are pending.
func frontierChart(points []result.FrontierPoint, costName string) template.HTML {
	const timeName = "pending, mean seconds"
	d, x, y := NewCostChart(costName+" against "+timeName+", by slack", timeName, costName,
		axisRange(points, func(p *result.FrontierPoint) (float64, *result.Interval) { return p.Pending, p.PendingInterval }),
		axisRange(points, func(p *result.FrontierPoint) (float64, *result.Interval) { return p.Cost, p.CostInterval }))
	// A line connects the points of a profile in the order of the slack options.
	profiles := map[string][]*result.FrontierPoint{}
	var names []string
	for i := range points {
		name := profileName(&points[i])
		if profiles[name] == nil {
			names = append(names, name)
		}
		profiles[name] = append(profiles[name], &points[i])
	}
	for i, name := range names {
		line := profiles[name]
		d.Line(LineClass(i), len(line),
			func(i int) float64 { return x.At(line[i].Pending) }, func(i int) float64 { return y.At(line[i].Cost) })
	}
	for i := range points {
		p := &points[i]
		atX, atY := x.At(p.Pending), y.At(p.Cost)
		if pending, cost := p.PendingInterval, p.CostInterval; pending != nil && cost != nil {
			d.Printf(`<path class="thin" d="M%v %vH%vM%v %vV%v"/>`,
				x.At(pending.Low), atY, x.At(pending.High), atX, y.At(cost.Low), y.At(cost.High))
		}
		label, drop := p.Slack, 0.0
		if len(names) > 1 {
			label = fmt.Sprintf("%s, %s", shorten(profileName(p), 12), p.Slack)
			drop = 21 * float64(slices.Index(names, profileName(p))%2) // Avoid the label of a neighbor.
		}
		d.Printf(`<text x="%v" y="%v">%v</text>`, atX+8, atY-6+drop, shorten(label, 22))
	}
	for i := range points { // Above all labels.
		d.Printf(`<circle class="point" cx="%v" cy="%v" r="4.5"/>`, x.At(points[i].Pending), y.At(points[i].Cost))
	}
	return d.End()
}

// profileName returns the name of a point's profile without its slack.
func profileName(p *result.FrontierPoint) string {
	return strings.TrimSuffix(p.Name, ", slack "+p.Slack)
}

// Dimensions of a dot with its whisker.
const (
	whiskerWidth  = 150.0
	whiskerHeight = 18.0
	whiskerMargin = 6.0
)

// whiskerScale returns the scale of the differences of a figure: symmetric around 0, and wide enough
// for all differences that are not negligible.
func whiskerScale(differences []*result.Difference, base float64) Scale {
	var largest float64
	for _, d := range differences {
		if d == nil || result.Negligible(d, base) {
			continue
		}
		for _, v := range result.MeanAndInterval(d) {
			largest = Max(largest, math.Abs(v))
		}
	}
	if largest == 0 || !format.IsFinite(2*largest) {
		largest = 1
	}
	return NewScale(-largest, largest, whiskerMargin, whiskerWidth-whiskerMargin)
}

// classes has the CSS classes of the answers with a style. Answers themselves are text: their words
// could be classes of other elements.
var classes = map[result.Answer]string{
	result.Better:    "better",
	result.Worse:     "worse",
	result.Different: "differs",
	result.Equal:     "equal",
}

// whisker draws a difference as a dot and its interval as a line. It is hidden from screen readers:
// the table has the numbers.
func whisker(scale Scale, d *result.Difference, v result.Answer) template.HTML {
	g := newHidden(whiskerWidth, whiskerHeight, "whisker "+classes[v])
	middle := whiskerHeight / 2
	g.Printf(`<path class="zero" d="M%v 0V%v"/>`, scale.At(0), whiskerHeight)
	if d == nil || !format.IsFinite(d.Mean) {
		return g.End()
	}
	if v == result.Equal {
		d = &result.Difference{}
	}
	if d.Interval != nil {
		g.Printf(`<path class="interval" d="M%v %vH%v"/>`, scale.At(d.Interval.Low), middle, scale.At(d.Interval.High))
	}
	g.Printf(`<circle cx="%v" cy="%v" r="4"/>`, scale.At(d.Mean), middle)
	return g.End()
}
