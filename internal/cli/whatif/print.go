package whatif

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// printResult prints a table for each scenario, and what is generated.
func printResult(out io.Writer, r *result.Result) error {
	fmt.Fprintf(out, "%s: %d nodes, %d pods, %d seeds\n", r.Source.Name, r.Source.Nodes, r.Source.Pods, len(r.Seeds))
	for i := range r.Scenarios {
		scenario := &r.Scenarios[i]
		fmt.Fprintf(out, "\n%s\n", describeScenario(scenario))
		printScenario(out, scenario, len(r.Seeds))
		if err := printFrontier(out, scenario); err != nil {
			return err
		}
		printReasons(out, scenario)
	}
	fmt.Fprintln(out, "\nassumed:")
	for _, sentence := range r.Assumed {
		fmt.Fprintln(out, "-", sentence)
	}
	return nil
}

// describeScenario says what a scenario is.
func describeScenario(s *result.Scenario) string {
	if s.Limits == "" {
		return "usage " + s.Usage
	}
	return "limits " + s.Limits + ", usage " + s.Usage
}

// printScenario prints the figures of a scenario: those of each profile, and by
// how much they differ from those of the first one.
func printScenario(out io.Writer, s *result.Scenario, seeds int) {
	header, columns := table.Row{"mean over seeds"}, []int{}
	for i := range s.Profiles {
		header = append(header, nameOf(&s.Profiles[i], seeds))
		if i > 0 {
			header = append(header, "difference")
		}
	}
	for i := 2; i <= len(header); i++ {
		columns = append(columns, i)
	}
	t := base.NewTable(out, header...)
	t.SetColumnConfigs(base.RightAligned(columns...))
	for _, named := range s.Definitions() {
		row := table.Row{rowLabel(named)}
		for i := range s.Profiles {
			figure, ok := s.Profiles[i].Figures[named.Name]
			if !ok {
				row = append(row, "-")
			} else {
				row = append(row, number(figure.Mean))
			}
			if i > 0 {
				row = append(row, differenceText(figure.Difference))
			}
		}
		t.AppendRow(row)
	}
	t.Render()
	if len(s.Profiles) > 1 {
		fmt.Fprintln(out, "difference to", s.Profiles[0].Name+": mean [95 % interval over seeds]; * is more than chance")
	}
}

// nameOf returns the name of a profile, and marks what was cut short.
func nameOf(p *result.Profile, seeds int) string {
	cut, missing := 0, seeds-len(p.Runs)
	for i := range p.Runs {
		if p.Runs[i].Interrupted {
			cut++
		}
	}
	name := p.Name
	if cut > 0 {
		name += fmt.Sprintf(" (%d of %d runs interrupted)", cut, seeds)
	}
	if missing > 0 {
		name += fmt.Sprintf(" (%d of %d runs not begun)", missing, seeds)
	}
	return name
}

func differenceText(d *result.Difference) string {
	switch {
	case d == nil:
		return "-"
	case d.Interval == nil:
		return signed(d.Mean)
	}
	mark := ""
	if d.Interval.ExcludesZero {
		mark = " *"
	}
	return fmt.Sprintf("%s [%s, %s]%s", signed(d.Mean), signed(d.Interval.Low), signed(d.Interval.High), mark)
}

// number returns a figure with as many digits as tell something.
func number(v float64) string {
	digits := 2
	switch size := math.Abs(v); {
	case size >= 1000 || v == math.Trunc(v):
		digits = 0
	case size < 0.1:
		digits = 3
	}
	return fmt.Sprintf("%.*f", digits, v)
}

// signed returns a difference with its sign. What rounds to nothing has none.
func signed(v float64) string {
	text := number(v)
	switch {
	case strings.Trim(text, "-0.") == "":
		return "0"
	case v > 0:
		return "+" + text
	}
	return text
}

// printReasons says why pods found no node, of the first seed.
func printReasons(out io.Writer, s *result.Scenario) {
	for i := range s.Profiles {
		profile := &s.Profiles[i]
		if len(profile.Runs) == 0 || profile.Runs[0].Unschedulable == 0 {
			continue
		}
		var parts []string
		for _, reason := range profile.Runs[0].MostReasons() {
			parts = append(parts, fmt.Sprintf("%d pods: %s", profile.Runs[0].Reasons[reason], reason))
		}
		fmt.Fprintf(out, "unschedulable with %s, seed %d: %s\n", profile.Name, profile.Runs[0].Seed, strings.Join(parts, "; "))
	}
}

// rowLabel returns the title of a figure, indented if it is a part of the one before it.
func rowLabel(d result.Definition) string {
	if d.Detail {
		return "  " + d.Title()
	}
	return d.Title()
}
