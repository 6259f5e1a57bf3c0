package bench

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/profiles"
)

// TestThroughputRatios guards the ratios of BenchmarkScheduler, over a small cluster. The bounds are far below what
// is measured there: a score that fits distributions, sums pods or allocates memory for each node fails, the
// load of the machine does not.
func TestThroughputRatios(t *testing.T) {
	c := newComparison(t, configurationNames(), 500, 10, 1)
	c.run(t, 15, 2, 6)
	expect := func(name, other string) {
		const lowest = 0.5
		ratio := c.ratio(name, other, byCPU)
		t.Logf("%s relative to %s: %v", name, other, ratio)
		if ratio.high < lowest {
			t.Errorf("%s relative to %s: %v, want at least %.1f", name, other, ratio, lowest)
		}
	}
	expect(withAll, withNothing)
	for _, name := range profiles.Names {
		if name != byDefault {
			expect(name, byDefault)
		}
	}
}

// TestBatchRatio guards the ratio of BenchmarkBatches: without batches the profile would be as fast as the default one.
func TestBatchRatio(t *testing.T) {
	c := newComparison(t, []string{byDefault, "batch"}, 1000, 10, 50)
	c.run(t, 15, 10, 20)
	ratio := c.ratio("batch", byDefault, byCPU)
	t.Logf("batch relative to default: %v", ratio)
	if ratio.high < 1.3 {
		t.Errorf("batch relative to default: %v, want at least 1.3", ratio)
	}
}

func TestEstimate(t *testing.T) {
	// With 100 values the interval is from the 41st to the 60th: 100/2 - 0.98 x 10 = 40.2.
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(100 - i)
	}
	if got, want := newEstimate(values), (estimate{41, 50.5, 60}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	// With few values it is that of all: 3/2 - 0.98 x 1.73 < 0.
	if got, want := newEstimate([]float64{3, 1, 2}), (estimate{1, 2, 3}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}
