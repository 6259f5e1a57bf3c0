package whatif

import (
	"math"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

func TestNumber(t *testing.T) {
	for _, tc := range []struct {
		value    float64
		decimals int
		want     string
		signed   string
	}{
		{0, 0, "0", "0"},
		{math.Copysign(0, -1), 2, "0.00", "0.00"},
		{-0.0001, 2, "0.00", "0.00"},
		{0.0001, 2, "0.00", "0.00"},
		{-0.5, 1, minus + "0.5", minus + "0.5"},
		{999, 0, "999", "+999"},
		{1000, 0, "1" + thin + "000", "+1" + thin + "000"},
		{-1234567.89, 1, minus + "1" + thin + "234" + thin + "567.9", minus + "1" + thin + "234" + thin + "567.9"},
		{math.NaN(), 2, "–", "–"},
		{math.Inf(-1), 2, "–", "–"},
	} {
		if got := number(tc.value, tc.decimals); got != tc.want {
			t.Errorf("number(%v, %d) = %q, want %q", tc.value, tc.decimals, got, tc.want)
		}
		if got := signed(tc.value, tc.decimals); got != tc.signed {
			t.Errorf("signed(%v, %d) = %q, want %q", tc.value, tc.decimals, got, tc.signed)
		}
	}
}

func TestJudge(t *testing.T) {
	interval := func(mean, low, high float64) *result.Difference {
		return &result.Difference{Mean: mean, Less: 1, More: 1, Interval: &result.Interval{Low: low, High: high, ExcludesZero: low > 0 || high < 0}}
	}
	for name, tc := range map[string]struct {
		figure string
		d      *result.Difference
		base   float64
		want   judgement
	}{
		"less overload":            {"overloadMinutes", interval(-3, -4, -2), 10, better},
		"more overload":            {"overloadMinutes", interval(3, 2, 4), 10, worse},
		"chance":                   {"overloadMinutes", interval(3, -1, 4), 10, unclear},
		"more nodes":               {"nodesUsed", interval(3, 2, 4), 10, different},
		"one seed":                 {"victims", &result.Difference{Mean: 3, More: 1}, 10, unsure},
		"the same":                 {"victims", &result.Difference{Equal: 4}, 10, equal},
		"sums in another order":    {"limitedCoreSeconds", interval(1e-10, 1e-11, 2e-10), 341723, equal},
		"nothing to compare with":  {"victims", nil, 10, unknown},
		"more of what was nothing": {"victims", interval(3, 2, 4), 0, worse},
	} {
		figure, _ := result.FigureByName(tc.figure)
		if got := judge(figure, tc.d, tc.base); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// An end of an interval that decides what is clear is not shown as zero.
func TestEndsOfIntervals(t *testing.T) {
	d := &result.Difference{Mean: -0.06, Interval: &result.Interval{Low: -0.1, High: -0.0004, ExcludesZero: true}}
	if got, want := intervalText(d, differenceDecimals(d)), "["+minus+"0.1000, "+minus+"0.0004]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFigureLabels(t *testing.T) {
	for name, want := range map[string]string{
		"overloadMinutes": "overload, node minutes", "cpuOverloadMinutes": "CPU overload, node minutes", "victims": "pods killed by memory overruns",
	} {
		if got := FigureLabel(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestShapeOf(t *testing.T) {
	for usage, want := range map[string]string{
		"cpu=bursts:mean=0.4;memory=bursts:mean=0.5": "bursts",
		"cpu=bursts:mean=0.4;memory=beta":            "cpu bursts, memory beta",
		"beta:mean=0.4":                              "beta:mean=0.4",
		"":                                           "",
	} {
		if got := shapeOf(usage); got != want {
			t.Errorf("%q: %q, want %q", usage, got, want)
		}
	}
}
