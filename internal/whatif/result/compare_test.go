package result

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// scenario returns a compared scenario of two profiles.
func scenario(t *testing.T, base, other []Run) *Scenario {
	t.Helper()
	s := &Scenario{Profiles: []Profile{{Name: "base", Runs: base}, {Name: "other", Runs: other}}}
	s.Compare()
	return s
}

// run returns a run with a number of victims.
func run(seed uint64, victims int, interrupted bool) Run {
	return Run{Seed: seed, Interrupted: interrupted, Outcome: Outcome{Victims: victims}}
}

func TestCompare(t *testing.T) {
	s := scenario(t, []Run{run(1, 5, false), run(2, 7, false), run(3, 9, false)},
		[]Run{run(1, 2, false), run(2, 4, false), run(3, 6, false)})
	if got, want := s.Profiles[0].Figures["victims"], (Figure{Mean: 7}); !cmp.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	// Each pair differs by 3, so that both ends of the interval are -3.
	want := Figure{Mean: 4, Difference: &Difference{Mean: -3, Interval: &Interval{Low: -3, High: -3, ExcludesZero: true}, Less: 3}}
	if got := s.Profiles[1].Figures["victims"]; !cmp.Equal(got, want) {
		t.Errorf("%+v", cmp.Diff(want, got))
	}
	if got := s.Profiles[1].Figures["churn"].Difference; got.Interval.ExcludesZero || got.Equal != 3 {
		t.Errorf("difference of equal values: %+v", got)
	}
}

// TestParts has one run of four parts. The mean of the differences of parts, -2, is a quarter of the difference of the runs, -8, and the
// interval is four times that of the mean, with the quantile 3.182 of three degrees of freedom:
//
//	-1 -2 -3 -2: variance 2/3, covariance of neighbors 0, half of the width 4 x 3.182 sqrt(2/3 / 4) = 5.197
//	-3 -3 -1 -1: variance 4/3, covariance (1 - 1 + 1)/3 with the weight 1/2, half of the width 4 x 3.182 sqrt((4/3 + 1/3) / 4) = 8.217
//	-1 -3 -1 -3: variance 4/3, covariance negative: it is not counted, half of the width 4 x 3.182 sqrt(4/3 / 4) = 7.349
//
// The load of the fullest node is no sum: -0.1 in each part, and in the whole.
func TestParts(t *testing.T) {
	for _, test := range []struct {
		victims [4]int
		half    float64
	}{{[4]int{9, 8, 7, 8}, 5.197}, {[4]int{7, 7, 9, 9}, 8.217}, {[4]int{9, 7, 9, 7}, 7.349}} {
		base, other := run(1, 40, false), run(1, 32, false)
		base.CPULoad.Max, other.CPULoad.Max = 0.9, 0.8
		for _, victims := range test.victims {
			base.Parts, other.Parts = append(base.Parts, run(0, 10, false)), append(other.Parts, run(0, victims, false))
			base.Parts[len(base.Parts)-1].CPULoad.Max, other.Parts[len(base.Parts)-1].CPULoad.Max = 0.9, 0.8
		}
		figures := scenario(t, []Run{base}, []Run{other}).Profiles[1].Figures
		want := &Difference{Mean: -8, Less: 4, Interval: &Interval{Low: -8 - test.half, High: -8 + test.half, ExcludesZero: test.half < 8}}
		if got := figures["victims"].Difference; !cmp.Equal(got, want, cmpopts.EquateApprox(0, 0.001)) {
			t.Errorf("%v: %s", test.victims, cmp.Diff(want, got))
		}
		if got := figures["cpuLoadMax"].Difference; math.Abs(got.Mean+0.1) > 1e-9 || math.Abs(got.Interval.High+0.1) > 1e-9 {
			t.Errorf("load %+v, %+v", got, got.Interval)
		}
	}
}

func TestCompareOneSeed(t *testing.T) {
	s := scenario(t, []Run{run(1, 5, false)}, []Run{run(1, 6, false)})
	if got, want := s.Profiles[1].Figures["victims"], (Figure{Mean: 6, Difference: &Difference{Mean: 1, More: 1}}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	s.SetExact()
	if d := s.Profiles[1].Figures["victims"].Difference; AnswerOf(Definition{}, d, 5) != Worse ||
		intervalText(d, 0) != "in the only run" {
		t.Errorf("%+v, %+v", d, d.Interval)
	}
	if d := s.Profiles[1].Figures["churn"].Difference; AnswerOf(Definition{}, d, 0) != Equal {
		t.Errorf("%+v", d)
	}
}

// TestFullestNode checks that a lower load of the fullest node is better, and that a higher one only differs.
func TestFullestNode(t *testing.T) {
	loaded := func(seed uint64, load float64) Run {
		return Run{Seed: seed, Outcome: Outcome{CPULoad: Distribution{Max: load}}}
	}
	low, high := []Run{loaded(1, 0.85), loaded(2, 0.85)}, []Run{loaded(1, 1.15), loaded(2, 1.15)}
	for i, runs := range [][2][]Run{{high, low}, {low, high}} {
		r := &Result{Scenario: *scenario(t, runs[0], runs[1])}
		c := NewComparison(r, &r.Scenario.Profiles[0], &r.Scenario.Profiles[1])
		if len(c.Better) != 1-i || len(c.Differs) != i || len(c.Worse) != 0 {
			t.Errorf("%d: better %q, differs %q, worse %q", i, c.Better, c.Differs, c.Worse)
		}
	}
}

// TestCompareInterrupted verifies that interrupted runs count in a mean only if there are no
// complete runs, and never in a difference.
func TestCompareInterrupted(t *testing.T) {
	s := scenario(t, []Run{run(1, 5, false), run(2, 1, true)}, []Run{run(1, 3, true)})
	if got := s.Profiles[0].Figures["victims"].Mean; got != 5 {
		t.Errorf("mean %v, want 5", got)
	}
	if got, want := s.Profiles[1].Figures["victims"], (Figure{Mean: 3}); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	s = scenario(t, []Run{run(1, 5, false)}, nil)
	if got := s.Profiles[1].Figures; len(got) != 0 {
		t.Errorf("figures without runs: %v", got)
	}
}

func TestMostFrequent(t *testing.T) {
	counts := map[string]int{"b": 2, "a": 2, "c": 5}
	if got, want := MostFrequent(counts), []string{"c", "a", "b"}; !cmp.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestCompareNoise verifies that rounding errors of sums are no difference.
func TestCompareNoise(t *testing.T) {
	third := 1.0 / 3
	base := []Run{{Seed: 1, Outcome: Outcome{LimitedCoreSeconds: 3e5 * third}}, {Seed: 2, Outcome: Outcome{LimitedCoreSeconds: 1e5}}}
	other := []Run{
		{Seed: 1, Outcome: Outcome{LimitedCoreSeconds: 3e5*third + 1e-10}},
		{Seed: 2, Outcome: Outcome{LimitedCoreSeconds: 1e5 + 1e-10}},
	}
	if got := scenario(t, base, other).Profiles[1].Figures["limitedCoreSeconds"].Difference; got.Equal != 2 || got.Interval.ExcludesZero {
		t.Errorf("%+v", got)
	}
}

// TestPairedDifference has the differences -2, 1 and 4: their mean is 1 and their standard deviation 3, t with 2 degrees of freedom
// is 4.302653, and 4.302653 x 3 / sqrt 3 = 7.452414.
func TestPairedDifference(t *testing.T) {
	got := PairedDifference([]float64{3, 3, 3}, []float64{1, 4, 7})
	near := cmpopts.EquateApprox(0, 1e-5)
	if want := (&Difference{Mean: 1, Interval: &Interval{Low: -6.452414, High: 8.452414}, Less: 1, More: 2}); !cmp.Equal(got, want, near) {
		t.Error(cmp.Diff(want, got, near))
	}
}

// TestCoverage verifies that 95 % of the intervals over ten seeds contain the true mean.
func TestCoverage(t *testing.T) {
	const experiments = 2000
	r, covered := rand.New(rand.NewPCG(7, 7)), 0
	for range experiments {
		after := make([]float64, 10)
		for k := range after {
			after[k] = 3 + 2*r.NormFloat64()
		}
		if i := PairedDifference(make([]float64, 10), after).Interval; i.Low <= 3 && 3 <= i.High {
			covered++
		}
	}
	if c := float64(covered) / experiments; c < 0.935 || c > 0.965 {
		t.Errorf("coverage %v", c)
	}
}
