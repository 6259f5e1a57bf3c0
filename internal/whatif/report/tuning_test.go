package report

import (
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// tuned returns a result with the search of a winner.
func tuned(t *testing.T, verdict result.Verdict) *result.Result {
	t.Helper()
	r := sample(t, 1, 2, 3, 20)
	r.Tuning = &result.Tuning{
		Objective:     "overloadMinutes=1",
		Verdict:       verdict,
		Settings:      "predicted 5 (deviations 1)",
		Configuration: "kind: KubeSchedulerConfiguration " + markup,
		Notes:         []string{"Check the load sources."},
		Search: result.Search{Seeds: []uint64{4, 5, 6}, Points: 76_799, Runs: 44, Candidates: []result.Candidate{
			{Settings: "fit 1", Round: 1, Seeds: 4, Objective: 1234},
			{Settings: "limits 1", Round: 1, Seeds: 4, Objective: 1300, Difference: new(66.0), Dropped: "worse"},
			{Settings: "predicted 5", Round: 1, Seeds: 6, Objective: 1000, Difference: new(-234.0)},
		}},
	}
	return r
}

// TestTuning verifies that a report shows the verdict, the evidence and the configurations of a search, the best first.
func TestTuning(t *testing.T) {
	r := tuned(t, result.Verdict{Answer: result.Better, Sentence: "predicted 5 is clearly better than what is in force."})
	got := text(t, write(t, r))
	for _, want := range []string{
		"predicted 5 is clearly better than what is in force.",
		"predicted 5 (deviations 1)", "in force: profile 0", "3 of 76,799 configurations, 44 simulations with seeds: 3, from 4 to 6",
		"kind: KubeSchedulerConfiguration " + markup, "Check the load sources.",
	} {
		if !strings.Contains(strings.ReplaceAll(got, format.ThinSpace, ","), want) {
			t.Errorf("the report lacks %q", want)
		}
	}
	if best, worst := strings.Index(got, "predicted 5\n"), strings.Index(got, "limits 1"); best > worst {
		t.Error("the best configuration is not the first")
	}
	if strings.Contains(text(t, write(t, sample(t, 1, 2, 3, 20))), "Configurations of the search") {
		t.Error("a comparison without a search shows one")
	}
}
