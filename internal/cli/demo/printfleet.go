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

// printFleet prints the steps of the scenario fleet, with a column for each API version of the
// placement.
func printFleet(out io.Writer, results []demo.Result) {
	header := table.Row{fleet.Scenario, "step", "placement"}
	for _, version := range fleet.Versions {
		header = append(header, version)
	}
	t := base.NewTable(out, append(header, "expected", "decided after", "")...)
	type step struct{ story, step, placement string }
	stepOf := func(r demo.Result) step { return step{r.Fleet.Story, r.Fleet.Step, r.Fleet.Placement} }
	byVersion := map[step]map[string]demo.Result{}
	var steps []step
	for _, r := range results {
		if r.Fleet == nil {
			continue
		}
		if byVersion[stepOf(r)] == nil {
			byVersion[stepOf(r)] = map[string]demo.Result{}
			steps = append(steps, stepOf(r))
		}
		byVersion[stepOf(r)][r.Profile] = r
	}
	var last step
	for _, s := range steps {
		title := s.step
		switch {
		case last.story == s.story && last.step == s.step:
			title = ""
		case last.story != "" && last.story != s.story:
			t.AppendSeparator()
		}
		last = s
		row, expected, duration, ok := table.Row{s.story, title, s.placement}, "", "unchanged", true
		var times []string
		for _, version := range fleet.Versions {
			r := byVersion[s][version]
			row = append(row, shortenNames(strings.Join(r.Fleet.Chosen, ", ")))
			expected, ok = shortenNames(r.Want), ok && r.OK
			if r.Fleet.Seconds > 0 {
				times = append(times, fmt.Sprintf("%.2f s", r.Fleet.Seconds))
			}
		}
		if len(times) > 0 {
			duration = strings.Join(times, ", ")
		}
		t.AppendRow(append(row, expected, duration, formatOK(ok)))
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, AutoMerge: true}})
	t.Render()
	fmt.Fprintf(out, "%s: %s\n", fleet.Scenario, fleet.Shows)
}

// shortenNames removes the common prefix of cluster names, except for the first name.
func shortenNames(clusters string) string { return strings.ReplaceAll(clusters, ", cluster", ", ") }
