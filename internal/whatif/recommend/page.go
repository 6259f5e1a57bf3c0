package recommend

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// maxManifests is the size in bytes from which on a page has no more of what to apply.
const maxManifests = 500_000

// maxNames is the number of nodes that the short answer names.
const maxNames = 10

// Document returns the page of the result. Its tables name configurations by letters if short is set, so that they fit a terminal.
func (r *Result) Document(short bool) (report.Document, error) {
	const minute = "2006-01-02 15:04"
	goals := "Goals: " + r.Goals + "."
	d := report.Document{
		Result: &result.Result{Command: r.Command, Assumed: r.Assumed}, Title: "Recommendation", Sections: r.Sections(short),
		About: fmt.Sprintf("%s: fitted on %d parts from %s to %s, confirmed on %d parts until %s. %d simulations with the code of "+
			"kube-scheduler.", r.Source, r.Fit.Parts, r.Fit.From.Format(minute), r.Fit.To.Format(minute), r.Confirm.Parts,
			r.Confirm.To.Format(minute), r.Simulated),
		Boxes: []report.Box{{Title: r.Saving, Text: []string{r.Verdict.Sentence, goals}, IsWarning: !r.Confirmed}},
	}
	if short { // the number, the tables, then the sentences
		d.Sections = append(d.Sections, &report.Section{Title: "In words", Items: []string{r.Verdict.Sentence, goals, d.About}})
		d.About, d.Boxes = r.Saving, nil
	}
	if !r.Confirmed || r.FirstLook { // what to apply of a first look would be of readings that were generated
		return d, nil
	}
	documents, err := r.Manifests()
	if err != nil {
		return d, err
	}
	apply := &report.Section{Title: "What to apply", Items: []string{"-o yaml prints it, and --write FOLDER writes files."}}
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

// Sections returns the tables of the result, with charts of the frontier. They name configurations by letters if short is set.
func (r *Result) Sections(short bool) []*report.Section {
	wait := "wait"
	if r.WaitPercent > 0 {
		wait = fmt.Sprintf("wait p%g", r.WaitPercent)
	}
	costs := map[string]string{"node hours": "node h/day", "CPU hours of nodes": "CPU h/day"}[r.CostUnit]
	confirmation, frontier := &report.Section{Title: "On the last third"}, &report.Section{
		Title: "Frontier, first two thirds",
		Text: []string{
			"A point is a configuration that no cheaper one equals in both overload and wait; the one in force is shown too. Lower left is better.",
		},
	}
	var names []string // in the order of their letters
	letter := func(name string) string { return string(rune('A' + slices.Index(names, name))) }
	var overload, waits []report.CostPoint
	for i, row := range slices.Concat(r.Confirmation, r.Frontier) {
		section := confirmation
		if i >= len(r.Confirmation) {
			section = frontier
			point := report.CostPoint{Cost: row.Cost, Value: row.Overload, Label: row.Mark, Name: row.Name}
			overload = append(overload, point)
			point.Value = row.WaitSeconds
			waits = append(waits, point)
		}
		if !slices.Contains(names, row.Name) {
			names = append(names, row.Name)
		}
		name, waited := strings.TrimPrefix(row.Mark+": "+row.Name, ": "), "-"
		if short {
			name = strings.TrimSpace(letter(row.Name) + " " + row.Mark)
		}
		if r.WaitPercent > 0 {
			waited = fmt.Sprintf("%.0fs", row.WaitSeconds)
		}
		section.Head = []string{"configuration", cmp.Or(costs, "cost/day"), "overload", "saturation", "killed", wait, "nodes"}
		section.Rows = append(section.Rows, []string{
			name, format.Plain(row.Cost), format.Plain(row.Overload), format.Plain(row.Saturation), format.Plain(row.Killed), waited,
			fmt.Sprint(row.NodesPeak),
		})
	}
	frontier.Charts = []report.Chart{report.CostChart(r.CostUnit+" a day", "overload, node minutes a day", overload)}
	if r.WaitPercent > 0 {
		frontier.Charts = append(frontier.Charts, report.CostChart(r.CostUnit+" a day", wait+", seconds", waits))
	}
	for _, name := range names {
		if short {
			frontier.Items = append(frontier.Items, letter(name)+" is "+name+".")
		}
	}
	const units = "Overload and CPU saturation in node minutes a day, killed pods a day, nodes at most; all simulated."
	frontier.Items = append(frontier.Items, units)
	if r.Nodes == nil {
		return []*report.Section{confirmation, frontier}
	}
	return []*report.Section{confirmation, r.nodesSection(short), frontier}
}

// nodesSection returns which nodes can go: their names if short is set, otherwise all nodes with what keeps them.
func (r *Result) nodesSection(short bool) *report.Section {
	section := &report.Section{
		Title: "Nodes at the end of the recording, with these requests", Items: []string{r.Nodes.Summary + ".", r.Nodes.Rules + "."},
	}
	var now, later []string
	for _, n := range r.Nodes.Nodes {
		if n.Result == scaling.CanGo {
			now = append(now, n.Name)
		}
		if n.Result == scaling.AfterChanges {
			later = append(later, n.Name+" ("+n.Text()+")")
		}
		if !short {
			section.Head = []string{"node", "requested", "pods", "result"}
			section.Rows = append(section.Rows, []string{n.Name, fmt.Sprintf("%.0f %%", 100*n.Utilization), fmt.Sprint(n.Pods), n.Text()})
		}
	}
	if short && len(now) > 0 {
		section.Items = append(section.Items, "can go: "+format.Abbreviate(now, maxNames, ", ")+".")
	}
	if short && len(later) > 0 {
		section.Items = append(section.Items, "after changes: "+format.Abbreviate(later, maxNames, ", ")+".")
	}
	return section
}
