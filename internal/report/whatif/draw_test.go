package whatif

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
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

// TestReportIsFinite checks that a report has only finite numbers, whatever the values of a result.
func TestReportIsFinite(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(anyFloat(), 0, 30)
		series := &result.TimeSeries{
			EverySeconds:    rapid.Int64Range(0, 1e9).Draw(t, "every"),
			OverloadedNodes: values.Draw(t, "overloaded"), PendingPods: values.Draw(t, "pending"),
			CPULimitRatios: values.Draw(t, "cpu"), MemoryLimitRatios: values.Draw(t, "memory"),
			RiskEverySeconds: rapid.Int64Range(0, 1e9).Draw(t, "risk every"),
			MeanRisks:        values.Draw(t, "mean risk"), HighestRisks: values.Draw(t, "highest risk"),
		}
		used := result.ResourceUse{
			Means: values.Draw(t, "means"), Deviations: values.Draw(t, "deviations"), Distances: values.Draw(t, "distances"),
			Distance: result.Distribution{Max: anyFloat().Draw(t, "max")},
			Notable: []result.NotableNode{{
				Mean: anyFloat().Draw(t, "of one"), Alpha: anyFloat().Draw(t, "alpha"), Beta: anyFloat().Draw(t, "beta"),
				Observed: values.Draw(t, "observed"), Fitted: values.Draw(t, "fitted"),
			}},
		}
		decision := result.Decision{
			CPURequest: anyFloat().Draw(
				t,
				"cores",
			),
			MemoryLimit:   anyFloat().Draw(t, "bytes"),
			WaitedSeconds: rapid.Int64().Draw(t, "waited"),
			Scores: []result.NodeScore{
				{Total: rapid.Int64().Draw(t, "total"), Plugins: []result.PluginScore{{Raw: rapid.Int64().Draw(t, "raw")}}},
			},
		}
		figure := func(name string) result.Figure {
			return result.Figure{Mean: anyFloat().Draw(t, name), Difference: &result.Difference{
				Mean: anyFloat().Draw(t, "mean"),
				More: 1,
				Interval: &result.Interval{
					Low:          anyFloat().Draw(t, "from"),
					High:         anyFloat().Draw(t, "to"),
					ExcludesZero: rapid.Bool().Draw(t, "clear"),
				},
			}}
		}
		run := result.Run{TimeSeries: series, NodeUse: &result.NodeUse{CPU: used, Memory: used}, Decisions: []result.Decision{decision}}
		p := result.Profile{Name: "p", Figures: map[string]result.Figure{}, Runs: []result.Run{run}}
		for _, named := range result.CommonFigures() {
			p.Figures[named.Name] = figure(named.Name)
		}
		r := &result.Result{
			Profiles: []string{"p", "q"}, Source: result.Source{Nodes: 5},
			Scenarios: []result.Scenario{{Profiles: []result.Profile{p, p}}},
		}
		var b strings.Builder
		if err := page.Execute(&b, newView(r, details[0])); err != nil {
			t.Fatal(err)
		}
		if found := external.FindString(b.String()); found != "" {
			t.Fatalf("found %q", found)
		}
	})
}

var rectangle = regexp.MustCompile(`M\d+ \d+h(\d+)v(\d+)h-(\d+)z`)

// area returns the total area of the rectangles in a drawing.
func area(t interface{ Fatal(...any) }, svg string) int {
	sum := 0
	for _, match := range rectangle.FindAllStringSubmatch(svg, -1) {
		var width, height, back int
		if _, err := fmt.Sscan(match[1]+" "+match[2]+" "+match[3], &width, &height, &back); err != nil || width != back {
			t.Fatal(match[0], err)
		}
		sum += width * height
	}
	return sum
}

// TestHeatmapArea checks that a heatmap has the area of its cells: rectangles of complete rows and
// parts of rows add up.
func TestHeatmapArea(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 6000).Draw(t, "nodes")
		ratios := rapid.SliceOfN(rapid.Float64Range(0, 3), 0, nodes).Draw(t, "ratios")
		svg := string(heatmap(heatScale{0, 0.5, 6}, "title", ratios, nodes))
		got, size := area(t, svg), cellSize(nodes)
		if got != nodes*size*size {
			t.Fatalf("%d cells of %d×%d pixels: area %d", nodes, size, size, got)
		}
	})
}

// TestHeatScaleSplitsAtOne checks that 1 is a boundary of bins, whatever the values.
func TestHeatScaleSplitsAtOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ratios := rapid.SliceOfN(rapid.Float64Range(0, 8), 1, 50).Draw(t, "ratios")
		profile := result.Profile{Runs: []result.Run{{TimeSeries: &result.TimeSeries{CPULimitRatios: ratios}}}}
		r := &result.Result{Scenarios: []result.Scenario{{Profiles: []result.Profile{profile}}}}
		s := newHeatScale(r)
		if s.bins < 1 || s.bins > maxBins {
			t.Fatalf("%+v", s)
		}
		for _, v := range append(slices.Clone(ratios), 0.999999, 1) {
			if v > 1 && v < s.low+float64(s.bins)*s.step && !s.aboveOne(s.bin(v)) {
				t.Fatalf("%v is in a bin below 1 of %+v", v, s)
			}
			if v < 1-1e-6 && v >= s.low && s.aboveOne(s.bin(v)) {
				t.Fatalf("%v is in a bin above 1 of %+v", v, s)
			}
		}
		if len(s.legend()) != s.bins {
			t.Fatal("the legend does not have all bins")
		}
	})
}
