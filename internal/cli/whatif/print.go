package whatif

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// printResult prints the recommendation, a table for each scenario, and the assumptions.
func printResult(out io.Writer, o *base.Output, r *result.Result) {
	printConclusion(out, r)
	fmt.Fprintf(out, "%s: %s\n", base.Escape(r.Source.Name), sizes(r))
	if r.Backtest != nil {
		fmt.Fprintln(out, base.Escape(r.Backtest.Summary()))
	}
	for i := range r.Scenarios {
		scenario := &r.Scenarios[i]
		fmt.Fprintf(out, "\n%s\n", base.Escape(describeScenario(scenario)))
		printFrontier(out, o, scenario)
		printScenario(out, o, r, scenario)
		printReasons(out, scenario)
	}
	printAssumptions(out, r.Assumed)
}

// printConclusion prints the notes and the recommendation.
func printConclusion(out io.Writer, r *result.Result) {
	for _, note := range r.Notes {
		fmt.Fprintln(out, base.Escape(note))
	}
	s := r.Recommendation
	if s == nil {
		return
	}
	fmt.Fprintln(out, base.Wrap("", base.Escape(format.ToPlain(s.Headline)), base.DefaultWidth))
	parts := conclusionParts(s)
	for _, part := range parts {
		for _, text := range part.texts {
			fmt.Fprintln(
				out,
				base.Wrap(fmt.Sprintf("  %-*s  ", len(parts[0].label), part.label), base.Escape(format.ToPlain(text)), base.DefaultWidth),
			)
		}
	}
	fmt.Fprintln(out)
}

// conclusionPart is a part of a recommendation.
type conclusionPart struct {
	label string
	texts []string
}

// conclusionParts returns the parts of a recommendation after its headline.
func conclusionParts(s *result.Recommendation) []conclusionPart {
	parts := []conclusionPart{{"effect:", s.Effect}, {"price:", s.Price}}
	if s.Of != "" {
		parts[0].label, parts[1].label = "effect of "+s.Of+":", "price of "+s.Of+":"
	}
	if s.Apply != "" {
		parts = append(parts, conclusionPart{"apply:", []string{s.Apply}})
	}
	return parts
}

// sizes returns the numbers of nodes, pods and seeds.
func sizes(r *result.Result) string {
	return format.Of(r.Source.Nodes, "node") + ", " + format.Of(r.Source.Pods, "pod") + ", " + format.Of(len(r.Seeds), "seed")
}

// describeScenario returns the limits and usage of a scenario.
func describeScenario(s *result.Scenario) string {
	usage := "usage " + strings.ReplaceAll(s.Usage, ";", "; ")
	if s.Limits == "" {
		return usage
	}
	return "limits " + s.Limits + ", " + usage
}

// printScenario prints a table for each profile after the first, with the figures of the first profile as the baseline. With a single
// profile it prints the table of this profile. Figures that are equal with all profiles are on one line.
func printScenario(out io.Writer, o *base.Output, r *result.Result, s *result.Scenario) {
	differing, equal := foldEqual(s)
	for i := range s.Profiles {
		if i == 0 && len(s.Profiles) > 1 {
			continue
		}
		fmt.Fprintln(out, base.Escape(scenarioTitle(r, s, i)))
		scenarioTable(s, i, differing).Print(out, o)
	}
	if equal != "" {
		fmt.Fprintln(out, base.Wrap("", equal, base.DefaultWidth))
	}
	if len(s.Profiles) > 1 {
		fmt.Fprintln(out, differenceNote(len(r.Seeds)))
	}
}

// foldEqual returns the figures of a scenario that differ between profiles, and a sentence with the others. The load of nodes and the
// overload, which are about the purpose of a comparison, and the figures of a single profile are never folded.
func foldEqual(s *result.Scenario) (differing []result.Definition, equal string) {
	var folded []string
	for _, d := range s.Definitions() {
		base := s.Profiles[0].Figures[d.Name]
		differs := func(p result.Profile) bool {
			difference := p.Figures[d.Name].Difference
			return difference == nil || result.Assess(d, difference, base.Mean) != result.Equal
		}
		if len(s.Profiles) == 1 || d.Name == "overloadMinutes" || strings.Contains(d.Name, "Load") ||
			slices.ContainsFunc(s.Profiles[1:], differs) {
			differing = append(differing, d)
			continue
		}
		folded = append(folded, d.Title()+" "+format.Plain(base.Mean))
	}
	if len(folded) > 0 {
		equal = "Equal with all profiles: " + strings.Join(folded, "; ") + "."
	}
	return differing, equal
}

// scenarioTitle names the profile of a table, and the baseline.
func scenarioTitle(r *result.Result, s *result.Scenario, profile int) string {
	title := profileLabel(&s.Profiles[profile], len(r.Seeds))
	if profile > 0 {
		title += " compared with " + profileLabel(&s.Profiles[0], len(r.Seeds))
	}
	return title
}

// differenceNote explains the column of differences.
func differenceNote(seeds int) string {
	if seeds == 1 {
		return "Differences are of one seed; --seeds 5 shows whether they are significant."
	}
	return "Means over the seeds, differences with their 95 % interval; * is significant."
}

// scenarioTable returns the table of figures of a profile and, unless it is the first, of the differences from the first.
func scenarioTable(s *result.Scenario, profile int, figures []result.Definition) *base.Table {
	t := base.NewTable("figure", "value")
	if profile > 0 {
		t = base.NewTable("figure", "baseline", "profile", "difference")
	}
	value := func(of int, name string) string {
		if figure, ok := s.Profiles[of].Figures[name]; ok {
			return format.Plain(figure.Mean)
		}
		return "-"
	}
	for _, d := range figures {
		if profile == 0 {
			t.AddRow(d.Title(), value(0, d.Name))
			continue
		}
		t.AddRow(d.Title(), value(0, d.Name), value(profile, d.Name), formatDifference(s.Profiles[profile].Figures[d.Name].Difference))
	}
	return t
}

// profileLabel returns the name of a profile, and how many of its runs are incomplete.
func profileLabel(p *result.Profile, seeds int) string {
	interrupted, notStarted := 0, seeds-len(p.Runs)
	for i := range p.Runs {
		if p.Runs[i].Interrupted {
			interrupted++
		}
	}
	name := p.Name
	if interrupted > 0 {
		name += fmt.Sprintf(" (%s interrupted)", format.Part(interrupted, seeds, "run"))
	}
	if notStarted > 0 {
		name += fmt.Sprintf(" (%s not started)", format.Part(notStarted, seeds, "run"))
	}
	return name
}

// formatDifference returns a difference, its confidence interval and whether it is significant.
func formatDifference(d *result.Difference) string {
	switch {
	case d == nil:
		return "-"
	case d.Interval == nil:
		return format.PlainSigned(d.Mean)
	case d.Less+d.More == 0:
		return "0"
	case d.Constant():
		return format.PlainSigned(d.Mean) + " in all seeds"
	}
	mark := ""
	if d.Interval.ExcludesZero {
		mark = " *"
	}
	return fmt.Sprintf(
		"%s [%s, %s]%s",
		format.PlainSigned(d.Mean),
		format.PlainSigned(d.Interval.Low),
		format.PlainSigned(d.Interval.High),
		mark,
	)
}

// printReasons prints why pods were unschedulable in the run with the first seed.
func printReasons(out io.Writer, s *result.Scenario) {
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		if len(profile.Runs) == 0 || profile.Runs[0].Unschedulable == 0 {
			continue
		}
		var parts []string
		for _, reason := range result.MostFrequent(profile.Runs[0].Reasons) {
			parts = append(parts, format.Of(profile.Runs[0].Reasons[reason], "pod")+": "+reason)
		}
		fmt.Fprintf(out, "unschedulable with %s, seed %d: %s\n",
			profile.Name, profile.Runs[0].Seed, base.Escape(strings.Join(parts, "; ")))
	}
}

// printFrontier prints the cost of slack and the pending time of pods.
func printFrontier(out io.Writer, o *base.Output, s *result.Scenario) {
	points := s.Frontier()
	if len(points) == 0 {
		return
	}
	t := base.NewTable("cost and benefit of slack", "cost", "pending, mean s", "slack kept")
	t.Wide("pending, p95 s")
	for _, p := range points {
		kept := "-"
		if p.SlackKept > 0 {
			kept = fmt.Sprintf("%.0f %%", 100*p.SlackKept)
		}
		t.AddRow(p.Name, format.Plain(p.Cost)+formatInterval(p.CostInterval), format.Plain(p.Pending)+formatInterval(p.PendingInterval),
			kept, format.Plain(p.PendingP95))
	}
	t.Print(out, o)
}

// formatInterval returns the confidence interval of a mean.
func formatInterval(in *result.Interval) string {
	if in == nil {
		return ""
	}
	return fmt.Sprintf(" [%s, %s]", format.Plain(in.Low), format.Plain(in.High))
}
