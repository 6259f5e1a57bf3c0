package shadow

import (
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
	// Lines are the lines of the first chart, which have the names and classes of all charts.
	Lines  []report.Line
	Tables []Table
}

// Table is a table of a report.
type Table struct {
	Title string
	Head  []string
	Rows  [][]any
}

// Write writes the page of a report over windows.
func (r *Report) Write(out io.Writer, windows []*Window) error {
	v := view{Report: r, Tables: r.Tables()}
	windows = slices.DeleteFunc(slices.Clone(windows), func(w *Window) bool { return w.Error != "" })
	if len(windows) > 0 {
		from := windows[0].From
		seconds := r.To.Sub(from).Seconds()
		v.Lines = r.lines(windows, seconds, func(s *result.TimeSeries) []float64 { return s.OverloadedNodes })
		loads := r.lines(windows, seconds, func(s *result.TimeSeries) []float64 { return s.HighestLoads })
		v.Charts = []report.Chart{
			report.NewTimeChart("Overloaded nodes", from, seconds, v.Lines),
			report.NewTimeChart("Highest load of a node, of allocatable", from, seconds, loads),
		}
	}
	return page.Execute(out, v)
}

// chartPoints is the number of points of a line.
const chartPoints = 240

// lines returns a line for the measurement, and for each candidate, over a number of seconds from the first window on.
func (r *Report) lines(windows []*Window, seconds float64, values func(*result.TimeSeries) []float64) []report.Line {
	line := func(number int, name string, run func(*Window) *result.Run) report.Line {
		points := sampled(windows, seconds, run, values)
		return report.Line{Name: name, Class: report.LineClass(number), Interval: seconds / chartPoints, Values: points}
	}
	lines := []report.Line{line(0, "measured", func(w *Window) *result.Run { return &w.Measured })}
	for i, v := range r.Verdicts {
		lines = append(lines, line(i+1, v.Candidate, func(w *Window) *result.Run {
			if c := w.candidate(v.Candidate); c != nil {
				return &c.Run
			}
			return nil
		}))
	}
	return lines
}

// sampled returns the highest value of the runs of windows in each of chartPoints intervals, NaN without any.
func sampled(
	windows []*Window, seconds float64, run func(*Window) *result.Run, values func(*result.TimeSeries) []float64,
) []float64 {
	points := slices.Repeat([]float64{math.NaN()}, chartPoints)
	for _, w := range windows {
		run := run(w)
		if run == nil || run.TimeSeries == nil {
			continue
		}
		every := float64(run.TimeSeries.EverySeconds)
		for i, value := range values(run.TimeSeries) {
			// A value counts in all intervals until the next value.
			at := w.From.Sub(windows[0].From).Seconds() + float64(i)*every
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
	if r.Recommendation != nil {
		t := Table{Title: "Cost against overload and wait", Head: []string{"configuration", "cost a day", "overload", "killed", "wait, s"}}
		for _, row := range r.Recommendation.Frontier {
			t.Rows = append(t.Rows, []any{row.Name, number(row.Cost), number(row.Overload), number(row.Killed), number(row.WaitSeconds)})
		}
		tables = append(tables, t)
	}
	nodes, workloads := [][]result.OverloadTime{r.Nodes}, [][]result.OverloadTime{r.Workloads}
	for _, v := range r.Verdicts {
		nodes, workloads = append(nodes, v.Nodes), append(workloads, v.Workloads)
		t := Table{Title: v.Candidate + " besides overload", Head: []string{"figure", "in force", "change"}}
		for _, f := range v.Others {
			t.Rows = append(t.Rows, []any{f.Label, number(f.Current), f.Change})
		}
		if r.Windows > 0 {
			tables = append(tables, t)
		}
	}
	for _, t := range []Table{
		r.worstTable("Overloaded nodes, minutes", "node", nodes), r.worstTable("Affected workloads, pod minutes", "workload", workloads),
	} {
		if len(t.Rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

// worstTable returns a table of the nodes or workloads with the longest times in all columns: measured, and with each candidate.
func (r *Report) worstTable(title, noun string, columns [][]result.OverloadTime) Table {
	t := Table{Title: title, Head: []string{noun, "measured"}}
	for i := range r.Verdicts {
		t.Head = append(t.Head, r.Verdicts[i].Candidate)
	}
	for _, row := range sum(columns) {
		name := row.Name
		if row.Kind != "" {
			name += " (" + row.Kind + ")"
		}
		cells := []any{name}
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
