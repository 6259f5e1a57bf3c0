package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

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
