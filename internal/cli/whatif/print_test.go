package whatif

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/report"
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
		Scenario: result.Scenario{Usage: "beta", Profiles: []result.Profile{profile("0%", 1.5), profile("10%", 2.5)}},
	}
	r.Scenario.Compare()
	for _, output := range []string{base.FormatTable, base.FormatMarkdown} {
		var out strings.Builder
		Print(&out, &base.Output{Format: output}, &report.Document{Result: r})
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

// TestHeads expects that the heads of a table are what differs between its profiles.
func TestHeads(t *testing.T) {
	for other, want := range map[string]string{
		"default, slack 30%": "SLACK 0% SLACK 30%", "predicted, slack 0%": "DEFAULT PREDICTED", "predicted, slack 30%": "DEFAULT, SL... PREDICTED, ...",
	} {
		var out bytes.Buffer
		o := base.Output{Format: base.FormatTable}
		scenarioTable(&result.Scenario{Profiles: []result.Profile{{Name: "default, slack 0%"}, {Name: other}}}, 1,
			[]report.FigureRow{{Text: "x", Mean: "1", Cells: []report.FigureCell{{Mean: "2", Difference: "+1"}}}}).Print(&out, &o)
		head := strings.Join(strings.Fields(out.String())[1:], " ")
		if !strings.HasPrefix(head, want+" DIFFERENCE") {
			t.Errorf("%s: %s, want %s", other, head, want)
		}
	}
}

// TestWorseFigures expects a row for a figure of -o wide if it is clearly worse with a profile, because the price names it.
func TestWorseFigures(t *testing.T) {
	s := &result.Scenario{Profiles: []result.Profile{{Figures: map[string]result.Figure{}}, {Figures: map[string]result.Figure{}}}}
	for name, difference := range map[string]float64{"cpuLimitRatioP95": 1, "cpuLimitRatioMax": -1, "cpuLimitRatioP50": 1} {
		s.Profiles[1].Figures[name] = result.Figure{Difference: &result.Difference{
			Mean: difference, More: 1, Interval: &result.Interval{Low: difference, High: difference, ExcludesZero: true},
		}}
	}
	for unlimited, want := range map[int]bool{0: true, 7: false} {
		differing, _ := foldEqual(report.FigureRows(&result.Result{Source: result.Source{Unlimited: unlimited}}, s), false)
		var names []string
		for _, d := range differing {
			names = append(names, d.Name)
		}
		if slices.Contains(names, "cpuLimitRatioP95") != want || slices.Contains(names, "cpuLimitRatioMax") ||
			slices.Contains(names, "cpuLimitRatioP50") {
			t.Errorf("%d pods without limits: %q", unlimited, names)
		}
	}
}
