package recommend

import (
	"fmt"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// maxManifests is the size in bytes from which on a page has no more of what to apply.
const maxManifests = 500_000

// Units states the units of Sections.
const Units = "Overload and CPU saturation in node minutes a day, killed pods a day, nodes at most; all simulated."

// Document returns the page of the result.
func (r *Result) Document() (report.Document, error) {
	const minute = "2006-01-02 15:04"
	d := report.Document{
		Result: &result.Result{Command: r.Command, Assumed: r.Assumed}, Title: "Recommendation", Sections: r.Sections(),
		About: fmt.Sprintf("%s: fitted on %d parts from %s to %s, confirmed on %d parts until %s. %d simulations with the code of "+
			"kube-scheduler.", r.Source, r.Fit.Parts, r.Fit.From.Format(minute), r.Fit.To.Format(minute), r.Confirm.Parts, r.Confirm.To.Format(minute), r.Simulated),
		Boxes: []report.Box{{Title: "Not confirmed", Text: []string{r.Verdict.Sentence, "Goals: " + r.Goals + "."}}},
	}
	if r.Confirmed {
		d.Boxes[0].Title = "The goals are reached"
	}
	documents, err := r.Manifests()
	if err != nil || r.FirstLook { // what to apply would be of readings that were generated
		return d, err
	}
	apply := &report.Section{Title: "What to apply"}
	for _, document := range documents {
		apply.Code += "# " + document.Name + "\n" + string(document.Text) + "\n"
		if len(apply.Code) > maxManifests {
			apply.Code += fmt.Sprintf("# %d files in all: plimsoll recommend --write FOLDER writes them.\n", len(documents))
			break
		}
	}
	d.Sections = append(d.Sections, apply)
	return d, nil
}

// Sections returns the tables of the result, with charts of the frontier.
func (r *Result) Sections() []*report.Section {
	wait := "wait"
	if r.WaitPercent > 0 {
		wait = fmt.Sprintf("wait p%g", r.WaitPercent)
	}
	section := func(title, text string, rows []Row) *report.Section {
		s := &report.Section{Title: title, Text: []string{text}}
		s.Head = []string{"configuration", "cost/day", "overload", "saturation", "killed", wait, "nodes"}
		for i := range rows {
			row := &rows[i]
			name, waited := row.Name, "-"
			if row.Mark != "" {
				name = row.Mark + ": " + name
			}
			if r.WaitPercent > 0 {
				waited = fmt.Sprintf("%.0fs", row.WaitSeconds)
			}
			s.Rows = append(s.Rows, []string{
				name, format.Cost(row.Cost), format.Plain(row.Overload), format.Plain(row.Saturation), format.Plain(row.Killed), waited,
				fmt.Sprint(row.NodesPeak),
			})
		}
		return s
	}
	frontier := section("Frontier, first two thirds", "A point is a configuration that no cheaper one equals in both overload and wait; the "+
		"one in force is shown too. Lower left is better.", r.Frontier)
	chart := func(name string, value func(*Row) float64) {
		var points []report.CostPoint
		for i := range r.Frontier {
			row := &r.Frontier[i]
			points = append(points, report.CostPoint{Cost: row.Cost, Value: value(row), Label: row.Mark, Name: row.Name})
		}
		frontier.Charts = append(frontier.Charts, report.CostChart("cost a day", name, points))
	}
	chart("overload, node minutes a day", func(row *Row) float64 { return row.Overload })
	if r.WaitPercent > 0 {
		chart(wait+", seconds", func(row *Row) float64 { return row.WaitSeconds })
	}
	return []*report.Section{section("On the last third", Units, r.Confirmation), frontier}
}
