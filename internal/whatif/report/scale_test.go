package report

import (
	"testing"

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
