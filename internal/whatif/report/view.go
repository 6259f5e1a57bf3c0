package report

import (
	"fmt"
	"html/template"
	"math"
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

// Box has an answer. IsWarning is set if it must not be acted on.
type Box struct {
	Title     string
	Text      []string
	IsWarning bool
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
	Compared bool
	Settings []setting
	// Scenario is nil if there are no profiles.
	Scenario *scenario
	// Incomplete describes how many runs are missing or interrupted, if any.
	Incomplete string
	// Omitted describes content that the report omits to limit its size, if any.
	Omitted string
	// RawNote describes content that only the raw data omits, if any.
	RawNote string
	RawData template.HTML
}

// scenario shows what the profiles do.
type scenario struct {
	Description string
	Comparisons []result.Comparison
	Rows        []FigureRow
	// Frontier and Folded, which is folded, are further sections.
	Frontier *Section
	Folded   []*Section
}

// FigureRow shows a figure of a scenario for all profiles.
type FigureRow struct {
	result.Definition
	// Text names the figure with its unit, and Mean is its mean with the first profile.
	Text, Mean string
	// Part is true if the figure is a part of the figure above.
	Part bool
	// Cells of the profiles after the first.
	Cells []FigureCell
}

// FigureCell compares a figure of a profile with the same figure of the first profile.
type FigureCell struct {
	Profile, Mean, Difference, Percent string
	Answer                             result.Answer
	Class                              string
	Seeds                              string
	Whisker                            template.HTML
}

// newView returns the view of a document with the given detail, without its raw data.
func newView(document Document, d detail) view {
	r := document.Result
	v := view{Document: document, Compared: len(r.Profiles) > 1, Incomplete: incompleteText(r)}
	if len(r.Scenario.Profiles) > 0 {
		v.Settings = settings(r)
	}
	if v.Title == "" {
		v.Title = "What-if: " + strings.Join(r.Profiles, ", ")
		if v.Compared {
			v.Title = "What-if: " + strings.Join(result.SlackNames(r), ", ") + " compared with " + r.Profiles[0]
		}
		v.About = fmt.Sprintf("%s. %s, %s, %ss: %s. Simulated with the code of kube-scheduler on a virtual clock.", r.Source.Name,
			format.Things(r.Source.Nodes, "node"), format.Things(r.Source.Pods, "pod"), r.RunNoun(), seedText(r.Seeds))
	}
	if len(r.Scenario.Profiles) == 0 {
		return v
	}
	v.Scenario = newScenario(r)
	v.Scenario.Frontier = Frontier(&r.Scenario, &r.Settings)
	if over := overTime(&r.Scenario); d.charts && over != nil {
		v.Scenario.Folded = append(v.Scenario.Folded, over)
	}
	v.Scenario.Folded = append(v.Scenario.Folded, podsSection(&r.Scenario))
	return v
}

// newScenario returns the view of the scenario without its sections.
func newScenario(r *result.Result) *scenario {
	from := &r.Scenario
	s := &scenario{Description: from.Description(), Rows: FigureRows(r, from)}
	for i := 1; i < len(from.Profiles); i++ {
		s.Comparisons = append(s.Comparisons, result.NewComparison(r, &from.Profiles[0], &from.Profiles[i]))
	}
	return s
}

// FigureRows returns the figures of a scenario.
func FigureRows(r *result.Result, s *result.Scenario) []FigureRow {
	var rows []FigureRow
	for _, figure := range s.Definitions() {
		row := FigureRow{Definition: figure, Text: figure.Title(), Part: figure.IsPart()}
		base := s.Profiles[0].Figures[figure.Name].Mean
		var differences []*result.Difference
		for i := range s.Profiles {
			differences = append(differences, s.Profiles[i].Figures[figure.Name].Difference)
		}
		scale := whiskerScale(differences, base)
		for i := range s.Profiles {
			p := &s.Profiles[i]
			mean := "-"
			if f, ok := p.Figures[figure.Name]; ok {
				mean = format.Plain(f.Mean)
			}
			if i == 0 {
				row.Mean = mean
				continue
			}
			cell := newFigureCell(r.Source.Directed(figure), differences[i], base, scale)
			cell.Profile, cell.Mean = p.Name, mean
			row.Cells = append(row.Cells, cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// newFigureCell returns the cell of a difference.
func newFigureCell(figure result.Definition, d *result.Difference, base float64, scale Scale) FigureCell {
	v := result.AnswerInTables(figure, d, base)
	c := FigureCell{Answer: v, Class: classes[v], Difference: differenceText(d, base), Whisker: whisker(scale, d, v)}
	if d != nil && v != result.Equal {
		c.Percent, c.Seeds = format.Percent(d.Mean, base), fmt.Sprintf("%d / %d / %d", d.Less, d.Equal, d.More)
	}
	return c
}

// leastMarked is the smallest difference, as a fraction of the first profile's value, that is marked: with equal pods, less can be
// significant and is of no use, such as the minutes in which the first pods start.
const leastMarked = 0.005

// differenceText returns a difference from a value, its confidence interval and whether it is significant.
func differenceText(d *result.Difference, from float64) string {
	switch {
	case d == nil:
		return "-"
	case d.Interval == nil:
		return format.PlainSigned(d.Mean)
	case d.Less+d.More == 0:
		return "0"
	case d.Constant() && d.Less+d.Equal+d.More == 1:
		return format.PlainSigned(d.Mean)
	case d.Constant():
		return format.PlainSigned(d.Mean) + " in all seeds"
	}
	mark := ""
	if d.Interval.ExcludesZero && math.Abs(d.Mean) >= leastMarked*math.Abs(from) {
		mark = " *"
	}
	low, high := format.PlainSigned(d.Interval.Low), format.PlainSigned(d.Interval.High)
	return fmt.Sprintf("%s [%s, %s]%s", format.PlainSigned(d.Mean), low, high, mark)
}
