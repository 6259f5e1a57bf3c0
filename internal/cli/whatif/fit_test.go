package whatif

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/backtest"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/tune"
)

// settings are as long as those of a configuration that differs from the default in all plugins.
const settings = "NodeResourcesFit=2 MostAllocated, NodeResourcesBalancedAllocation=0, NodeResourcesLimits=5, " +
	"LowRiskOverCommitment=2 riskLimitWeight=0.25, PredictedUtilization=10 deviations=1.5"

// sampleTuning returns the result of a search with slack, whose names and numbers are long.
func sampleTuning() *result.Result {
	interval := &result.Interval{Low: -12345.6, High: -0.5, ExcludesZero: true}
	difference := &result.Difference{Mean: -1234.5, Interval: interval}
	current, winner, mean := 23456.7, 22222.2, -1234.5
	candidates := []result.Candidate{{Settings: "default", Round: 1, Seeds: 10, Objective: current}}
	for range rankedCandidates {
		candidates = append(candidates, result.Candidate{
			Settings: settings, Round: 3, Seeds: 10, Objective: winner, Difference: &mean, Dropped: "worse",
		})
	}
	figures := map[string]result.Figure{}
	for _, definition := range result.Figures {
		figures[definition.Name] = result.Figure{Mean: 12345.6, Difference: difference}
	}
	profile := func(name, slack string) result.Profile {
		return result.Profile{Name: name, Slack: slack, Figures: figures, Runs: []result.Run{
			{
				Seed:    11,
				Outcome: result.Outcome{Unschedulable: 1},
				Reasons: map[string]int{"Insufficient cpu": 1},
				Scaling: &result.Scaling{Cost: 12345.6},
			},
		}}
	}
	return &result.Result{
		Source: result.Source{Name: "generated: nodes=20,pods=600,fill=0.9,best-effort=0.1,over=3600,scale=2", Nodes: 20, Pods: 600},
		Seeds:  []uint64{11}, Profiles: []string{"default"}, Assumed: []string{strings.Repeat("a long assumption ", 10)},
		Scenarios: []result.Scenario{{
			Limits: "request*uniform:1..4", Usage: "bursts:mean=0.7;period=3600;spread=0.25;phase=0.5", Profiles: []result.Profile{
				profile("default, no slack", "none"), profile("default, slack for 10 % of the requests of all pods", "rate=10%"),
			},
		}},
		Tuning: &result.Tuning{
			Objective: tune.DefaultObjective, Verdict: result.Change, Settings: settings, Current: &current, Winner: &winner,
			Difference: difference, Notes: []string{strings.Repeat("a long note ", 10)}, Configuration: strings.Repeat("y", 100) + "\n",
			Search: result.Search{Seeds: []uint64{1}, Points: 1, Runs: 1, Candidates: candidates, Exhausted: true},
		},
	}
}

// TestTuneFitsTerminal checks that tables and sentences of a search fit the terminal, and that the configuration is printed as it is:
// it is copied from there.
func TestTuneFitsTerminal(t *testing.T) {
	r := sampleTuning()
	r.Tuning.Search.Candidates = r.Tuning.Search.Candidates[:3]
	expectFits(t, func(out io.Writer) {
		var all bytes.Buffer
		if err := (&tuneOptions{}).printTuning(&all, r); err != nil {
			t.Fatal(err)
		}
		before, found := strings.CutSuffix(all.String(), "\n\n"+r.Tuning.Configuration)
		if !found {
			t.Errorf("the configuration is not printed as it is:\n%s", all.String())
		}
		_, _ = io.WriteString(out, before+"\n")
		printProgress(base.Fitted(out), tune.Progress{Round: 1, Rounds: 3, Seeds: 1, Running: 1, Candidates: 12, Best: settings})
	}, "seeds", "confirmation with seed 11: tuned", "slack kept", "deviations=1.5", "search: 3 of 1 configuration, 1 run", "1 of 12 configurations remains",
		"20 nodes, 600 pods, 1 seed", "unschedulable with default, no slack, seed 11: 1 pod: Insufficient cpu")
}

// TestBacktestFitsTerminal checks the table of a backtest.
func TestBacktestFitsTerminal(t *testing.T) {
	r := &backtest.Result{
		Source:   result.Source{Name: "recording: " + strings.Repeat("folder/", 12) + "week.plrec", Nodes: 1, Pods: 1},
		Backtest: &result.Backtest{Profile: "default", Placements: result.Placements{Same: 1}},
		Assumed:  []string{strings.Repeat("a long assumption ", 10)},
	}
	for _, definition := range result.Figures {
		r.Figures = append(r.Figures, result.BacktestFigure{
			Name: definition.Name, Label: definition.Label, Unit: definition.Unit, Measured: 1234.5, Simulated: 234567.8, Main: true,
		})
	}
	expectFits(
		t,
		func(out io.Writer) { printBacktest(base.Fitted(out), r) },
		"1 node, 1 pod",
		"measured",
		"1 of 1 pod on the recorded node",
	)
}

// expectFits checks that what is printed fits terminals of 80 and 40 columns, and contains texts, in any number of lines.
func expectFits(t *testing.T, printAll func(io.Writer), texts ...string) {
	t.Helper()
	for columns, variable := range map[int]string{80: "80", 40: "40"} {
		t.Setenv("COLUMNS", variable)
		var out bytes.Buffer
		printAll(&out)
		for line := range strings.Lines(out.String()) {
			if width := text.StringWidth(strings.TrimSuffix(line, "\n")); width > columns {
				t.Errorf("a line of %d columns in a terminal of %d: %s", width, columns, line)
			}
		}
		joined := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range texts {
			if !strings.Contains(joined, want) {
				t.Errorf("%q is missing in\n%s", want, out.String())
			}
		}
	}
}
