package whatif

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// anything is a number, or what is none.
func anything() *rapid.Generator[float64] {
	return rapid.OneOf(
		rapid.Float64(), rapid.Float64Range(-10, 10), rapid.Float64Range(0, 3),
		rapid.SampledFrom([]float64{0, 1, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1)}),
	)
}

// Whatever the values are, all places are finite and within the scale.
func TestScaleIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScale(anything().Draw(t, "low"), anything().Draw(t, "high"), 10, 110)
		if at := s.at(anything().Draw(t, "value")); !(at >= 10 && at <= 110) {
			t.Fatalf("%+v: %v", s, at)
		}
		ticks := s.ticks(rapid.IntRange(1, 10).Draw(t, "parts"))
		if len(ticks) > maxTicks {
			t.Fatalf("%d ticks", len(ticks))
		}
		for _, tick := range ticks {
			if !finite(tick.value) {
				t.Fatalf("%+v", ticks)
			}
		}
	})
}

// Whatever the figures are, pictures have numbers in them.
func TestPicturesAreFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anything(), 0, 30)
		course := &result.TimeSeries{
			EverySeconds:    rapid.Int64Range(0, 1e9).Draw(t, "every"),
			OverloadedNodes: values.Draw(t, "overloaded"), PendingPods: values.Draw(t, "pending"),
			CPULimitRatios: values.Draw(t, "cpu"), MemoryLimitRatios: values.Draw(t, "memory"),
			RiskEverySeconds: rapid.Int64Range(0, 1e9).Draw(t, "risk every"),
			MeanRisks:        values.Draw(t, "mean risk"), HighestRisks: values.Draw(t, "highest risk"),
		}
		used := result.ResourceUse{
			Means: values.Draw(t, "means"), Deviations: values.Draw(t, "deviations"), Distances: values.Draw(t, "distances"),
			Distance: result.Distribution{Max: anything().Draw(t, "max")},
			Notable: []result.NotableNode{{
				Mean: anything().Draw(t, "of one"), Alpha: anything().Draw(t, "alpha"), Beta: anything().Draw(t, "beta"),
				Observed: values.Draw(t, "observed"), Fitted: values.Draw(t, "fitted"),
			}},
		}
		decision := result.Decision{
			CPURequest: anything().Draw(t, "cores"), MemoryLimit: anything().Draw(t, "bytes"), WaitedSeconds: rapid.Int64().Draw(t, "waited"),
			Scores: []result.NodeScore{{Total: rapid.Int64().Draw(t, "total"), Plugins: []result.PluginScore{{Raw: rapid.Int64().Draw(t, "raw")}}}},
		}
		figure := func(name string) result.Figure {
			return result.Figure{Mean: anything().Draw(t, name), Difference: &result.Difference{
				Mean: anything().Draw(t, "mean"), More: 1,
				Interval: &result.Interval{Low: anything().Draw(t, "from"), High: anything().Draw(t, "to"), ExcludesZero: rapid.Bool().Draw(t, "clear")},
			}}
		}
		p := result.Profile{Name: "p", Figures: map[string]result.Figure{}, Runs: []result.Run{{TimeSeries: course, NodeUse: &result.NodeUse{CPU: used, Memory: used}, Decisions: []result.Decision{decision}}}}
		for _, named := range result.CommonFigures() {
			p.Figures[named.Name] = figure(named.Name)
		}
		r := &result.Result{Profiles: []string{"p", "q"}, Source: result.Source{Nodes: 5}, Scenarios: []result.Scenario{{Profiles: []result.Profile{p, p}}}}
		var b strings.Builder
		if err := page.Execute(&b, newView(r, keeps[0])); err != nil {
			t.Fatal(err)
		}
		if found := external.FindString(b.String()); found != "" {
			t.Fatalf("found %q", found)
		}
	})
}

// A heatmap has as much of each colour as there are nodes of it: rectangles of
// whole rows and parts of rows add up.
func TestHeatmapIsAsLargeAsItsNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 6000).Draw(t, "nodes")
		ratios := rapid.SliceOfN(rapid.Float64Range(0, 3), 0, nodes).Draw(t, "ratios")
		svg := string(heatmap(heatScale{0, 0.5, 6}, "title", ratios, nodes))
		got, size := area(t, svg), cellSize(nodes)
		if got != nodes*size*size {
			t.Fatalf("%d nodes of %d pixels squared take %d", nodes, size, got)
		}
	})
}

// The bins of colours change at 1, whatever the values are.
func TestHeatScaleChangesAtTheLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ratios := rapid.SliceOfN(rapid.Float64Range(0, 8), 1, 50).Draw(t, "ratios")
		r := &result.Result{Scenarios: []result.Scenario{{Profiles: []result.Profile{{Runs: []result.Run{{TimeSeries: &result.TimeSeries{CPULimitRatios: ratios}}}}}}}}
		s := newHeatScale(r)
		if s.bins < 1 || s.bins > maxBins {
			t.Fatalf("%+v", s)
		}
		for _, v := range append(slices.Clone(ratios), 0.999999, 1) {
			if v > 1 && v < s.low+float64(s.bins)*s.step && !s.over(s.bin(v)) {
				t.Fatalf("%v is shown as below the line by %+v", v, s)
			}
			if v < 1-1e-6 && v >= s.low && s.over(s.bin(v)) {
				t.Fatalf("%v is shown as above the line by %+v", v, s)
			}
		}
		if len(s.legend()) != s.bins {
			t.Fatal("the legend is not of all bins")
		}
	})
}
