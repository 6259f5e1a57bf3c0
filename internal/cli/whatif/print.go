package whatif

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/plural"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// printResult prints a table for each scenario, and the assumptions.
func printResult(out io.Writer, r *result.Result) error {
	fmt.Fprintf(out, "%s: %s\n", base.Escape(r.Source.Name), sizes(r))
	if r.Backtest != nil {
		fmt.Fprintln(out, base.Escape(r.Backtest.Summary()))
	}
	if note := r.OverloadNote(); note != "" {
		fmt.Fprintln(out, note)
	}
	for i := range r.Scenarios {
		scenario := &r.Scenarios[i]
		fmt.Fprintf(out, "\n%s\n", base.Escape(describeScenario(scenario)))
		printScenario(out, r, scenario)
		printFrontier(out, scenario)
		printReasons(out, scenario)
	}
	printAssumptions(out, r.Assumed)
	return nil
}

// sizes returns the numbers of nodes, pods and seeds.
func sizes(r *result.Result) string {
	return plural.Of(r.Source.Nodes, "node") + ", " + plural.Of(r.Source.Pods, "pod") + ", " + plural.Of(len(r.Seeds), "seed")
}

// describeScenario returns the limits and usage of a scenario.
func describeScenario(s *result.Scenario) string {
	usage := "usage " + strings.ReplaceAll(s.Usage, ";", "; ")
	if s.Limits == "" {
		return usage
	}
	return "limits " + s.Limits + ", " + usage
}

// printScenario prints the figures of each profile, and their differences from the first profile.
func printScenario(out io.Writer, r *result.Result, s *result.Scenario) {
	scenarioTable(out, r, s).Render()
	if len(s.Profiles) > 1 {
		fmt.Fprintln(out, differenceNote(s, len(r.Seeds)))
	}
}

// differenceNote explains the column of differences.
func differenceNote(s *result.Scenario, seeds int) string {
	from := "difference from " + s.Profiles[0].Name
	if seeds == 1 {
		return from + ": of one seed; --seeds 5 shows whether it is significant"
	}
	return from + ": mean [95 % interval over seeds]; * is significant"
}

// scenarioTable returns the table of the figures of each profile, and their differences from the first profile.
func scenarioTable(out io.Writer, r *result.Result, s *result.Scenario) *base.Table {
	header, columns, differences := table.Row{"mean over seeds"}, []int{}, []int{}
	for i := range s.Profiles {
		header = append(header, profileLabel(&s.Profiles[i], len(r.Seeds)))
		columns = append(columns, len(header))
		if i > 0 {
			header = append(header, "difference")
			columns, differences = append(columns, len(header)), append(differences, len(header))
		}
	}
	t := base.NewTable(out, header...)
	t.SetColumnConfigs(base.RightAligned(columns...))
	t.Attach(differences...)
	for _, named := range s.Definitions() {
		row := table.Row{rowLabel(named)}
		for i := range s.Profiles {
			figure, ok := s.Profiles[i].Figures[named.Name]
			if !ok {
				row = append(row, "-")
			} else {
				row = append(row, formatNumber(figure.Mean))
			}
			if i > 0 {
				row = append(
					row,
					base.Colored{Text: formatDifference(figure.Difference), Color: colorOf(r.Source.Directed(named), figure.Difference)},
				)
			}
		}
		t.AppendRow(row)
	}
	return t
}

// colorOf returns the color of a difference: good or bad if it is significant and the figure has a direction.
func colorOf(d result.Definition, difference *result.Difference) base.Color {
	switch {
	case d.Direction != result.LowerIsBetter || difference == nil || difference.Interval == nil || !difference.Interval.ExcludesZero:
		return base.Plain
	case difference.Mean < 0:
		return base.Good
	}
	return base.Bad
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
		name += fmt.Sprintf(" (%s interrupted)", plural.Part(interrupted, seeds, "run"))
	}
	if notStarted > 0 {
		name += fmt.Sprintf(" (%s not started)", plural.Part(notStarted, seeds, "run"))
	}
	return name
}

// formatDifference returns a difference, its confidence interval and whether it is significant.
func formatDifference(d *result.Difference) string {
	switch {
	case d == nil:
		return "-"
	case d.Interval == nil:
		return formatSigned(d.Mean)
	}
	mark := ""
	if d.Interval.ExcludesZero {
		mark = " *"
	}
	return fmt.Sprintf("%s [%s, %s]%s", formatSigned(d.Mean), formatSigned(d.Interval.Low), formatSigned(d.Interval.High), mark)
}

// formatNumber returns a number with about three significant digits, and separated thousands.
func formatNumber(v float64) string {
	digits := 2
	switch size := math.Abs(v); {
	case size >= 1000 && size < 1<<53:
		return base.FormatCount(int64(math.RoundToEven(v)))
	case v == math.Trunc(v):
		digits = 0
	case size < 0.1:
		digits = 3
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// formatSigned returns a number with its sign, and "0" if it rounds to zero.
func formatSigned(v float64) string {
	text := formatNumber(v)
	switch {
	case strings.Trim(text, "-0.") == "":
		return "0"
	case v > 0:
		return "+" + text
	}
	return text
}

// printReasons prints why pods were unschedulable in the run with the first seed.
func printReasons(out io.Writer, s *result.Scenario) {
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		if len(profile.Runs) == 0 || profile.Runs[0].Unschedulable == 0 {
			continue
		}
		var parts []string
		for _, reason := range profile.Runs[0].MostReasons() {
			parts = append(parts, plural.Of(profile.Runs[0].Reasons[reason], "pod")+": "+reason)
		}
		fmt.Fprintf(out, "unschedulable with %s, seed %d: %s\n",
			profile.Name, profile.Runs[0].Seed, base.Escape(strings.Join(parts, "; ")))
	}
}

// rowLabel returns the title of a figure, indented if it is a part of the one before it.
func rowLabel(d result.Definition) string {
	if d.Detail {
		return "  " + d.Title()
	}
	return d.Title()
}

// printFrontier prints the cost of slack and the pending time of pods.
func printFrontier(out io.Writer, s *result.Scenario) {
	points := s.Frontier()
	if len(points) == 0 {
		return
	}
	t := base.NewTable(out, "cost and benefit of slack", "cost", "pending, mean s", "pending, p95 s", "slack kept")
	t.SetColumnConfigs(base.RightAligned(2, 3, 4, 5))
	for _, p := range points {
		kept := "-"
		if p.SlackKept > 0 {
			kept = fmt.Sprintf("%.0f %%", 100*p.SlackKept)
		}
		t.AppendRow(table.Row{
			p.Name, formatNumber(p.Cost) + formatInterval(p.CostInterval),
			formatNumber(p.Pending) + formatInterval(p.PendingInterval), formatNumber(p.PendingP95), kept,
		})
	}
	t.Render()
}

// formatInterval returns the confidence interval of a mean.
func formatInterval(in *result.Interval) string {
	if in == nil {
		return ""
	}
	return fmt.Sprintf(" [%s, %s]", formatNumber(in.Low), formatNumber(in.High))
}
