package bootstrap

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

// near reports whether two numbers differ by at most a tolerance.
func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func zeros(n int) []float64 { return make([]float64, n) }

func TestPaired(t *testing.T) {
	tests := map[string]struct {
		a, b []float64
		want Interval
	}{
		"two less in each pair": {[]float64{5, 7, 9}, []float64{3, 5, 7}, Interval{Mean: -2, Low: -2, High: -2, Level: 0.95, Less: 3}},
		"no differences":        {[]float64{5, 7}, []float64{5, 7}, Interval{Level: 0.95, Equal: 2}},
		// The four resamples of two values have the means -1, 0, 0 and 1. The score of an end
		// is 12.7 x sqrt 2, beyond all quantiles: the ends are the extreme values.
		"two": {[]float64{0, 0}, []float64{-1, 1}, Interval{Low: -1, High: 1, Level: 0.95, Less: 1, More: 1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Paired(tc.a, tc.b, 0.95, 1); err != nil || got != tc.want {
				t.Errorf("%+v, %v, want %+v", got, err, tc.want)
			}
		})
	}
}

// TestExpanded compares expanded levels. Ten values: t with 9 degrees of freedom is 2.26216,
// times sqrt(10/9) = 2.38452. A hundred values: 1.98422 x sqrt(100/99) = 1.99422.
func TestExpanded(t *testing.T) {
	for n, want := range map[int]float64{10: 2.38452, 100: 1.99422} {
		if got := expanded(0.95, n); !near(got, want, 1e-4) {
			t.Errorf("%d values: %v, want %v", n, got, want)
		}
	}
}

// TestAcceleration has the values -1, 0, 0 and 4 with the mean 0.75. The distances are -1.75,
// -0.75, -0.75 and 3.25, their cubes -5.359375 - 0.84375 + 34.328125 = 28.125, their squares
// 3.0625 + 1.125 + 10.5625 = 14.75; 28.125 / (6 x 14.75^1.5 = 339.887) = 0.082748.
func TestAcceleration(t *testing.T) {
	if got := acceleration([]float64{-1, 0, 0, 4}, 0.75); !near(got, 0.082748, 1e-6) {
		t.Errorf("%v, want 0.082748", got)
	}
}

// TestBias has five resampled means 1, 2, 2, 3 and 9: one is below 2 and three are at most 2,
// (1 + 3) / 2 / 5 = 0.4.
func TestBias(t *testing.T) {
	if got, want := bias([]float64{1, 2, 2, 3, 9}, 2), distuv.UnitNormal.Quantile(0.4); !near(got, want, 1e-12) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestResamples compares the distribution of the drawn means with that of the means of all
// 256 resamples of four values.
func TestResamples(t *testing.T) {
	values := []float64{-1, 0, 2, 7}
	var all []float64
	for i := range 256 {
		all = append(all, (values[i&3]+values[i>>2&3]+values[i>>4&3]+values[i>>6&3])/4)
	}
	drawn := resample(values, 1)
	for x := -1.0; x <= 7; x += 0.25 {
		var exact, sampled float64
		for _, v := range all {
			if v <= x+1e-9 {
				exact++
			}
		}
		for _, v := range drawn {
			if v <= x+1e-9 {
				sampled++
			}
		}
		if !near(exact/256, sampled/resampleCount, 0.02) {
			t.Errorf("a share of %v of the means is at most %v, want %v", sampled/resampleCount, x, exact/256)
		}
	}
}

// TestNormalTheory compares the interval of many normal values with the t interval.
func TestNormalTheory(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	b := zeros(400)
	var sum, squares float64
	for i := range b {
		b[i] = 3 + 2*r.NormFloat64()
		sum += b[i]
	}
	for _, v := range b {
		squares += (v - sum/400) * (v - sum/400)
	}
	half := 1.966 * math.Sqrt(squares/399/400) // t with 399 degrees of freedom
	got, err := Paired(zeros(400), b, 0.95, 1)
	if err != nil || !near(got.Low, sum/400-half, 0.06*half) || !near(got.High, sum/400+half, 0.06*half) || !got.ExcludesZero() {
		t.Errorf("%+v, %v, want %v +- %v", got, err, sum/400, half)
	}
}

// TestCoverage measures how often the interval contains the true mean in many experiments with
// few seeds.
func TestCoverage(t *testing.T) {
	tests := map[string]struct {
		seeds       int
		draw        func(*rand.Rand) float64
		mean        float64
		least, most float64
	}{
		"normal, five": {5, func(r *rand.Rand) float64 { return r.NormFloat64() }, 0, 0.92, 0.97},
		"normal":       {10, func(r *rand.Rand) float64 { return r.NormFloat64() }, 0, 0.93, 0.97},
		"uniform":      {10, func(r *rand.Rand) float64 { return r.Float64() }, 0.5, 0.92, 0.97},
		// A skewed distribution has a coverage below the level.
		"exponential": {10, func(r *rand.Rand) float64 { return r.ExpFloat64() }, 1, 0.88, 0.97},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			const experiments = 600
			var covered float64
			for i := range experiments {
				b := zeros(tc.seeds)
				for k := range b {
					b[k] = tc.draw(r)
				}
				got, err := Paired(zeros(tc.seeds), b, 0.95, uint64(i))
				if err != nil {
					t.Fatal(err)
				}
				if got.Low <= tc.mean && tc.mean <= got.High {
					covered++
				}
			}
			if c := covered / experiments; c < tc.least || c > tc.most {
				t.Errorf("coverage %v, want %v to %v", c, tc.least, tc.most)
			}
			t.Logf("coverage %v", covered/experiments)
		})
	}
}

func TestErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		a, b  []float64
		level float64
		want  error
	}{
		"lengths":   {zeros(2), zeros(3), 0.95, errUnpaired},
		"one":       {zeros(1), zeros(1), 0.95, errTooFew},
		"none":      {nil, nil, 0.95, errTooFew},
		"level 0":   {zeros(3), zeros(3), 0, errLevel},
		"level 95":  {zeros(3), zeros(3), 95, errLevel},
		"level NaN": {zeros(3), zeros(3), math.NaN(), errLevel},
		"NaN":       {zeros(2), []float64{1, math.NaN()}, 0.95, errNotFinite},
		"Inf":       {zeros(2), []float64{1, math.Inf(1)}, 0.95, errNotFinite},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Paired(tc.a, tc.b, tc.level, 1); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
}

// TestProperties verifies that the interval is within the range of the values, is
// deterministic, is negated if the series are swapped, is shifted and scaled with the values,
// and is wider for a higher level.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOfN(rapid.Map(rapid.IntRange(-1000, 1000), func(n int) float64 { return float64(n) }), 2, 30).Draw(t, "b")
		level, seed := rapid.Float64Range(0.5, 0.99).Draw(t, "level"), rapid.Uint64().Draw(t, "seed")
		got, err := Paired(zeros(len(b)), b, level, seed)
		if err != nil {
			t.Fatal(err)
		}
		low, high := math.Inf(1), math.Inf(-1)
		moved, shift := zeros(len(b)), zeros(len(b))
		for i, v := range b {
			low, high = min(low, v), max(high, v)
			shift[i], moved[i] = 100, 100+4*v
		}
		if got.Low > got.High || got.Low < low-1e-9 || got.High > high+1e-9 || got.Less+got.Equal+got.More != len(b) {
			t.Fatalf("%+v of values from %v to %v", got, low, high)
		}
		if second, _ := Paired(zeros(len(b)), b, level, seed); second != got {
			t.Fatalf("%+v, then %+v", got, second)
		}
		if four, _ := Paired(shift, moved, level, seed); !near(four.Low, 4*got.Low, 1e-6) || !near(four.High, 4*got.High, 1e-6) {
			t.Fatalf("%+v, scaled by four %+v", got, four)
		}
		if swapped, _ := Paired(b, zeros(len(b)), level, seed); !near(swapped.Low, -got.High, 1e-6) || !near(swapped.High, -got.Low, 1e-6) {
			t.Fatalf("%+v, swapped %+v", got, swapped)
		}
		if wider, _ := Paired(zeros(len(b)), b, (1+level)/2, seed); wider.Low > got.Low || wider.High < got.High {
			t.Fatalf("%+v is not within %+v", got, wider)
		}
	})
}

func BenchmarkPaired(b *testing.B) {
	values := []float64{1, 4, 2, 8, 5, 7, 3, 3, 9, 1}
	for b.Loop() {
		if _, err := Paired(zeros(10), values, 0.95, 1); err != nil {
			b.Fatal(err)
		}
	}
}
