package shadow

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

//go:embed page.html
var pageText string

var page = template.Must(template.New("page").Funcs(template.FuncMap{
	"style": func() template.CSS { return report.Style },
	"time":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
	"level": func() string { return fmt.Sprintf("%.0f %%", 100*result.Level) },
}).Parse(pageText))

// view is the data of page.html.
type view struct {
	*Report
	Charts []chart
	Lines  []line
	Tables []Table
}

// chart is a drawing with its title.
type chart struct {
	Title string
	SVG   template.HTML
}

// Table is a table of a report.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

// NamedValue is a measurement in words.
type NamedValue struct{ Name, Value string }

// line is a line of all charts.
type line struct {
	Name, Class string
	run         func(*Window) *result.Run
}

// Write writes the page of a report over windows.
func (r *Report) Write(out io.Writer, windows []*Window) error {
	v := view{Report: r, Tables: r.Tables(), Lines: r.lines()}
	windows = slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return w.Error != "" })
	if len(windows) > 0 {
		v.Charts = []chart{
			r.chart("Overloaded nodes", v.Lines, windows, func(s *result.TimeSeries) []float64 { return s.OverloadedNodes }),
			r.chart(
				"Highest load of a node, of allocatable",
				v.Lines,
				windows,
				func(s *result.TimeSeries) []float64 { return s.HighestLoads },
			),
		}
	}
	return page.Execute(out, v)
}

// lines returns a line for the measurement, and for each candidate.
func (r *Report) lines() []line {
	lines := []line{{"measured", "s0", func(w *Window) *result.Run { return &w.Measured }}}
	for i, v := range r.Verdicts {
		class := "s" + strconv.Itoa(1+i%6) // the classes of report.Style
		lines = append(lines, line{v.Candidate, class, func(w *Window) *result.Run { return w.run(v.Candidate) }})
	}
	return lines
}

// run returns the run with a candidate, nil if there is none.
func (w *Window) run(candidate string) *result.Run {
	i := slices.IndexFunc(w.Candidates, func(p Profiled) bool { return p.Profile == candidate })
	if i < 0 {
		return nil
	}
	return &w.Candidates[i].Run
}

// Dimensions of a chart, in pixels, and its number of points.
const (
	chartWidth  = 460.0
	chartHeight = 190.0
	chartLeft   = 44.0
	chartRight  = chartWidth - 30
	chartTop    = 10.0
	chartBottom = chartHeight - 24
	chartPoints = 240
)

// chart draws a time series of all lines.
func (r *Report) chart(title string, lines []line, windows []*Window, values func(*result.TimeSeries) []float64) chart {
	from, seconds := windows[0].From, r.To.Sub(windows[0].From).Seconds()
	points, highest, description := make([][]float64, len(lines)), 0.0, "highest:"
	for i, l := range lines {
		points[i] = sampled(windows, l, values, from, seconds)
		top := 0.0
		for _, v := range points[i] {
			if !math.IsNaN(v) {
				top = max(top, v)
			}
		}
		highest = max(highest, top)
		description += fmt.Sprintf(" %s %s;", l.Name, format.Auto(top))
	}
	d := report.New(chartWidth, chartHeight, title+" over time", description)
	y := report.NewScale(0, highest, chartBottom, chartTop)
	d.YAxis(y.Ticks(4), y, chartLeft, chartRight, 6, 4)
	x := report.NewScale(0, chartPoints, chartLeft, chartRight)
	var ticks []report.Tick
	for i := range 5 {
		at := from.Add(time.Duration(seconds * float64(i) / 4 * float64(time.Second)))
		layout := "15:04"
		if seconds > 24*3600 {
			layout = "Jan 2"
		}
		ticks = append(ticks, report.Tick{Value: chartPoints / 4 * float64(i), Label: at.UTC().Format(layout)})
	}
	d.XAxis(ticks, x, chartBottom, chartBottom+4, chartHeight-6)
	for i, l := range lines {
		for _, part := range segments(points[i]) {
			d.Line(l.Class, part[1]-part[0],
				func(j int) float64 { return x.At(float64(part[0] + j)) }, func(j int) float64 { return y.At(points[i][part[0]+j]) })
		}
	}
	return chart{title, d.End()}
}

// sampled returns the highest value of a line in each of chartPoints intervals, NaN without any.
func sampled(windows []*Window, l line, values func(*result.TimeSeries) []float64, from time.Time, seconds float64) []float64 {
	points := slices.Repeat([]float64{math.NaN()}, chartPoints)
	for _, w := range windows {
		run := l.run(w)
		if run == nil || run.TimeSeries == nil {
			continue
		}
		every := float64(run.TimeSeries.EverySeconds)
		for i, value := range values(run.TimeSeries) {
			// A value counts in all intervals until the next value.
			at := w.From.Sub(from).Seconds() + float64(i)*every
			first, last := int(at/seconds*chartPoints), int((at+every)/seconds*chartPoints)
			for k := max(first, 0); k <= min(last, chartPoints-1); k++ {
				if math.IsNaN(points[k]) || value > points[k] {
					points[k] = value
				}
			}
		}
	}
	return points
}

// segments returns the ranges of points that are not NaN.
func segments(points []float64) (parts [][2]int) {
	start := -1
	for i := range len(points) + 1 {
		gap := i == len(points) || math.IsNaN(points[i])
		switch {
		case gap && start >= 0:
			parts, start = append(parts, [2]int{start, i}), -1
		case !gap && start < 0:
			start = i
		}
	}
	return parts
}

// Tables returns the tables of the report: the differences of other figures, and the nodes and workloads that it concerns.
func (r *Report) Tables() []Table {
	var tables []Table
	for _, v := range r.Verdicts {
		t := Table{Title: v.Candidate + " besides overload", Head: []string{"figure", cmp.Or(r.Profile, "current"), "change"}}
		for _, f := range v.Others {
			t.Rows = append(t.Rows, []string{f.Label, number(f.Current), f.Change.String()})
		}
		if r.Windows > 0 {
			tables = append(tables, t)
		}
	}
	nodes := func(v *Verdict) []result.OverloadTime { return v.Nodes }
	workloads := func(v *Verdict) []result.OverloadTime { return v.Workloads }
	for _, t := range []Table{
		r.concerned("Overloaded nodes, minutes", "node", r.Nodes, nodes),
		r.concerned("Affected workloads, pod minutes", "workload", r.Workloads, workloads),
	} {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// concerned returns a table of nodes or workloads with their minutes as measured and with each candidate: the longest of all.
func (r *Report) concerned(title, noun string, measured []result.OverloadTime, of func(*Verdict) []result.OverloadTime) Table {
	t := Table{Title: title, Head: []string{noun, "measured"}}
	longest := slices.Clone(measured)
	columns := [][]result.OverloadTime{measured}
	for i := range r.Verdicts {
		t.Head = append(t.Head, r.Verdicts[i].Candidate)
		columns = append(columns, of(&r.Verdicts[i]))
		longest = append(longest, of(&r.Verdicts[i])...)
	}
	longest, _ = result.Longest(longest)
	seen := map[[2]string]bool{}
	for _, row := range longest {
		key := [2]string{row.Kind, row.Name}
		if seen[key] {
			continue
		}
		seen[key] = true
		cells := []string{row.Name}
		if row.Kind != "" {
			cells[0] = row.Name + " (" + row.Kind + ")"
		}
		for _, column := range columns {
			minutes := 0.0
			for _, c := range column {
				if c.Name == row.Name && c.Kind == row.Kind {
					minutes = c.Minutes
				}
			}
			cells = append(cells, number(minutes))
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}

// Measurements returns what was measured besides overload, and why the rest is missing.
func (r *Report) Measurements() []NamedValue {
	out := []NamedValue{{"Containers killed for their memory", number(float64(r.MemoryKills))}}
	for _, f := range []struct {
		name  string
		value *float64
	}{
		{"Throttled at limits, s", r.Further.ThrottledSeconds},
		{"Waiting for CPU (pressure), node s", r.Further.CPUPressureSeconds},
		{"Waiting for memory (pressure), node s", r.Further.MemoryPressureSeconds},
	} {
		text := "not measured"
		if f.value != nil {
			text = number(math.Round(*f.value))
		}
		out = append(out, NamedValue{f.name, text})
	}
	for _, missing := range r.Further.Missing {
		out = append(out, NamedValue{"Not measured", missing})
	}
	return out
}
