package report

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// anyFloat generates numbers of all sizes, including NaN and infinities.
func anyFloat() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64(), rapid.Float64Range(-10, 10), rapid.Float64Range(0, 3),
		rapid.SampledFrom([]float64{
			0, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64,
			math.SmallestNonzeroFloat64, math.Copysign(0, -1),
		}),
	)
}

// TestReportIsFinite checks that a report has only finite numbers for any values of a result.
func TestReportIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anyFloat(), 0, 30)
		series := &result.TimeSeries{
			EverySeconds:    rapid.Int64Range(0, 1e9).Draw(t, "every"),
			OverloadedNodes: values.Draw(t, "overloaded"), PendingPods: values.Draw(t, "pending"),
			RiskEverySeconds: rapid.Int64Range(0, 1e9).Draw(t, "risk every"),
			MeanRisks:        values.Draw(t, "mean risk"), HighestRisks: values.Draw(t, "highest risk"),
		}
		figure := func(name string) result.Figure {
			return result.Figure{Mean: anyFloat().Draw(t, name), Difference: &result.Difference{
				Mean: anyFloat().Draw(t, "mean"),
				More: 1,
				Interval: &result.Interval{
					Low: anyFloat().Draw(t, "from"), High: anyFloat().Draw(t, "to"), ExcludesZero: rapid.Bool().Draw(t, "clear"),
				},
			}}
		}
		run := result.Run{TimeSeries: series}
		p := result.Profile{Name: "p", Figures: map[string]result.Figure{}, Runs: []result.Run{run}}
		for _, named := range result.CommonFigures() {
			p.Figures[named.Name] = figure(named.Name)
		}
		r := &result.Result{
			Profiles: []string{"p", "q"}, Source: result.Source{Nodes: 5},
			Scenarios: []result.Scenario{{Profiles: []result.Profile{p, p}}},
		}
		var b strings.Builder
		must.Succeed(t, page.Execute(&b, newView(r, details[0])))
		if found := external.FindString(b.String()); found != "" {
			t.Fatalf("found %q", found)
		}
	})
}
