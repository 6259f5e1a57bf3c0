package main

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestHolm(t *testing.T) {
	for name, tc := range map[string]struct{ p, want []float64 }{
		"none": {nil, []float64{}},
		"one":  {[]float64{0.03}, []float64{0.03}},
		// 4 x 0.005, 3 x 0.01, 2 x 0.03, 1 x 0.04, which is below 0.06
		"four": {[]float64{0.01, 0.04, 0.03, 0.005}, []float64{0.03, 0.06, 0.06, 0.02}},
		// 3 x 0.5 is limited to 1, as are the later products.
		"high":  {[]float64{0.5, 0.9, 0.6}, []float64{1, 1, 1}},
		"equal": {[]float64{0.02, 0.02}, []float64{0.04, 0.04}},
	} {
		got := holm(tc.p)
		if len(got) != len(tc.want) {
			t.Fatalf("%s: %v", name, got)
		}
		for i := range got {
			if math.Abs(got[i]-tc.want[i]) > 1e-12 {
				t.Errorf("%s: %v, want %v", name, got, tc.want)
			}
		}
	}
}

func TestSignFlip(t *testing.T) {
	for name, tc := range map[string]struct {
		differences []float64
		less, more  float64
	}{
		// Of the 8 sums -6, -4, -2, 0, 0, 2, 4, 6 only one is at least 6.
		"all positive": {[]float64{1, 2, 3}, 1, 1.0 / 8},
		"all negative": {[]float64{-1, -2, -3}, 1.0 / 8, 1},
		// 0 - the two zeros and the three above, or below.
		"balanced": {[]float64{1, 2, -3}, 5.0 / 8, 5.0 / 8},
		"zero":     {[]float64{0, 0}, 1, 1},
		// Sums -1.3, -1.1, 1.1, 1.3.
		"mixed": {[]float64{1.2, -0.1}, 3.0 / 4, 2.0 / 4},
	} {
		less, more, err := signFlip(tc.differences)
		if err != nil || less != tc.less || more != tc.more {
			t.Errorf("%s: %v and %v (%v), want %v and %v", name, less, more, err, tc.less, tc.more)
		}
	}
	for _, n := range []int{0, maxPairs + 1} {
		if _, _, err := signFlip(make([]float64, n)); err == nil {
			t.Errorf("%d pairs are accepted", n)
		}
	}
}

// TestSignFlipOracle compares with all sums, computed one by one.
func TestSignFlipOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		differences := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float64 {
			return float64(rapid.IntRange(-20, 20).Draw(t, "tenths")) / 10
		}), 1, 8).Draw(t, "differences")
		observed, low, high := 0.0, 0, 0
		for _, d := range differences {
			observed += d
		}
		for signs := range 1 << len(differences) {
			sum := 0.0
			for i, d := range differences {
				if signs&(1<<i) != 0 {
					d = -d
				}
				sum += d
			}
			if sum <= observed+1e-9 {
				low++
			}
			if sum >= observed-1e-9 {
				high++
			}
		}
		n := float64(int(1) << len(differences))
		less, more, err := signFlip(differences)
		if err != nil || less != float64(low)/n || more != float64(high)/n {
			t.Fatalf("%v: %v and %v (%v), want %v and %v", differences, less, more, err, float64(low)/n, float64(high)/n)
		}
		slices.Reverse(differences)
		if less2, more2, _ := signFlip(differences); less2 != less || more2 != more {
			t.Fatal("the order changes the result")
		}
	})
}
