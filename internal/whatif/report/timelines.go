package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"time"

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

// LineClass returns the CSS class of the line with a number.
func LineClass(number int) string { return "s" + strconv.Itoa(number%lineClasses) }

// series is a time series with its chart's title.
type series struct {
	title  string
	values func(*result.TimeSeries) []float64
}

var allSeries = []series{
	{"Overloaded nodes", func(c *result.TimeSeries) []float64 { return c.OverloadedNodes }},
	{"Highest load of a node, of allocatable", func(c *result.TimeSeries) []float64 { return c.HighestLoads }},
	{"Nodes with limits above allocatable", func(c *result.TimeSeries) []float64 { return c.OvercommittedNodes }},
	{"Pending pods", func(c *result.TimeSeries) []float64 { return c.PendingPods }},
	{"Nodes with pods", func(c *result.TimeSeries) []float64 { return c.NodesUsed }},
	{"Nodes", func(c *result.TimeSeries) []float64 { return c.Nodes }},
	{"Available slack, fraction of the target", func(c *result.TimeSeries) []float64 { return c.SlackKept }},
}

// Chart is a drawing with its title.
type Chart struct {
	Title string
	SVG   template.HTML
}

// Line is a line of a chart over time.
type Line struct {
	Name, Class string
	// Interval is the time between two values in seconds. Values that are not a number are gaps.
	Interval float64
	Values   []float64
}

// overTime has a chart of each series, with a line for the measurement and each profile, nil without time series.
func overTime(s *result.Scenario) *Section {
	section := &Section{Title: "Over time"}
	all := s.Profiles
	if s.Measured != nil {
		all = append([]result.Profile{*s.Measured}, all...)
	}
	var start, end time.Time
	var profiles []*result.Profile // with time series
	for i := range all {
		p := &all[i]
		for j := range p.Runs {
			c := p.Runs[j].TimeSeries
			if c == nil {
				continue
			}
			if len(profiles) == 0 || c.From.Before(start) {
				start = c.From
			}
			if last := c.From.Add(time.Duration(len(c.OverloadedNodes)) * time.Duration(c.EverySeconds) * time.Second); last.After(end) {
				end = last
			}
			if !slices.Contains(profiles, p) {
				profiles, section.Lines = append(profiles, p), append(section.Lines, Line{Class: LineClass(i), Name: p.Name})
				section.Text = []string{fmt.Sprintf("Seed %d.", p.Runs[j].Seed)}
			}
		}
	}
	if !start.IsZero() {
		section.Text = []string{"Times are UTC. A point is the highest value around it, and a gap is a time without a result."}
	}
	seconds := end.Sub(start).Seconds()
	for _, series := range allSeries {
		lines, isKnown := slices.Clone(section.Lines), false
		for i, p := range profiles {
			lines[i].Interval, lines[i].Values = seconds/chartPoints, series.sample(p, start, seconds)
			isKnown = isKnown || slices.ContainsFunc(lines[i].Values, func(v float64) bool { return !math.IsNaN(v) })
		}
		if isKnown {
			section.Charts = append(section.Charts, NewTimeChart(series.title, start, seconds, lines))
		}
	}
	if len(section.Charts) == 0 {
		return nil
	}
	return section
}

// chartPoints is the number of points of a line, as many as a run has at most.
const chartPoints = 240

// sample returns the highest value of all runs of a profile in each of chartPoints intervals of a time in seconds, NaN without any.
func (s *series) sample(p *result.Profile, start time.Time, seconds float64) []float64 {
	points := slices.Repeat([]float64{math.NaN()}, chartPoints)
	for i := range p.Runs {
		c := p.Runs[i].TimeSeries
		if c == nil {
			continue
		}
		every := float64(c.EverySeconds)
		for j, value := range s.values(c) {
			// A value counts in all intervals until the next value.
			at := c.From.Sub(start).Seconds() + float64(j)*every
			first, last := int(math.Round(at/seconds*chartPoints)), int(math.Round((at+every)/seconds*chartPoints))
			for k := max(first, 0); k < min(max(last, first+1), chartPoints); k++ {
				if math.IsNaN(points[k]) || value > points[k] {
					points[k] = value
				}
			}
		}
	}
	return points
}

// NewTimeChart draws lines on common scales over a duration in seconds. The axis has times of day or days if start is not zero, and else
// the time since the start.
func NewTimeChart(title string, start time.Time, duration float64, lines []Line) Chart {
	highest, description := 0.0, "highest:"
	for _, l := range lines {
		top := Max(l.Values...)
		highest = max(highest, top)
		description += fmt.Sprintf(" %s %s;", l.Name, format.Auto(top))
	}
	d := New(chartWidth, chartHeight, title+" over time, by profile", description)
	y := NewScale(0, highest, chartBottom, chartTop)
	parts := 4
	for isWhole(lines) && parts > 1 && stepDecimals(Step(max(highest, 1), parts)) > 0 {
		parts-- // half a node is no tick
	}
	d.YAxis(y.Ticks(parts), y, chartLeft, chartRight, 6, 4)
	timeAxis(d, start, duration)
	for _, l := range lines {
		x := NewScale(0, duration/l.Interval, chartLeft, chartRight)
		d.Line(l.Class, len(l.Values), func(i int) float64 { return x.At(float64(i)) }, func(i int) float64 {
			if math.IsNaN(l.Values[i]) {
				return l.Values[i]
			}
			return y.At(l.Values[i])
		})
	}
	return Chart{title, d.End()}
}

// isWhole reports whether all known values of lines are whole numbers, such as numbers of nodes.
func isWhole(lines []Line) bool {
	return !slices.ContainsFunc(lines, func(l Line) bool {
		return slices.ContainsFunc(l.Values, func(v float64) bool { return !math.IsNaN(v) && v != math.Trunc(v) })
	})
}

// timeAxis draws the axis of NewTimeChart.
func timeAxis(d *Drawing, start time.Time, duration float64) {
	seconds, unit := 60.0, " min"
	switch {
	case duration > 4*24*3600:
		seconds, unit = 24*3600, " d"
	case duration > 3*3600:
		seconds, unit = 3600, " h"
	}
	x := NewScale(0, duration/seconds, chartLeft, chartRight)
	ticks := x.Ticks(6)
	for i := range ticks {
		at, layout := start.Add(time.Duration(ticks[i].Value*seconds)*time.Second).UTC(), "15:04"
		if duration > 24*3600 {
			layout = "Jan 2"
		}
		if ticks[i].Label += unit; !start.IsZero() {
			ticks[i].Label = at.Format(layout)
		}
	}
	d.XAxis(ticks, x, chartBottom, chartBottom+4, chartHeight-6)
}
