package recording

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestCodesPrecision checks that the relative error of a value is at most 0.07 %, over all amounts of CPU and memory.
func TestCodesPrecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exponent := rapid.Float64Range(-19, 60).Draw(t, "exponent")
		value := math.Exp2(exponent)
		got := decode(encode(value))
		// Codes are 1/512 octave apart: the error is at most 2^(1/1024) - 1 = 0.0677 %.
		if math.Abs(got-value) > 0.0007*value {
			t.Fatalf("%g is read as %g", value, got)
		}
	})
}

func TestCodes(t *testing.T) {
	for _, tc := range []struct {
		name        string
		value, want float64
	}{
		{"zero", 0, 0},
		{"negative", -1, 0},
		{"too small", math.Exp2(-30), 0},
		{"the smallest", math.Exp2(-20), math.Exp2(-20)},
		// Powers of two are exact.
		{"one millicore", 1, 1},
		{"one gibibyte", 1 << 30, 1 << 30},
		// The largest code is 65535: 2 to the power of (65535-2)/512 - 20 = 107.994.
		{"infinite", math.Inf(1), math.Exp2(65533.0/512 - 20)},
	} {
		if got := decode(encode(tc.value)); math.Abs(got-tc.want) > 1e-12*tc.want {
			t.Errorf("%s: %g, want %g", tc.name, got, tc.want)
		}
	}
	if got := decode(encode(math.NaN())); !math.IsNaN(got) {
		t.Errorf("gap is read as %g", got)
	}
	for code := range 1 << 16 {
		if again := encode(decode(uint16(code))); int(again) != code {
			t.Fatalf("code %d is %g, which has code %d", code, decode(uint16(code)), again)
		}
	}
}

// TestSeriesLikeMap compares a series with a map of steps; values are set in any order.
func TestSeriesLikeMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := map[int]float64{}
		var s Series
		for range rapid.IntRange(0, 30).Draw(t, "values") {
			step, value := rapid.IntRange(0, 40).Draw(t, "step"), float64(int64(1)<<rapid.IntRange(0, 40).Draw(t, "value"))
			if rapid.IntRange(0, 4).Draw(t, "gap") == 0 {
				value = math.NaN()
			}
			if grown := s.Len() + s.growth(step, 1); step >= s.First || s.Len() == 0 {
				s.Set(step, value)
				if s.Len() != grown {
					t.Fatalf("the series grew to %d, expected %d", s.Len(), grown)
				}
			} else {
				s.Set(step, value)
			}
			want[step] = value
		}
		steps := rapid.IntRange(0, 50).Draw(t, "steps")
		s.clip(steps)
		for step := range 60 {
			value, set := want[step]
			set = set && !math.IsNaN(value) && step < steps
			if got, ok := s.At(step); ok != set || ok && got != value {
				t.Fatalf("step %d: %g, %v, want %g, %v", step, got, ok, value, set)
			}
		}
	})
}
