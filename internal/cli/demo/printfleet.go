package demo

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
)

// printFleet prints the steps of the fleet scenario, the forms of a placement
// beside each other.
func printFleet(out io.Writer, results []demo.Result) {
	t := base.NewTable(out, append(append([]any{fleet.Scenario, "what happens", "placement"}, forms()...), "expected", "decided after", "")...)
	type step struct{ story, step, placement string }
	of := func(r demo.Result) step { return step{r.Fleet.Story, r.Fleet.Step, r.Fleet.Placement} }
	byForm := map[step]map[string]demo.Result{}
	var steps []step
	for _, r := range results {
		if r.Fleet == nil {
			continue
		}
		if byForm[of(r)] == nil {
			byForm[of(r)] = map[string]demo.Result{}
			steps = append(steps, of(r))
		}
		byForm[of(r)][r.Profile] = r
	}
	var last step
	for _, s := range steps {
		happens := s.step
		switch {
		case last.story == s.story && last.step == s.step:
			happens = ""
		case last.story != "" && last.story != s.story:
			t.AppendSeparator()
		}
		last = s
		row, want, took, ok := table.Row{s.story, happens, s.placement}, "", "stays", true
		var times []string
		for _, form := range fleet.Versions {
			r := byForm[s][form]
			row, want, ok = append(row, shortened(strings.Join(r.Fleet.Chosen, ", "))), shortened(r.Want), ok && r.OK
			if r.Fleet.Seconds > 0 {
				times = append(times, fmt.Sprintf("%.2f s", r.Fleet.Seconds))
			}
		}
		if len(times) > 0 {
			took = strings.Join(times, ", ")
		}
		t.AppendRow(append(row, want, took, verdict(ok)))
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, AutoMerge: true}})
	t.Render()
	fmt.Fprintf(out, "%s: %s\n", fleet.Scenario, fleet.Shows)
}

// forms returns the forms as headers.
func forms() (out []any) {
	for _, form := range fleet.Versions {
		out = append(out, form)
	}
	return out
}

// shortened leaves out what the names of the clusters have in common.
func shortened(clusters string) string { return strings.ReplaceAll(clusters, ", cluster", ", ") }
