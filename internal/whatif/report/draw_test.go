package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
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
			Scenario: result.Scenario{Profiles: []result.Profile{p, p}},
		}
		var b strings.Builder
		must.Succeed(t, page.Execute(&b, newView(Document{Result: r}, details[0])))
		if found := external.FindString(b.String()); found != "" {
			t.Fatalf("found %q", found)
		}
	})
}

// TestScaleIsFinite checks that all coordinates are finite and within the scale for any values.
func TestScaleIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low, high := anyFloat().Draw(t, "low"), anyFloat().Draw(t, "high")
		for _, s := range []Scale{NewScale(low, high, 10, 110)} {
			if at := s.At(anyFloat().Draw(t, "value")); !(at >= 10 && at <= 110) {
				t.Fatalf("%+v: %v", s, at)
			}
			ticks := s.Ticks(rapid.IntRange(1, 10).Draw(t, "parts"))
			if len(ticks) > maxTicks {
				t.Fatalf("%d ticks", len(ticks))
			}
			for _, tick := range ticks {
				if !format.IsFinite(tick.Value) {
					t.Fatalf("%+v", ticks)
				}
			}
		}
	})
}

// TestTicksOfCounts expects whole ticks of numbers of nodes: 0 and 5 for up to 9, 0 and 1 if there are none, 0 to 4 in steps of 1 for 4.
func TestTicksOfCounts(t *testing.T) {
	for highest, want := range map[float64][]string{9: {">0<", ">5<"}, 0: {">0<", ">1<"}, 4: {">0<", ">1<", ">2<", ">3<", ">4<"}} {
		line := Line{Name: "default", Interval: 60, Values: []float64{0, highest, math.NaN()}}
		svg := string(NewTimeChart("Nodes", time.Time{}, 0, []Line{line}).SVG)
		axis, _, _ := strings.Cut(svg, " min<")
		for _, tick := range want {
			if !strings.Contains(axis, tick) {
				t.Errorf("highest %v: no tick %s in %s", highest, tick, axis)
			}
		}
		if ticks := strings.Count(axis, "</text>"); ticks != len(want) {
			t.Errorf("highest %v: %d ticks, want %d in %s", highest, ticks, len(want), axis)
		}
	}
}
