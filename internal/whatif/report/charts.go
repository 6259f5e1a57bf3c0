package report

import (
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Dimensions of charts of costs.
const (
	costWidth  = 520.0
	costHeight = 300.0
	costLeft   = 62.0
	costRight  = costWidth - 70
	costTop    = 24.0
	costBottom = costHeight - 40
)

// CostPoint is a point of a chart of costs.
type CostPoint struct {
	Cost, Value                 float64
	CostInterval, ValueInterval *result.Interval
	// Label is beside the point, and Name is shown for the pointer of a mouse. Points of the same Line are connected.
	Label, Name, Line string
}

// CostChart draws costs against another figure, with the names of both. Both axes begin at 0.
func CostChart(costName, valueName string, points []CostPoint) Chart {
	var values, costs []float64
	lines := map[string][]*CostPoint{}
	var names []string
	for i := range points {
		p := &points[i]
		values, costs = append(values, p.Value), append(costs, p.Cost)
		if p.ValueInterval != nil && p.CostInterval != nil {
			values, costs = append(values, p.ValueInterval.High), append(costs, p.CostInterval.High)
		}
		if p.Line != "" && lines[p.Line] == nil {
			names = append(names, p.Line)
		}
		lines[p.Line] = append(lines[p.Line], p)
	}
	const margin = 1.08
	title := costName + " against " + valueName
	d := New(costWidth, costHeight, title, "the table has the numbers")
	x := NewScale(0, margin*Max(values...), costLeft, costRight)
	y := NewScale(0, margin*Max(costs...), costBottom, costTop)
	d.YAxis(y.Ticks(5), y, costLeft, costRight, 6, 4)
	d.XAxis(x.Ticks(6), x, costTop, costBottom, costBottom+15)
	d.Printf(`<text class="middle" x="%v" y="%v">%v</text>`, (costLeft+costRight)/2, costHeight-6, valueName)
	d.Printf(`<text x="2" y="%v">%v</text>`, costTop-3, costName)
	for i, name := range names {
		line := lines[name]
		d.Line(LineClass(i), len(line),
			func(i int) float64 { return x.At(line[i].Value) }, func(i int) float64 { return y.At(line[i].Cost) })
	}
	for i := range points {
		p := &points[i]
		atX, atY, drop := x.At(p.Value), y.At(p.Cost), 0.0
		if value, cost := p.ValueInterval, p.CostInterval; value != nil && cost != nil {
			d.Printf(`<path class="thin" d="M%v %vH%vM%v %vV%v"/>`, x.At(value.Low), atY, x.At(value.High), atX, y.At(cost.Low),
				y.At(cost.High))
		}
		if slices.Index(names, p.Line)%2 == 1 {
			drop = 21 // avoids the label of a neighbor
		}
		d.Printf(`<text x="%v" y="%v">%v</text>`, atX+8, atY-6+drop, shorten(p.Label, 22))
	}
	for i := range points { // above all labels
		p := &points[i]
		d.Printf(`<circle class="point" cx="%v" cy="%v" r="4.5"><title>%v</title></circle>`, x.At(p.Value), y.At(p.Cost), p.Name)
	}
	return Chart{title, d.End()}
}

// Frontier shows the cost of nodes against the time that pods are pending, by slack, nil if a scenario has fewer than two amounts of it.
func Frontier(s *result.Scenario, settings *result.Settings) *Section {
	costName, without := "node hours", "; one seed has none"
	if settings.Autoscaler != nil && settings.Autoscaler.Priced {
		costName = "cost of nodes"
	}
	section := &Section{
		Title: "Cost and benefit of slack",
		Head:  []string{"mean over seeds", costName, "pending, mean s", "slack kept", "pending, p95 s"}, Wide: []string{"pending, p95 s"},
	}
	cost, _ := result.FigureByName("cost")
	pending, _ := result.FigureByName("pendingSecondsMean")
	var points []CostPoint
	for i := range s.Profiles {
		p := &s.Profiles[i]
		costs, ok := p.Figures[cost.Name]
		if !ok || p.Slack == "" {
			continue
		}
		point := CostPoint{
			Cost: costs.Mean, CostInterval: p.Interval(cost), Value: p.Figures[pending.Name].Mean, ValueInterval: p.Interval(pending),
			Label: p.Slack, Name: p.Name, Line: strings.TrimSuffix(p.Name, ", slack "+p.Slack),
		}
		if points = append(points, point); point.CostInterval != nil {
			without = ""
		}
		kept := format.None
		if fraction := p.Figures["slackKept"].Mean; fraction > 0 {
			kept = format.Format(100*fraction, 0) + format.ThinSpace + "%"
		}
		section.Rows = append(section.Rows, []string{
			p.Name, meanText(point.Cost, point.CostInterval), meanText(point.Value, point.ValueInterval), kept,
			format.Auto(p.Figures["pendingSecondsP95"].Mean),
		})
	}
	if len(points) < 2 {
		return nil
	}
	if slices.ContainsFunc(points, func(p CostPoint) bool { return p.Line != points[0].Line }) {
		for i := range points {
			points[i].Label = shorten(points[i].Line, 12) + ", " + points[i].Label
		}
	}
	section.Text = []string{"A point for each profile and slack: the cost of the nodes and the time that pods are pending, averaged over " +
		"all pods. The cross shows the confidence intervals of the means over seeds" + without + ". Lower left is better. The p95 of the " +
		"pending time, in the table, is 0 if fewer than one pod in twenty waits, however long that one waits."}
	section.Charts = []Chart{CostChart(costName, "pending, mean seconds", points)}
	return section
}

// meanText formats a mean with its interval, if it has one.
func meanText(mean float64, in *result.Interval) string {
	decimals := format.Decimals(mean)
	if in == nil {
		return format.Format(mean, decimals)
	}
	return format.Format(mean, decimals) + " (" + format.Format(in.Low, decimals) + " to " + format.Format(in.High, decimals) + ")"
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
	result.Better:       "better",
	result.MoreHeadroom: "better",
	result.Worse:        "worse",
	result.Different:    "differs",
	result.Equal:        "equal",
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
