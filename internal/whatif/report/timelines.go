package report

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Dimensions of a chart over time.
const (
	chartWidth  = 460.0
	chartHeight = 170.0
	chartLeft   = 52.0
	chartRight  = chartWidth - 24
	chartTop    = 10.0
	chartBottom = chartHeight - 24
)

// lineClasses is the number of CSS classes of lines, each with a color and a dash pattern.
const lineClasses = 7

// lineClass returns the CSS class of the line of a profile.
func lineClass(profile int) string { return "s" + strconv.Itoa(profile%lineClasses) }

// series is a time series with its chart's title. The values are interval seconds apart.
type series struct {
	title    string
	values   func(*result.TimeSeries) []float64
	interval func(*result.TimeSeries) int64
}

func stepSeconds(c *result.TimeSeries) int64 { return c.EverySeconds }

func riskSeconds(c *result.TimeSeries) int64 { return c.RiskEverySeconds }

var allSeries = []series{
	{"Overloaded nodes", func(c *result.TimeSeries) []float64 { return c.OverloadedNodes }, stepSeconds},
	{"Nodes with limits above allocatable", func(c *result.TimeSeries) []float64 { return c.OvercommittedNodes }, stepSeconds},
	{"Risk, mean of the nodes", func(c *result.TimeSeries) []float64 { return c.MeanRisks }, riskSeconds},
	{"Risk, highest of the nodes", func(c *result.TimeSeries) []float64 { return c.HighestRisks }, riskSeconds},
	{"Pending pods", func(c *result.TimeSeries) []float64 { return c.PendingPods }, stepSeconds},
	{"Nodes with pods", func(c *result.TimeSeries) []float64 { return c.NodesUsed }, stepSeconds},
	{"Nodes", func(c *result.TimeSeries) []float64 { return c.Nodes }, stepSeconds},
	{"Available slack, fraction of the target", func(c *result.TimeSeries) []float64 { return c.SlackKept }, stepSeconds},
}

// chart is a drawing with its title.
type chart struct {
	Title string
	SVG   template.HTML
}

// timeCharts draws each series for all profiles of a scenario.
func timeCharts(s *result.Scenario) []chart {
	var charts []chart
	for _, line := range allSeries {
		var highest, duration float64
		found := false
		for i := range s.Profiles {
			if c := recordedRun(&s.Profiles[i]).TimeSeries; c != nil && len(line.values(c)) > 0 {
				found = true
				highest = Max(highest, Max(line.values(c)...))
				duration = max(duration, float64(len(line.values(c)))*float64(line.interval(c)))
			}
		}
		if found {
			charts = append(charts, chart{line.title, line.chart(s, highest, duration)})
		}
	}
	return charts
}

// chart draws the series for all profiles on common scales up to the highest value and over a
// duration in seconds.
func (l series) chart(s *result.Scenario, highest, duration float64) template.HTML {
	var description strings.Builder
	description.WriteString("highest:")
	d := New(chartWidth, chartHeight, l.title+" over time, by profile", "")
	y := NewScale(0, highest, chartBottom, chartTop)
	d.YAxis(y.Ticks(4), y, chartLeft, chartRight, 6, 4)
	timeAxis(d, duration)
	for i := range s.Profiles {
		c := recordedRun(&s.Profiles[i]).TimeSeries
		if c == nil {
			continue
		}
		values := l.values(c)
		fmt.Fprintf(&description, " %s %s;", s.Profiles[i].Name, format.Auto(Max(values...)))
		x := NewScale(0, duration/float64(max(l.interval(c), 1)), chartLeft, chartRight)
		d.Line(lineClass(i), len(values),
			func(i int) float64 { return x.At(float64(i)) }, func(i int) float64 { return y.At(values[i]) })
	}
	d.Describe(description.String())
	return d.End()
}

// timeAxis draws an axis over a duration in seconds, in minutes, hours or days.
func timeAxis(d *Drawing, duration float64) {
	seconds, unit := 60.0, "min"
	switch {
	case duration > 4*24*3600:
		seconds, unit = 24*3600, "d"
	case duration > 3*3600:
		seconds, unit = 3600, "h"
	}
	x := NewScale(0, duration/seconds, chartLeft, chartRight)
	ticks := x.Ticks(6)
	for i := range ticks {
		ticks[i].Label += " " + unit
	}
	d.XAxis(ticks, x, chartBottom, chartBottom+4, chartHeight-6)
}
