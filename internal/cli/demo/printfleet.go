package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
)

// printFleet prints the steps of the scenario fleet: the clusters that each placement selects, with each API version if
// they differ.
func printFleet(out io.Writer, results []demo.Result) {
	t := base.NewTable(out, "story and step", "placement", "selected clusters", "decided after", "")
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
		case last.story != s.story:
			title = s.story + ": " + s.step
			if last.story != "" {
				t.AppendSeparator()
			}
		}
		last = s
		expected, duration, ok := "", "unchanged", true
		var times, selected []string
		for _, version := range fleet.Versions {
			r := byVersion[s][version]
			selected = append(selected, shortenNames(strings.Join(r.Fleet.Chosen, ", ")))
			expected, ok = shortenNames(r.Want), ok && r.OK
			if r.Fleet.Seconds > 0 {
				times = append(times, fmt.Sprintf("%.2f s", r.Fleet.Seconds))
			}
		}
		if len(times) > 0 {
			duration = strings.Join(times, ", ")
		}
		t.AppendRow(table.Row{title, s.placement, byVersionText(selected), duration, formatOK(ok, expected)})
	}
	t.Render()
	fmt.Fprintf(out, "each step runs with placements of %s\n", strings.Join(fleet.Versions, " and of "))
	fmt.Fprintf(out, "%s: %s\n", fleet.Scenario, fleet.Shows)
}

// byVersionText returns the clusters that a placement selects, with the API version of each if they differ.
func byVersionText(selected []string) string {
	if len(slices.Compact(slices.Clone(selected))) == 1 {
		return selected[0]
	}
	var parts []string
	for i, version := range fleet.Versions {
		parts = append(parts, version+": "+selected[i])
	}
	return strings.Join(parts, "; ")
}

// shortenNames removes the common prefix of cluster names, except for the first name.
func shortenNames(clusters string) string { return strings.ReplaceAll(clusters, ", cluster", ", ") }
