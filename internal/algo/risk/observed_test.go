package risk

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func observe(values ...float64) *Observed {
	o := &Observed{}
	for _, v := range values {
		o.Add(v)
	}
	return o
}

func TestObserved(t *testing.T) {
	// Mean (0.2 + 0.4 + 0.6 + 0.8) / 4; squares of 0.3, 0.1, 0.1 and 0.3: 0.2 / 4.
	o := observe(0.2, 0.4, 0.6, 0.8)
	if got, want := o.Load(), (Load{0.5, math.Sqrt(0.05)}); !near(got.Mean, want.Mean, 1e-12) || !near(got.StdDev, want.StdDev, 1e-12) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Values between two bins are in the lower one, 0 in the first.
	got := observe(0, 0.2, 0.25, 0.3, 1, 1, 1, 7).Histogram(4)
	if diff := cmp.Diff([]float64{3.0 / 8, 1.0 / 8, 0, 4.0 / 8}, got); diff != "" {
		t.Error(diff)
	}
	if o := (&Observed{}); o.Load() != (Load{}) || o.Count() != 0 || o.Distance(Fit(Load{0.5, 0.1}, 1)) != 0 {
		t.Error("an empty Observed is not zero")
	}
}

func TestDistance(t *testing.T) {
	uniform := Fit(Load{0.5, math.Sqrt(1.0 / 12)}, 1)
	tests := map[string]struct {
		seen []float64
		of   Distribution
		want float64
	}{
		// Beta(1, 1): F(x) = x. All values at 0.3: at 0.3 it is 1 - 0.3.
		"one value and a uniform distribution": {slices.Repeat([]float64{0.3}, 9), uniform, 0.7},
		// Half at 0 and half at 1: at 0 it is 0.5 - 0, just below 1 it is 0.995 - 0.5.
		"two values":               {[]float64{0, 1}, uniform, 0.5},
		"a step at the value":      {slices.Repeat([]float64{0.3}, 9), Fit(Load{0.3, 0}, 1), 0},
		"a step next to the value": {slices.Repeat([]float64{0.3}, 9), Fit(Load{0.4, 0}, 1), 1},
		// The largest variance for a mean of 0.5: half at 0, half at 1.
		"two points": {[]float64{0, 1}, Fit(Load{0.5, 0.5}, 1), 0},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := observe(tc.seen...).Distance(tc.of); !near(got, tc.want, 1e-9) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// The oracle is gonum for mean and deviation, and the exact distance of a sorted sample: the distance on
// the grid is at most the exact one, and differs from it at most by the content of a cell.
func TestObservedAgainstSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Millionths: a value closer to the edge of a cell could be rounded to either side.
		values := rapid.SliceOfN(
			rapid.Map(rapid.IntRange(0, 1e6), func(i int) float64 { return float64(i) / 1e6 }), 2, 300,
		).Draw(t, "values")
		o := observe(values...)
		mean, deviation := stat.PopMeanStdDev(values, nil)
		if got := o.Load(); !near(got.Mean, mean, 1e-9) || !near(got.StdDev, deviation, 1e-7) {
			t.Fatalf("%+v, want %v and %v", got, mean, deviation)
		}
		var sum float64
		for _, fraction := range o.Histogram(20) {
			sum += fraction
		}
		if !near(sum, 1, 1e-9) {
			t.Fatalf("fractions add up to %v", sum)
		}
		fitted := Fit(o.Load(), 1)
		alpha, beta := fitted.Parameters()
		if alpha == 0 {
			return
		}
		exact := distuv.Beta{Alpha: alpha, Beta: beta}
		slices.Sort(values)
		var farthest, steepest, fullest float64
		for i, v := range values {
			n := float64(len(values))
			farthest = max(farthest, math.Abs(float64(i+1)/n-exact.CDF(v)), math.Abs(float64(i)/n-exact.CDF(v)))
		}
		for _, fraction := range fitted.Histogram(cells) {
			steepest = max(steepest, fraction)
		}
		for _, fraction := range o.Histogram(cells) {
			fullest = max(fullest, fraction)
		}
		got := o.Distance(fitted)
		if got > farthest+1e-6 || got < farthest-steepest-fullest-1e-6 || got > 1 {
			t.Fatalf("distance %v, exact %v", got, farthest)
		}
	})
}

// A sample of a beta distribution is close to it; a bimodal sample is not.
func TestDistanceOfShapes(t *testing.T) {
	of := distuv.Beta{Alpha: 2, Beta: 5}
	var like, bimodal Observed
	for i := range 1000 {
		p := (float64(i) + 0.5) / 1000
		like.Add(of.Quantile(p))
		bimodal.Add(0.15 + 0.6*math.Round(p) + 0.02*p)
	}
	if got := like.Distance(Fit(like.Load(), 1)); got > 0.005 {
		t.Errorf("a beta sample has distance %v", got)
	}
	if got := bimodal.Distance(Fit(bimodal.Load(), 1)); got < 0.2 {
		t.Errorf("a bimodal sample has distance %v only", got)
	}
}

func TestHistogramOfDistribution(t *testing.T) {
	// Beta(2, 2): F(x) = 3x^2 - 2x^3: 0.15625, 0.5, 0.84375, 1.
	got := Fit(Load{0.5, math.Sqrt(0.05)}, 1).Histogram(4)
	if diff := cmp.Diff([]float64{0.15625, 0.34375, 0.34375, 0.15625}, got, cmpopts.EquateApprox(0, 1e-9)); diff != "" {
		t.Error(diff)
	}
}

func TestObservedAllocations(t *testing.T) {
	var o Observed
	if n := testing.AllocsPerRun(100, func() { o.Add(0.4) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
