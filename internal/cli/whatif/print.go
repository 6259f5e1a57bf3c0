package whatif

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// printer prints a result as text or, for a comment of a pull request, as Markdown.
type printer struct {
	out io.Writer
	o   *base.Output
}

func (p printer) isMarkdown() bool { return p.o.Format == base.FormatMarkdown }

// text returns a text that is displayed literally.
func (p printer) text(text string) string {
	if text = base.Escape(text); p.isMarkdown() {
		return base.EscapeMarkdown(text)
	}
	return text
}

// paragraph prints a paragraph.
func (p printer) paragraph(text string) { p.marked("", text, "") }

// strong prints a paragraph that Markdown displays as bold.
func (p printer) strong(text string) { p.marked("**", text, "**") }

// marked prints a paragraph between marks of Markdown, or wrapped.
func (p printer) marked(begin, text, end string) {
	if p.isMarkdown() {
		fmt.Fprintf(p.out, "%s%s%s\n\n", begin, p.text(text), end)
		return
	}
	p.wrapped("", text)
}

func (p printer) table(t *base.Table) {
	if p.isMarkdown() {
		t.Markdown(p.out)
		fmt.Fprintln(p.out)
		return
	}
	t.Print(p.out, p.o)
}

// wrapped prints a paragraph of a text for reports, wrapped to the width of a terminal.
func (p printer) wrapped(head, text string) {
	fmt.Fprintln(p.out, base.Wrap(head, base.Escape(format.ToPlain(text)), base.DefaultWidth))
}

// Print prints a document as text or Markdown, without its charts.
func Print(out io.Writer, o *base.Output, d *report.Document) { printer{out, o}.document(d) }

// document prints the answers, tables for each scenario, the sections, and the assumptions.
func (p printer) document(d *report.Document) {
	r := d.Result
	for _, box := range d.Boxes {
		for _, text := range box.Text {
			p.paragraph(text)
		}
	}
	p.conclusion(r)
	p.paragraph(cmp.Or(d.About, r.Source.Name+": "+sizes(r)))
	if r.Interrupted && p.isMarkdown() {
		p.strong("The runs were interrupted: the results are incomplete.")
	}
	if r.Backtest != nil {
		p.paragraph(r.Backtest.Summary())
	}
	if len(r.Scenario.Profiles) > 0 {
		p.scenario(r, &r.Scenario)
	}
	for _, section := range d.Sections {
		if fmt.Fprintln(p.out); len(section.Head) == 0 {
			p.paragraph(section.Title + ":")
		}
		p.section(section)
	}
	if r.Windows == 0 || len(r.Assumed) > 0 {
		p.assumptions(r.Assumed)
	}
}

// assumptions prints the assumptions of a result, which Markdown folds.
func (p printer) assumptions(assumed []string) {
	if !p.isMarkdown() {
		fmt.Fprintln(p.out, "\nassumed:")
		for _, sentence := range assumed {
			p.wrapped("- ", sentence)
		}
		return
	}
	fmt.Fprint(p.out, "<details><summary>Assumptions</summary>\n\n")
	for _, sentence := range assumed {
		fmt.Fprintf(p.out, "- %s\n", p.text(sentence))
	}
	fmt.Fprint(p.out, "\n</details>\n")
}

// conclusion prints the notes and the recommendation.
func (p printer) conclusion(r *result.Result) {
	for _, note := range r.Notes {
		p.strong(note)
	}
	s := r.Recommendation
	if s == nil {
		return
	}
	p.marked("### ", s.Headline, "")
	of := ""
	if s.Of != "" {
		of = " of " + s.Of
	}
	labels, texts := []string{"effect" + of + ":", "price" + of + ":", "apply:"}, [][]string{s.Effect, s.Price, {s.Apply}}
	for i, label := range labels {
		for _, text := range texts[i] {
			switch {
			case text == "": // nothing to apply
			case p.isMarkdown():
				fmt.Fprintf(p.out, "- **%s** %s\n", p.text(label), p.text(text))
			default:
				p.wrapped(fmt.Sprintf("  %-*s  ", len(labels[0]), label), text)
			}
		}
	}
	fmt.Fprintln(p.out)
}

// sizes returns the numbers of nodes, pods and seeds.
func sizes(r *result.Result) string {
	return format.Of(r.Source.Nodes, "node") + ", " + format.Of(r.Source.Pods, "pod") + ", " + format.Of(r.Pairs(), r.PairNoun())
}

// scenario prints a table for each profile after the first, with the figures of the first profile as the baseline. With a single
// profile it prints the table of this profile. Figures that are equal with all profiles are in one paragraph.
func (p printer) scenario(r *result.Result, s *result.Scenario) {
	if !p.isMarkdown() {
		fmt.Fprintln(p.out)
	}
	p.paragraph(s.Description())
	if frontier := report.Frontier(s, &r.Settings); frontier != nil {
		p.section(frontier)
	}
	differing, equal := foldEqual(report.FigureRows(r, s), p.o.Format == base.FormatWide)
	for i := range s.Profiles {
		if i == 0 && len(s.Profiles) > 1 {
			continue
		}
		p.paragraph(scenarioTitle(r, s, i))
		if v := s.Profiles[i].Verdict; v != nil && r.Recommendation != nil && !r.Recommendation.Describes(v.Candidate) {
			p.paragraph(v.Sentence)
		}
		p.table(scenarioTable(s, i, differing))
	}
	if equal != "" {
		p.paragraph(equal)
	}
	if len(s.Profiles) > 1 {
		p.paragraph(differenceNote(r))
	}
	p.reasons(s)
}

// foldEqual returns the figures of a scenario that differ between profiles, and a sentence with the others. The load of nodes and the
// overload, which are about the purpose of a comparison, and the figures of a single profile are never folded. Some figures are left out
// unless wide is set, or they are clearly worse with a profile: its price names them.
func foldEqual(rows []report.FigureRow, wide bool) (differing []report.FigureRow, equal string) {
	differs := func(c report.FigureCell) bool { return c.Answer != result.Equal }
	isWorse := func(c report.FigureCell) bool { return c.Answer == result.Worse }
	var folded []string
	for _, row := range rows {
		switch {
		case row.HasUse(result.OnlyWide) && !wide && !slices.ContainsFunc(row.Cells, isWorse):
		case len(row.Cells) == 0 || row.Name == "overloadMinutes" || strings.Contains(row.Name, "Load") ||
			slices.ContainsFunc(row.Cells, differs):
			differing = append(differing, row)
		default:
			folded = append(folded, row.Text+" "+row.Mean)
		}
	}
	if len(folded) > 0 {
		equal = "Equal with all profiles: " + strings.Join(folded, "; ") + "."
	}
	return differing, equal
}

// scenarioTitle names the profile of a table, and the baseline.
func scenarioTitle(r *result.Result, s *result.Scenario, profile int) string {
	runs := len(r.Seeds)
	if r.Windows > 0 {
		runs = 0 // a new candidate has no runs of earlier windows
	}
	title := profileLabel(&s.Profiles[profile], runs)
	if profile > 0 {
		title += " compared with " + profileLabel(&s.Profiles[0], runs)
	}
	return title
}

// differenceNote explains the column of differences.
func differenceNote(r *result.Result) string {
	switch {
	case r.Source.Exact:
		return "One run with each profile: the usage of all pods is " + r.Scenario.Usage +
			", nothing is sampled, other seeds give the same."
	case r.Pairs() == 1:
		return "Differences are of one seed, and may be chance."
	}
	over := r.Over()
	return strings.ToUpper(over[:1]) + over[1:] + ", differences with their 95 % interval; * is significant, and 0.5 % at least."
}

// scenarioTable returns the table of figures of a profile and, unless it is the first, of the differences from the first.
func scenarioTable(s *result.Scenario, profile int, rows []report.FigureRow) *base.Table {
	if profile == 0 {
		t := base.NewTable("figure", "value")
		for _, row := range rows {
			t.AddRow(row.Text, row.Mean)
		}
		return t
	}
	first, slack, _ := strings.Cut(s.Profiles[0].Name, ",")
	name := func(of int) string {
		text, other := s.Profiles[of].Name, s.Profiles[profile].Name
		switch {
		case strings.HasSuffix(other, ","+slack):
			text = strings.TrimSuffix(text, ","+slack)
		case strings.HasPrefix(other, first+", "):
			text = strings.TrimPrefix(text, first+", ")
		}
		return format.Shorten(text, 14)
	}
	t := base.NewTable("figure", name(0), name(profile), "difference")
	for _, row := range rows {
		t.AddRow(row.Text, row.Mean, row.Cells[profile-1].Mean, row.Cells[profile-1].Difference)
	}
	return t
}

// profileLabel returns the name of a profile, and how many of its runs are incomplete.
func profileLabel(p *result.Profile, seeds int) string {
	interrupted, notStarted, name := p.Interrupted(), seeds-len(p.Runs), p.Name
	if interrupted > 0 {
		name += fmt.Sprintf(" (%s interrupted)", format.Part(interrupted, seeds, "run"))
	}
	if notStarted > 0 {
		name += fmt.Sprintf(" (%s not started)", format.Part(notStarted, seeds, "run"))
	}
	return name
}

// reasons prints why pods were unschedulable in the run with the first seed.
func (p printer) reasons(s *result.Scenario) {
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		if len(profile.Runs) == 0 || profile.Runs[0].Unschedulable == 0 || len(profile.Runs[0].Reasons) == 0 {
			continue
		}
		first := &profile.Runs[0]
		var parts []string
		for _, reason := range result.MostFrequent(first.Reasons) {
			parts = append(parts, format.Of(first.Reasons[reason], "pod")+": "+reason)
		}
		p.paragraph(fmt.Sprintf("unschedulable with %s, seed %d: %s", profile.Name, first.Seed, strings.Join(parts, "; ")))
	}
}

// section prints the table and the items of a section.
func (p printer) section(s *report.Section) {
	t := base.NewTable(s.Title)
	for _, name := range s.Head[min(1, len(s.Head)):] {
		if slices.Contains(s.Wide, name) {
			t.Wide(name)
		} else {
			t.Add(name)
		}
	}
	for _, row := range s.Rows {
		cells := make([]any, len(row))
		for i, cell := range row {
			cells[i] = format.ToPlain(cell)
		}
		t.AddRow(cells...)
	}
	if len(s.Rows) > 0 {
		p.table(t)
	}
	for _, item := range s.Items {
		p.paragraph(item)
	}
}
