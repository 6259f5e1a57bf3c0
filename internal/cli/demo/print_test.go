package demo

import (
	"bytes"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
)

// sampleResults returns results as of a run of all scenarios. Those of the scenario named bad are unexpected.
func sampleResults(bad string) (selection, []demo.Result) {
	var results []demo.Result
	for _, s := range node.Scenarios {
		for _, step := range s.Steps {
			if step.Create != nil {
				results = append(
					results,
					demo.Result{
						Scenario: s.Name,
						Profile:  demo.DefaultProfile,
						Pod:      step.Create.Name,
						Node:     "permanent",
						Want:     "any",
						OK:       true,
					},
					demo.Result{
						Scenario: s.Name,
						Profile:  s.Profile,
						Pod:      step.Create.Name,
						Node:     "permanent",
						Want:     "spot-1",
						OK:       s.Name != bad,
					},
				)
			}
		}
	}
	for i, step := range []string{"8 web pods run", "a burst of 4 pods", "the same burst of 4 pods", "the slack is refilled"} {
		results = append(results, demo.Result{
			Scenario: slack.Scenario, Profile: []string{slack.WithoutSlack, "with slack"}[i/2], Want: "as many placeholders, fewer nodes",
			OK: bad != slack.Scenario,
			Slack: &demo.SlackStep{
				Step: step, Target: "6", Available: "8", Placeholders: 6, Nodes: 5, Seconds: 3.35 * float64(i%2),
			},
		})
	}
	for _, version := range fleet.Versions {
		chosen := []string{"cluster1", "cluster3", "cluster4", "cluster6"}
		if version == bad {
			chosen = chosen[:1]
		}
		for _, step := range []string{"created", "cluster1: from 18 to 34 CPUs"} {
			results = append(results, demo.Result{
				Scenario: fleet.Scenario, Profile: version, Want: "cluster1, cluster3, cluster4, cluster6", OK: version != bad,
				Fleet: &demo.FleetStep{Story: "1-largest-ratios", Step: step, Placement: "largest-ratios", Chosen: chosen, Seconds: 0.07},
			})
		}
	}
	return selection{placement: node.Scenarios, slack: true, fleet: true}, results
}

// TestTables checks that each table of the demo fits 80 columns in one piece, and says what was expected of results that are not
// as expected.
func TestTables(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	for bad, want := range map[string]string{
		"": "ok", "limits": "any / spot-1", slack.Scenario: "placeholders, fewer", "v1beta1": "3, 4, 6; v1beta1:",
	} {
		selected, results := sampleResults(bad)
		var out bytes.Buffer
		printResults(base.Fitted(&out), selected, results, "built-in")
		for line := range strings.SplitSeq(out.String(), "\n") {
			if text.StringWidth(line) > 80 {
				t.Errorf("%d columns: %s", text.StringWidth(line), line)
			}
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: the tables lack %q:\n%s", bad, want, out.String())
		}
		if bad == "" && strings.Count(out.String(), "┌") != 3 {
			t.Errorf("want each of the three tables in one piece:\n%s", out.String())
		}
	}
}
