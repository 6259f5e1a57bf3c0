package whatif

import (
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

//go:embed frontier.html
var frontierText string

// The page shows a frontier where it says {{template "frontier"}}.
var _ = template.Must(page.New("frontier").Parse(frontierText))

// The size of the picture of a frontier.
const (
	frontierWidth  = 520.0
	frontierHeight = 300.0
	frontierLeft   = 62.0
	frontierRight  = 70.0
	frontierTop    = 14.0
	frontierBottom = 40.0
)

// frontier is what slack costs and what it saves.
type frontier struct {
	CostName  string
	Intervals bool
	SVG       template.HTML
	Rows      []frontierRow
}

// frontierRow is a profile with so much slack.
type frontierRow struct {
	Name                                         string
	Cost, CostInterval, Pending, PendingInterval string
	P95, Kept                                    string
}

// newFrontier makes the frontier of a scenario, nil if there is none.
func newFrontier(s *result.Scenario, settings *result.Settings) *frontier {
	points, err := s.Frontier()
	if err != nil || len(points) == 0 { // an interval fails of numbers only that are none
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
	for _, p := range points {
		row := frontierRow{
			Name: p.Name, Cost: number(p.Cost, decimals(costs...)), Pending: number(p.Pending, decimals(pending...)),
			CostInterval: between(p.CostInterval, decimals(costs...)), PendingInterval: between(p.PendingInterval, decimals(pending...)),
			P95: number(p.PendingP95, min(decimals(p.PendingP95), 1)), Kept: "–",
		}
		if p.SlackKept > 0 {
			row.Kept = number(100*p.SlackKept, 0) + thin + "%"
		}
		f.Rows = append(f.Rows, row)
	}
	f.SVG = frontierPicture(points, f.CostName)
	return f
}

// between says where a mean is.
func between(in *result.Interval, digits int) string {
	if in == nil {
		return ""
	}
	return number(in.Low, digits) + " to " + number(in.High, digits)
}

// span returns the least and the most of what is to be seen of points, with a
// margin; it begins at 0 if that is not far away.
func span(points []result.FrontierPoint, of func(*result.FrontierPoint) (float64, *result.Interval)) (low, high float64) {
	for i := range points {
		v, in := of(&points[i])
		values := []float64{v}
		if in != nil {
			values = append(values, in.Low, in.High)
		}
		values = slices.DeleteFunc(values, func(v float64) bool { return !finite(v) })
		for _, v := range values {
			if i == 0 && high == 0 {
				low, high = v, v
			}
			low, high = min(low, v), max(high, v)
		}
	}
	margin := 0.08 * (high - low)
	if margin == 0 {
		margin = max(0.08*high, 0.5)
	}
	if low-margin < 0.3*high {
		return min(0, low), high + margin
	}
	return low - margin, high + margin
}

// frontierPicture draws what nodes cost against how long pods waited.
func frontierPicture(points []result.FrontierPoint, costName string) template.HTML {
	d := newDrawing(frontierWidth, frontierHeight, costName+" against seconds that pods waited, by slack", "the figures are in the table")
	low, high := span(points, func(p *result.FrontierPoint) (float64, *result.Interval) { return p.Pending, p.PendingInterval })
	x := newScale(low, high, frontierLeft, frontierWidth-frontierRight)
	low, high = span(points, func(p *result.FrontierPoint) (float64, *result.Interval) { return p.Cost, p.CostInterval })
	y := newScale(low, high, frontierHeight-frontierBottom, frontierTop)
	for _, t := range y.ticks(5) {
		d.f(`<path class="g" d="M%v %vH%v"/><text class="e" x="%v" y="%v">%v</text>`, frontierLeft, y.at(t.value), frontierWidth-frontierRight, frontierLeft-6, y.at(t.value)+4, t.label)
	}
	for _, t := range x.ticks(6) {
		d.f(`<path class="g" d="M%v %vV%v"/><text class="m" x="%v" y="%v">%v</text>`, x.at(t.value), frontierTop, frontierHeight-frontierBottom, x.at(t.value), frontierHeight-frontierBottom+15, t.label)
	}
	d.f(`<text class="m" x="%v" y="%v">pending, mean seconds</text>`, (frontierLeft+frontierWidth-frontierRight)/2, frontierHeight-6)
	d.f(`<text x="2" y="%v">%v</text>`, frontierTop-3, costName)
	// One line for each profile, in the order in which slack was asked for.
	var names []string
	of := func(p *result.FrontierPoint) string { return strings.TrimSuffix(p.Name, ", slack "+p.Slack) }
	for i := range points {
		if !slices.Contains(names, of(&points[i])) {
			names = append(names, of(&points[i]))
		}
	}
	for number, name := range names {
		command := "M"
		d.f(`<path class="%v" d="`, lineClass(number))
		for i := range points {
			if of(&points[i]) == name {
				d.f("%v%v %v", command, x.at(points[i].Pending), y.at(points[i].Cost))
				command = "L"
			}
		}
		d.WriteString(`"/>`)
	}
	for i := range points {
		p := &points[i]
		atX, atY := x.at(p.Pending), y.at(p.Cost)
		if p.PendingInterval != nil && p.CostInterval != nil {
			d.f(`<path class="thin" d="M%v %vH%vM%v %vV%v"/>`, x.at(p.PendingInterval.Low), atY, x.at(p.PendingInterval.High), atX, y.at(p.CostInterval.Low), y.at(p.CostInterval.High))
		}
		label, under := p.Slack, 0.0
		if len(names) > 1 {
			label = fmt.Sprintf("%s, %s", shorten(of(p), 12), p.Slack)
			under = 21 * float64(slices.Index(names, of(p))%2) // not where that of its neighbour is
		}
		d.f(`<text x="%v" y="%v">%v</text>`, atX+8, atY-6+under, shorten(label, 22))
	}
	for i := range points { // over all texts
		d.f(`<circle class="half" cx="%v" cy="%v" r="4.5"/>`, x.at(points[i].Pending), y.at(points[i].Cost))
	}
	return d.end()
}
