package demo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// summary returns where the pods of one run were placed.
func summary(results []demo.Result) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, r.Summary())
	}
	return strings.Join(parts, ", ")
}

// printResults prints the results of all scenarios.
func printResults(out io.Writer, selected selection, results []demo.Result, autoscaler string) {
	if len(selected.placement) > 0 {
		printPlacement(out, selected.placement, results)
	}
	if selected.slack {
		printSlack(out, results, autoscaler)
	}
	if selected.fleet {
		printFleet(out, results)
	}
}

// formatOK returns whether a result is the expected one, and otherwise what is expected.
func formatOK(ok bool, want string) base.Colored {
	if ok {
		return base.Colored{Text: "ok", Color: base.Good}
	}
	return base.Colored{Text: "NOT AS EXPECTED: want " + want, Color: base.Bad}
}

// printPlacement prints where each pod was placed with the default profile and with Plimsoll.
func printPlacement(out io.Writer, scenarios []node.Scenario, results []demo.Result) {
	find := func(scenario, profile, pod string) demo.Result {
		i := slices.IndexFunc(results, func(r demo.Result) bool {
			return r.Scenario == scenario && r.Profile == profile && r.Pod == pod
		})
		return results[i]
	}
	t := base.NewTable(out, "scenario", "pod", "default profile", "with Plimsoll", "")
	for i, s := range scenarios {
		if i > 0 {
			t.AppendSeparator()
		}
		for _, step := range s.Steps {
			if step.Create == nil {
				continue
			}
			byDefault, ours := find(s.Name, demo.DefaultProfile, step.Create.Name), find(s.Name, s.Profile, step.Create.Name)
			expected := byDefault.Want + " / " + ours.Want
			t.AppendRow(table.Row{s.Name, ours.Pod, byDefault.Node, ours.Node, formatOK(byDefault.OK && ours.OK, expected)})
		}
	}
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 1, AutoMerge: true}})
	t.Render()
	for _, s := range scenarios {
		fmt.Fprintf(out, "%s: %s (%s)\n", s.Name, s.Shows, s.Profile)
	}
}

// printSlack prints the steps of the scenario slack. A step is as expected only if its pods are.
func printSlack(out io.Writer, results []demo.Result, autoscaler string) {
	t := base.NewTable(out, "step", "target", "available", "placeholders", "nodes", "waited", "")
	podsOK, expected := true, []string{}
	for _, r := range results {
		switch {
		case r.Scenario != slack.Scenario:
		case r.Slack == nil: // a pod of the burst in the next step
			podsOK, expected = podsOK && r.OK, []string{r.Want}
		default:
			pending := ""
			if r.Slack.Seconds > 0 {
				pending = fmt.Sprintf("%.2f s", r.Slack.Seconds)
			}
			s := r.Slack
			t.AppendRow(table.Row{
				r.Profile + ": " + s.Step, s.Target, s.Available, s.Placeholders, s.Nodes, pending,
				formatOK(podsOK && r.OK, strings.Join(append(expected, r.Want), ", ")),
			})
			podsOK, expected = true, nil
		}
	}
	t.SetColumnConfigs(base.RightAligned(2, 3, 4, 5, 6))
	t.Render()
	fmt.Fprintf(out, "target and available slack in CPUs; waited: the pod of the burst that was pending for longest\n")
	fmt.Fprintf(out, "%s: %s\nautoscaler: %s\n", slack.Scenario, slack.Shows, autoscaler)
}
