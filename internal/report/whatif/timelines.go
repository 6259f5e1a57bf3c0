package whatif

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// The size of a chart over time.
const (
	chartWidth  = 460.0
	chartHeight = 170.0
	chartLeft   = 52.0
	chartRight  = 24.0
	chartTop    = 10.0
	chartBottom = 24.0
)

// maxLines is how many lines have a look of their own: a colour and a dash.
const maxLines = 7

// lineClass returns the look of the line of a profile.
func lineClass(profile int) string { return "s" + strconv.Itoa(profile%maxLines) }

// timeline is one of the series of a course.
type timeline struct {
	title string
	of    func(*result.TimeSeries) []float64
	every func(*result.TimeSeries) int64
}

func steps(c *result.TimeSeries) int64 { return c.EverySeconds }

func risks(c *result.TimeSeries) int64 { return c.RiskEverySeconds }

var timelines = []timeline{
	{"Nodes overloaded", func(c *result.TimeSeries) []float64 { return c.OverloadedNodes }, steps},
	{"Nodes whose limits are more than they have", func(c *result.TimeSeries) []float64 { return c.OvercommittedNodes }, steps},
	{"Risk of nodes, mean", func(c *result.TimeSeries) []float64 { return c.MeanRisks }, risks},
	{"Risk of the node of highest risk", func(c *result.TimeSeries) []float64 { return c.HighestRisks }, risks},
	{"Pods pending", func(c *result.TimeSeries) []float64 { return c.PendingPods }, steps},
	{"Nodes used", func(c *result.TimeSeries) []float64 { return c.NodesUsed }, steps},
	{"Nodes there", func(c *result.TimeSeries) []float64 { return c.Nodes }, steps},
	{"Part of the slack that is there", func(c *result.TimeSeries) []float64 { return c.SlackKept }, steps},
}

// chart is a picture with its title.
type chart struct {
	Title string
	SVG   template.HTML
}

// overTime draws the series of all profiles of a scenario, each series on one
// scale.
func overTime(s *result.Scenario) []chart {
	var charts []chart
	for _, line := range timelines {
		var highest, longest float64
		any := false
		for i := range s.Profiles {
			if c := courseOf(&s.Profiles[i]); c != nil && len(line.of(c)) > 0 {
				any = true
				highest = most(append([]float64{highest}, line.of(c)...)...)
				longest = max(longest, float64(len(line.of(c)))*float64(line.every(c)))
			}
		}
		if any {
			charts = append(charts, chart{line.title, overTimeOf(s, line, highest, longest)})
		}
	}
	return charts
}

// overTimeOf draws one series.
func overTimeOf(s *result.Scenario, line timeline, highest, longest float64) template.HTML {
	var description strings.Builder
	description.WriteString("highest:")
	d := newDrawing(chartWidth, chartHeight, line.title+" over time, by profile", "")
	y := newScale(0, highest, chartHeight-chartBottom, chartTop)
	for _, t := range y.ticks(4) {
		d.f(`<path class="g" d="M%v %vH%v"/><text class="e" x="%v" y="%v">%v</text>`, chartLeft, y.at(t.value), chartWidth-chartRight, chartLeft-6, y.at(t.value)+4, t.label)
	}
	timeAxis(d, longest)
	for i := range s.Profiles {
		c := courseOf(&s.Profiles[i])
		if c == nil {
			continue
		}
		values := line.of(c)
		fmt.Fprintf(&description, " %s %s;", s.Profiles[i].Name, number(most(values...), decimals(most(values...))))
		steps := longest / float64(max(line.every(c), 1))
		d.curve(lineClass(i), newScale(0, steps, chartLeft, chartWidth-chartRight), y, values)
	}
	d.f(`<desc>%v</desc>`, description.String())
	return d.end()
}

// timeAxis draws the axis of time, in a unit that fits.
func timeAxis(d *drawing, seconds float64) {
	unit, name := 60.0, "min"
	switch {
	case seconds > 4*24*3600:
		unit, name = 24*3600, "d"
	case seconds > 3*3600:
		unit, name = 3600, "h"
	}
	x := newScale(0, seconds/unit, chartLeft, chartWidth-chartRight)
	for _, t := range x.ticks(6) {
		d.f(`<path class="g" d="M%v %vv4"/><text class="m" x="%v" y="%v">%v</text>`, x.at(t.value), chartHeight-chartBottom, x.at(t.value), chartHeight-6, t.label+" "+name)
	}
}
