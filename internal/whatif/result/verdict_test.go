package result

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
)

// figure returns the definition of a figure.
func figure(t *testing.T, name string) Definition {
	t.Helper()
	definition, ok := FigureByName(name)
	if !ok {
		t.Fatalf("no figure %q", name)
	}
	return definition
}

func TestAnswers(t *testing.T) {
	interval := func(mean, low, high float64) *Difference {
		return &Difference{Mean: mean, Less: 1, More: 1, Interval: &Interval{Low: low, High: high, ExcludesZero: low > 0 || high < 0}}
	}
	for name, tc := range map[string]struct {
		figure string
		d      *Difference
		base   float64
		want   Answer
	}{
		"less overload":         {"overloadMinutes", interval(-3, -4, -2), 10, Better},
		"more overload":         {"overloadMinutes", interval(3, 2, 4), 10, Worse},
		"unclear":               {"overloadMinutes", interval(3, -1, 4), 10, CannotTell},
		"more nodes":            {"nodesUsed", interval(3, 2, 4), 10, Different},
		"one seed":              {"victims", &Difference{Mean: 3, More: 1}, 10, CannotTell},
		"the same":              {"victims", &Difference{Equal: 4}, 10, Equal},
		"sums in another order": {"limitedCoreSeconds", interval(1e-10, 1e-11, 2e-10), 341723, Equal},
		"no pair":               {"victims", nil, 10, CannotTell},
		"base of 0":             {"victims", interval(3, 2, 4), 0, Worse},
	} {
		if got := AnswerOf(figure(t, tc.figure), tc.d, tc.base); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestIntervalEndsAreNotZero checks that the end of an interval that decides whether a difference is
// clear is not rounded to 0.
func TestIntervalEndsAreNotZero(t *testing.T) {
	d := &Difference{Mean: -0.06, Interval: &Interval{Low: -0.1, High: -0.0004, ExcludesZero: true}}
	if got, want := intervalText(d, differenceDecimals(d)), "["+format.Minus+"0.1000, "+format.Minus+"0.0004]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFigureLabel(t *testing.T) {
	for name, want := range map[string]string{
		"overloadMinutes": "overload, node minutes", "cpuOverloadMinutes": "CPU overload, node minutes",
		"victims": "pods killed by memory overruns",
	} {
		definition := figure(t, name)
		if got := definition.Title(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestConstantDifference checks that a difference that does not depend on the seed has no interval.
func TestConstantDifference(t *testing.T) {
	d := PairedDifference([]float64{0.3, 0.7, 1.1}, []float64{0.2, 0.6, 1.0}) // -0.1 with each seed, but for rounding
	if got, want := differenceText(d, 0), " "+format.Minus+"0.100, in all seeds"; got != want || !d.Constant() {
		t.Errorf("%q, want %q", got, want)
	}
}
