package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// view is the data of page.html.
type view struct {
	*result.Result
	Title, Nodes, Pods string
	SeedText           string
	// Compared is true if there are several profiles.
	Compared  bool
	Settings  []setting
	Scenarios []scenario
	// Incomplete describes how many runs are missing or interrupted, if any.
	Incomplete string
	// Omitted describes content that the report omits to limit its size, if any.
	Omitted string
	// RawNote describes content that only the raw data omits, if any.
	RawNote string
	RawData template.HTML
}

// scenario is one combination of limits and usage.
type scenario struct {
	ID            int
	Name          string
	Limits, Usage string
	// UsageShape is Usage without its parameters.
	UsageShape  string
	Comparisons []result.Comparison
	Rows        []figureRow
	Charts      []Chart
	Lines       []Line // of the charts, in the legend
	Pods        []podsRow
	// RecordedSeed is the seed of the run that the charts show.
	RecordedSeed string
	Frontier     *frontier
}

// figureRow shows a figure for all profiles.
type figureRow struct {
	// Label of the figure, and its mean with the first profile.
	Label, Mean string
	// Part is true if the figure is a part of the figure above.
	Part bool
	// Cells of the profiles after the first.
	Cells []figureCell
}

// figureCell compares a figure of a profile with the same figure of the first profile.
type figureCell struct {
	Profile, Mean, Difference, Percent, Interval string
	Answer                                       result.Answer
	Class                                        string
	Seeds                                        string
	Whisker                                      template.HTML
}

// newView returns the view of a result with the given detail, without its raw data.
func newView(r *result.Result, d detail) view {
	v := view{
		Result: r, Title: "What-if: " + strings.Join(r.Profiles, ", "),
		Nodes: format.Things(r.Source.Nodes, "node"), Pods: format.Things(r.Source.Pods, "pod"), SeedText: seedText(r.Seeds),
		Compared: len(r.Profiles) > 1, Incomplete: incompleteText(r),
		Settings: settings(r),
	}
	if len(r.Profiles) > 1 {
		v.Title = "What-if: " + strings.Join(result.SlackNames(r), ", ") + " compared with " + r.Profiles[0]
	}
	for i := range r.Scenarios {
		s := newScenario(r, i)
		s.Frontier = newFrontier(&r.Scenarios[i], &r.Settings)
		if d.charts {
			s.addCharts(&r.Scenarios[i])
		}
		v.Scenarios = append(v.Scenarios, s)
	}
	return v
}

// newScenario returns the view of a scenario without its optional parts.
func newScenario(r *result.Result, index int) scenario {
	from := &r.Scenarios[index]
	s := scenario{
		ID: index + 1, Name: fmt.Sprintf("Scenario %d", index+1),
		Limits: limitWords(from.Limits), Rows: figureRows(r, from),
	}
	s.Usage, s.UsageShape = usageWords(from.Usage)
	for i := range from.Profiles {
		if i > 0 {
			s.Comparisons = append(s.Comparisons, result.NewComparison(r, &from.Profiles[0], &from.Profiles[i]))
		}
		s.Pods = append(s.Pods, newPodsRow(&from.Profiles[i]))
	}
	return s
}

// addCharts adds the charts over time.
func (s *scenario) addCharts(from *result.Scenario) {
	s.Charts = timeCharts(from)
	for i := range from.Profiles {
		p := &from.Profiles[i]
		run := recordedRun(p)
		if run.TimeSeries == nil {
			continue
		}
		s.Lines = append(s.Lines, Line{Class: LineClass(i), Name: p.Name})
		s.RecordedSeed = fmt.Sprint(run.Seed)
	}
}

// recordedRun returns the run of a profile that has time series, or an empty run.
func recordedRun(p *result.Profile) *result.Run {
	for i := range p.Runs {
		if p.Runs[i].TimeSeries != nil {
			return &p.Runs[i]
		}
	}
	return &result.Run{}
}

// figureRows returns the figures of a scenario.
func figureRows(r *result.Result, s *result.Scenario) []figureRow {
	var rows []figureRow
	for _, figure := range s.Definitions() {
		row := figureRow{Label: figure.Title(), Part: figure.IsPart()}
		base := s.Profiles[0].Figures[figure.Name].Mean
		var differences []*result.Difference
		var shown []float64
		for i := range s.Profiles {
			f, ok := s.Profiles[i].Figures[figure.Name]
			if !ok {
				continue
			}
			differences = append(differences, f.Difference)
			if f.Difference != nil && !result.Negligible(f.Difference, base) {
				shown = append(shown, result.MeanAndInterval(f.Difference)...)
			}
		}
		scale, decimals := whiskerScale(differences, base), format.Decimals(shown...)
		for i := range s.Profiles {
			p := &s.Profiles[i]
			f, ok := p.Figures[figure.Name]
			mean := format.None
			if ok {
				mean = format.Auto(f.Mean)
			}
			if i == 0 {
				row.Mean = mean
				continue
			}
			cell := newFigureCell(r.Source.Directed(figure), f.Difference, base, scale, decimals)
			cell.Profile, cell.Mean = p.Name, mean
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// newFigureCell returns the cell of a difference.
func newFigureCell(figure result.Definition, d *result.Difference, base float64, scale Scale, decimals int) figureCell {
	v := result.AnswerShown(figure, d, base)
	c := figureCell{Answer: v, Class: classes[v], Whisker: whisker(scale, d, v)}
	if d == nil {
		return c
	}
	if v == result.Equal {
		c.Difference = "0"
		return c
	}
	decimals = result.EnoughDecimals(d, decimals)
	c.Difference, c.Percent = format.Signed(d.Mean, decimals), format.Percent(d.Mean, base)
	c.Seeds = fmt.Sprintf("%d / %d / %d", d.Less, d.Equal, d.More)
	if d.Interval != nil {
		c.Interval = result.IntervalText(d, decimals)
	}
	return c
}
