package report

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// figure returns the definition of a figure.
func figure(t *testing.T, name string) result.Definition {
	t.Helper()
	definition, ok := result.FigureByName(name)
	if !ok {
		t.Fatalf("no figure %q", name)
	}
	return definition
}

func TestAssess(t *testing.T) {
	interval := func(mean, low, high float64) *result.Difference {
		return &result.Difference{
			Mean:     mean,
			Less:     1,
			More:     1,
			Interval: &result.Interval{Low: low, High: high, ExcludesZero: low > 0 || high < 0},
		}
	}
	for name, tc := range map[string]struct {
		figure string
		d      *result.Difference
		base   float64
		want   verdict
	}{
		"less overload":         {"overloadMinutes", interval(-3, -4, -2), 10, better},
		"more overload":         {"overloadMinutes", interval(3, 2, 4), 10, worse},
		"unclear":               {"overloadMinutes", interval(3, -1, 4), 10, unclear},
		"more nodes":            {"nodesUsed", interval(3, 2, 4), 10, different},
		"one seed":              {"victims", &result.Difference{Mean: 3, More: 1}, 10, singlePair},
		"the same":              {"victims", &result.Difference{Equal: 4}, 10, equal},
		"sums in another order": {"limitedCoreSeconds", interval(1e-10, 1e-11, 2e-10), 341723, equal},
		"no pair":               {"victims", nil, 10, noPair},
		"base of 0":             {"victims", interval(3, 2, 4), 0, worse},
	} {
		if got := assess(figure(t, tc.figure), tc.d, tc.base); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// TestIntervalEndsAreNotZero checks that the end of an interval that decides whether a difference is
// clear is not rounded to 0.
func TestIntervalEndsAreNotZero(t *testing.T) {
	d := &result.Difference{Mean: -0.06, Interval: &result.Interval{Low: -0.1, High: -0.0004, ExcludesZero: true}}
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

func TestUsageShape(t *testing.T) {
	for usage, want := range map[string]string{
		"cpu=bursts:mean=0.4;memory=bursts:mean=0.5": "bursts",
		"cpu=bursts:mean=0.4;memory=beta":            "cpu bursts, memory beta",
		"beta:mean=0.4":                              "beta:mean=0.4",
		"":                                           "",
	} {
		if got := usageShape(usage); got != want {
			t.Errorf("%q: %q, want %q", usage, got, want)
		}
	}
}
