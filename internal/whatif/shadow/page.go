package shadow

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"time"

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
	Charts []report.Chart
	Lines  []line
	Tables []Table
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
		v.Charts = []report.Chart{
			r.chart("Overloaded nodes", v.Lines, windows, func(s *result.TimeSeries) []float64 { return s.OverloadedNodes }),
			r.chart("Highest load of a node, of allocatable", v.Lines, windows,
				func(s *result.TimeSeries) []float64 { return s.HighestLoads }),
		}
	}
	return page.Execute(out, v)
}

// lines returns a line for the measurement, and for each candidate.
func (r *Report) lines() []line {
	lines := []line{{"measured", report.LineClass(0), func(w *Window) *result.Run { return &w.Measured }}}
	for i, v := range r.Verdicts {
		lines = append(lines, line{v.Candidate, report.LineClass(i + 1), func(w *Window) *result.Run { return w.run(v.Candidate) }})
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

// chartPoints is the number of points of a line.
const chartPoints = 240

// chart draws a time series of all lines.
func (r *Report) chart(title string, lines []line, windows []*Window, values func(*result.TimeSeries) []float64) report.Chart {
	from, seconds := windows[0].From, r.To.Sub(windows[0].From).Seconds()
	drawn := make([]report.Line, len(lines))
	for i, l := range lines {
		drawn[i] = report.Line{
			Name: l.Name, Class: l.Class, Interval: seconds / chartPoints, Values: sampled(windows, l, values, from, seconds),
		}
	}
	return report.NewTimeChart(title, from, seconds, drawn)
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
