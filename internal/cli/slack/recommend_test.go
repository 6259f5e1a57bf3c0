package slack

import (
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// TestRecommendationFitsTerminal checks the table, the message without need and without a solution on terminals of 80 columns.
func TestRecommendationFitsTerminal(t *testing.T) {
	outcome := func(wait int64, cost float64) slack.Outcome {
		waits := slack.Waits{0: 10, wait: 1}
		return slack.Outcome{Waits: waits, Cost: cost, Parts: []slack.Part{{Waits: waits, Cost: cost}}}
	}
	none := slack.Candidate{Name: "none", Outcome: outcome(129, 1_000_000)}
	policy := &v1alpha1.ResourceSlack{Spec: v1alpha1.ResourceSlackSpec{MinRate: "12%"}}
	rate := slack.Candidate{Name: "rate 12%", Policy: policy, Outcome: outcome(0, 1_200_000)}
	best := slack.Candidate{
		Name: "10 schedules up to 1234.5 CPU 1234.5Gi", Policy: policy, Outcome: outcome(0, 1_100_000),
	}
	goal := &slack.Goal{Percent: 99.9, Wait: 5 * time.Second}
	for want, found := range map[string]*slack.Recommendation{
		"0.92 of the cost of rate 12%, the cheapest rate (0.92 to 0.92 in parts); slack adds 100,000 to the cost without slack, 0.50 of": {
			None: none, Best: &best, Nearest: &best, Rate: &rate, Frontier: []slack.Candidate{none, best},
		},
		"no slack is needed: without slack the wait p99.9 is 2m9s": {None: none, Best: &none, Nearest: &none, Frontier: []slack.Candidate{none}},
		"no policy reaches p99.9=5s: nearest is none with a wait p99.9 of 2m9s; 1 of 11 pods waits longer": {
			None: none, Nearest: &none, Frontier: []slack.Candidate{none},
		},
	} {
		var out strings.Builder
		o := recommendOptions{wait: "p99.9=5s", output: base.Output{Format: base.FormatTable}}
		if err := o.print(&out, func(string) {}, goal, found, &recording.Input{Name: "test"}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if columns := len([]rune(line)) - 1; columns > 80 {
				t.Errorf("a line of %d columns: %s", columns, line)
			}
		}
		if words := strings.Join(strings.Fields(out.String()), " "); !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
