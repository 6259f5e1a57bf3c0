package whatif

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// view is what the page shows.
type view struct {
	*result.Result
	Title, Nodes, Pods string
	SeedText           string
	Compared           bool
	Others             int
	Settings           []setting
	Scenarios          []scenario
	Legend             []heatKey
	// Cut says how many runs are not whole, nothing if all are.
	Cut     string
	Without string
	Raw     template.HTML
}

// setting is a line on how the runs were made.
type setting struct{ Name, Value string }

// scenario is one combination of limits and use.
type scenario struct {
	ID            int
	Name          string
	Limits, Usage string
	// Shape is what pods use in a word or two.
	Shape      string
	Verdicts   []verdict
	Rows       []row
	Ratios     []chart
	Heat       []heatRow
	Charts     []chart
	Lines      []lineKey
	Pods       []podRow
	CourseSeed string
	// Use is what nodes used, Decisions where some pods went; none if that is left
	// out.
	Use       *useView
	Decisions []podView
	Frontier  *frontier
}

// row is a figure.
type row struct {
	Name, Label string
	Part        bool
	Means       []string
	Cells       []cell
}

// cell compares a figure of a profile with that of the first.
type cell struct {
	Profile, Mean, Difference, Percent, Interval string
	Verdict                                      judgement
	Class                                        string
	Seeds                                        string
	Whisker                                      template.HTML
}

// heatRow has the heatmaps of a profile.
type heatRow struct {
	Profile     string
	CPU, Memory template.HTML
}

// lineKey is an entry of the legend of the charts over time.
type lineKey struct{ Class, Name string }

// podRow says what became of the pods with a profile.
type podRow struct {
	Profile                  string
	Scheduled, Unschedulable string
	Outside                  string
	Mean, P50, P95, Max      string
	Runs, Cut                string
	Reasons                  []reason
	More                     int
}

// reason is why pods found no node.
type reason struct{ Pods, Text string }

// newView makes a view of a result, with what is to be kept.
func newView(r *result.Result, k keep) view {
	v := view{
		Result: r, Title: "What-if: " + strings.Join(r.Profiles, ", "),
		Nodes: count(r.Source.Nodes), Pods: count(r.Source.Pods), SeedText: seedText(r.Seeds),
		Compared: len(r.Profiles) > 1, Others: max(len(r.Profiles)-1, 1), Cut: cutText(r),
		Settings: settings(r),
	}
	if len(r.Profiles) > 1 {
		v.Title = "What-if: " + strings.Join(r.Profiles[1:], ", ") + " against " + r.Profiles[0]
	}
	heat, reach := newHeatScale(r), ratioReach(r)
	for i := range r.Scenarios {
		s := newScenario(&r.Scenarios[i], i, reach)
		s.Frontier = newFrontier(&r.Scenarios[i], &r.Settings)
		if k.charts {
			addCourses(&s, &r.Scenarios[i], heat, r.Source.Nodes)
		}
		if i < k.use {
			s.Use = useOf(&r.Scenarios[i])
		}
		if i < k.decisions {
			s.Decisions = podsBy(&r.Scenarios[i])
		}
		v.Scenarios = append(v.Scenarios, s)
		if len(s.Heat) > 0 {
			v.Legend = heat.legend()
		}
	}
	return v
}

// newScenario makes the view of a scenario without what is drawn of courses.
func newScenario(from *result.Scenario, number int, reach float64) scenario {
	s := scenario{ID: number + 1, Limits: from.Limits, Usage: from.Usage, Shape: shapeOf(from.Usage), Rows: rows(from)}
	s.Name = fmt.Sprintf("Scenario %d", number+1)
	for i := range from.Profiles {
		if i > 0 {
			s.Verdicts = append(s.Verdicts, judgeProfile(&from.Profiles[0], &from.Profiles[i]))
		}
		s.Pods = append(s.Pods, podsOf(&from.Profiles[i]))
	}
	for _, resource := range ratioResources {
		s.Ratios = append(s.Ratios, chart{resource.label, ratioChart(from, resource.label, resource.p50, resource.p95, resource.max, reach)})
	}
	return s
}

// addCourses adds what is drawn of courses.
func addCourses(s *scenario, from *result.Scenario, heat heatScale, nodes int) {
	s.Charts = overTime(from)
	for i := range from.Profiles {
		p := &from.Profiles[i]
		c := courseOf(p)
		if c == nil {
			continue
		}
		s.Lines = append(s.Lines, lineKey{lineClass(i), p.Name})
		s.Heat = append(s.Heat, heatRow{
			p.Name,
			heatmap(heat, "CPU limit ratio of the nodes with "+p.Name, c.CPULimitRatios, nodes),
			heatmap(heat, "memory limit ratio of the nodes with "+p.Name, c.MemoryLimitRatios, nodes),
		})
		for run := range p.Runs {
			if p.Runs[run].TimeSeries != nil {
				s.CourseSeed = fmt.Sprint(p.Runs[run].Seed)
			}
		}
	}
}

// rows returns the figures of a scenario.
func rows(s *result.Scenario) []row {
	var all []row
	for _, named := range s.Definitions() {
		r := row{Name: named.Name, Label: named.Title(), Part: named.Detail}
		var differences []*result.Difference
		for i := range s.Profiles {
			if figure, ok := s.Profiles[i].Figures[named.Name]; ok {
				differences = append(differences, figure.Difference)
			}
		}
		was := s.Profiles[0].Figures[named.Name].Mean
		line := whiskerScale(differences, was)
		var apart []float64
		for _, d := range differences {
			if d != nil && !negligible(d, was) {
				apart = append(apart, valuesOf(d)...)
			}
		}
		for i := range s.Profiles {
			p := &s.Profiles[i]
			figure, ok := p.Figures[named.Name]
			mean := "–"
			if ok {
				mean = number(figure.Mean, decimals(figure.Mean))
			}
			r.Means = append(r.Means, mean)
			if i > 0 {
				r.Cells = append(r.Cells, newCell(p.Name, mean, named, figure.Difference, was, line, decimals(apart...)))
			}
		}
		all = append(all, r)
	}
	return all
}

func newCell(profile, mean string, figure result.Definition, d *result.Difference, base float64, line scale, digits int) cell {
	is := judge(figure, d, base)
	c := cell{Profile: profile, Mean: mean, Verdict: is, Class: classes[is], Whisker: whisker(line, d, is)}
	if d == nil {
		return c
	}
	if is == equal {
		c.Difference = "0"
		return c
	}
	digits = distinct(d, digits)
	c.Difference, c.Percent = signed(d.Mean, digits), percent(d.Mean, base)
	c.Seeds = fmt.Sprintf("%d / %d / %d", d.Less, d.Equal, d.More)
	if d.Interval != nil {
		c.Interval = intervalText(d, digits)
	}
	return c
}

// maxReasons is how many reasons are shown; there are as many as the input makes.
const (
	maxReasons = 8
	maxReason  = 300
)

// podsOf says what became of the pods with a profile, over all its runs.
func podsOf(p *result.Profile) podRow {
	row := podRow{Profile: p.Name, Runs: count(len(p.Runs))}
	var scheduled, unschedulable, outside, mean, p50, p95, highest []float64
	reasons := map[string]int{}
	cut := 0
	for i := range p.Runs {
		run := &p.Runs[i]
		scheduled, unschedulable, outside = append(scheduled, float64(run.Scheduled)), append(unschedulable, float64(run.Unschedulable)), append(outside, float64(run.NotArrived))
		mean, p50 = append(mean, run.PendingSeconds.Mean), append(p50, run.PendingSeconds.P50)
		p95, highest = append(p95, run.PendingSeconds.P95), append(highest, run.PendingSeconds.Max)
		if run.Interrupted {
			cut++
		}
		for reason, pods := range run.Reasons {
			reasons[reason] += pods
		}
	}
	row.Scheduled, row.Unschedulable, row.Outside = meanText(scheduled), meanText(unschedulable), meanText(outside)
	row.Mean, row.P50, row.P95, row.Max = meanText(mean), meanText(p50), meanText(p95), meanText(highest)
	if cut > 0 {
		row.Cut = fmt.Sprintf("%d interrupted", cut)
	}
	row.Reasons, row.More = mostReasons(reasons)
	return row
}

// mostReasons returns the reasons of most pods, and how many more there are.
func mostReasons(reasons map[string]int) ([]reason, int) {
	var all []string
	for text := range reasons {
		all = append(all, text)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b)) })
	var shown []reason
	for _, text := range all[:min(len(all), maxReasons)] {
		shown = append(shown, reason{count(reasons[text]), shorten(text, maxReason)})
	}
	return shown, len(all) - len(shown)
}

func meanText(values []float64) string {
	if len(values) == 0 {
		return "–"
	}
	var sum float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	return number(mean, min(decimals(mean), 1))
}
