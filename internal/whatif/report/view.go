package report

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// Document is a page: a result, and what the page has besides the comparisons of the result.
type Document struct {
	*result.Result
	// Title of the page, and About what it shows. They replace the title and the sentence of a comparison.
	Title, About string
	// Boxes have the answers, and Sections follow the scenarios.
	Boxes    []Box
	Sections []*Section
}

// Box has an answer.
type Box struct {
	Title string
	Text  []string
}

// Section is a part of a page, of which text on a terminal has the table and the items.
type Section struct {
	Title string
	// Text explains the section.
	Text   []string
	Lines  []Line // of the charts, in the legend
	Charts []Chart
	// Head and Rows are a table, whose first column names the rows. A terminal has the columns Wide with -o wide only.
	Head, Wide []string
	Rows       [][]string
	// Items are a list, and Code is text for programs.
	Items []string
	Code  string
}

// view is the data of page.html.
type view struct {
	Document
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
	ID          int
	Name        string
	Description string
	Comparisons []result.Comparison
	Rows        []figureRow
	// Frontier and Folded, which is folded, are further sections.
	Frontier *Section
	Folded   []*Section
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

// newView returns the view of a document with the given detail, without its raw data.
func newView(document Document, d detail) view {
	r := document.Result
	v := view{Document: document, Compared: len(r.Profiles) > 1, Incomplete: incompleteText(r)}
	if len(r.Scenarios) > 0 {
		v.Settings = settings(r)
	}
	if v.Title == "" {
		v.Title = "What-if: " + strings.Join(r.Profiles, ", ")
		if v.Compared {
			v.Title = "What-if: " + strings.Join(result.SlackNames(r), ", ") + " compared with " + r.Profiles[0]
		}
		v.About = fmt.Sprintf("%s. %s, %s, %ss: %s. Simulated with the code of kube-scheduler on a virtual clock.", r.Source.Name,
			format.Things(r.Source.Nodes, "node"), format.Things(r.Source.Pods, "pod"), r.PairNoun(), seedText(r.Seeds))
	}
	for i := range r.Scenarios {
		s := newScenario(r, i)
		s.Frontier = Frontier(&r.Scenarios[i], &r.Settings)
		if over := overTime(&r.Scenarios[i]); d.charts && over != nil {
			s.Folded = append(s.Folded, over)
		}
		s.Folded = append(s.Folded, podsSection(&r.Scenarios[i]))
		v.Scenarios = append(v.Scenarios, s)
	}
	return v
}

// newScenario returns the view of a scenario without its sections.
func newScenario(r *result.Result, index int) scenario {
	from := &r.Scenarios[index]
	s := scenario{
		ID: index + 1, Name: fmt.Sprintf("Scenario %d", index+1),
		Description: from.Description(), Rows: figureRows(r, from),
	}
	for i := 1; i < len(from.Profiles); i++ {
		s.Comparisons = append(s.Comparisons, result.NewComparison(r, &from.Profiles[0], &from.Profiles[i]))
	}
	return s
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
	v := result.AnswerInTables(figure, d, base)
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
