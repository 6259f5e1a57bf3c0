package whatif

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// TestSameContent verifies that text and Markdown both have the frontier, the figures, the reasons for unschedulable pods and the
// assumptions of a comparison of slack.
func TestSameContent(t *testing.T) {
	profile := func(slack string, cost float64) result.Profile {
		return result.Profile{Name: "default, slack " + slack, Slack: slack, Runs: []result.Run{{
			Seed: 7, Outcome: result.Outcome{Unschedulable: 2}, Reasons: map[string]int{"Insufficient cpu": 2},
			Scaling: &result.Scaling{Cost: cost},
		}}}
	}
	r := &result.Result{
		Source: result.Source{Name: "cluster"}, Seeds: []uint64{7}, Assumed: []string{"nothing is real"},
		Scenarios: []result.Scenario{{Usage: "beta", Profiles: []result.Profile{profile("0%", 1.5), profile("10%", 2.5)}}},
	}
	r.Scenarios[0].Compare()
	for _, output := range []string{base.FormatTable, base.FormatMarkdown} {
		var out strings.Builder
		printer{&out, &base.Output{Format: output}}.result(r)
		for _, want := range []string{
			"cost and benefit of slack", "2.50", "difference", "nothing is real",
			"unschedulable with default, slack 10%, seed 7: 2 pods: Insufficient cpu",
		} {
			if !strings.Contains(strings.ToLower(out.String()), strings.ToLower(want)) {
				t.Errorf("%s: %q is missing in\n%s", output, want, out.String())
			}
		}
	}
}
