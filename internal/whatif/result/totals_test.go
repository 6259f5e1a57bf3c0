package result

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTotals(t *testing.T) {
	var r Totals
	node := Capacity{CPU: 4000, Memory: 8 * gib}
	// A step of a minute: node 0 has limits of 8000 of 4000 and lacks 500, node 1 has limits of
	// 2000 and two victims, node 2 is empty.
	r.AddStep(0, node, 3, 60, Step{CPULimits: 8000, MemoryLimits: 8 * gib, ThrottledByNode: 500, ThrottledByLimit: 100})
	r.AddStep(1, node, 2, 60, Step{CPULimits: 2000, MemoryLimits: 16 * gib, Victims: 2})
	r.AddStep(2, node, 0, 60, Step{})
	r.EndStep(60)
	// A step of 30 s: node 0 has limits of 4000, lacks CPU and has a victim; the other nodes are empty.
	r.AddStep(0, node, 1, 30, Step{CPULimits: 4000, MemoryLimits: 4 * gib, ThrottledByNode: 1000, Victims: 1})
	r.EndStep(30)
	for _, seconds := range []int64{0, 0, 10, 30} {
		r.AddScheduled(seconds)
	}
	r.AddUnschedulable(60)
	r.AddEviction()
	want := Outcome{
		// node 0: (2 x 60 + 1 x 30) / 90 = 5/3, node 1: 0.5; the mean 13/12, the median too,
		// p95 0.5 + 0.95 x 7/6
		CPULimitRatio:     Distribution{Mean: 13.0 / 12, P50: 13.0 / 12, P95: 0.5 + 0.95*7/6, Max: 5.0 / 3},
		CPULimitRatioPeak: 2,
		// node 0: (1 x 60 + 0.5 x 30) / 90 = 5/6, node 1: 2
		MemoryLimitRatio:     Distribution{Mean: 17.0 / 12, P50: 17.0 / 12, P95: 5.0/6 + 0.95*7/6, Max: 2},
		MemoryLimitRatioPeak: 2,
		// 1 + 1 + 0.5; of CPU 1 + 0.5, of memory 1 + 0.5
		OverloadMinutes: 2.5, CPUOverloadMinutes: 1.5, MemoryOverloadMinutes: 1.5,
		// 0.5 x 60 + 1 x 30, and 0.1 x 60
		ThrottledCoreSeconds: 60, LimitedCoreSeconds: 6,
		MemoryOverruns: 2, Victims: 3, Unschedulable: 1,
		// (2 x 60 + 1 x 30) / 90
		NodesUsed: 5.0 / 3, NodesUsedPeak: 2,
		// 0, 0, 10, 30, 60: p95 is at 3.8, 30 + 0.8 x 30
		PendingSeconds: Distribution{Mean: 20, P50: 10, P95: 54, Max: 60},
		Waits:          Waits{0: 2, 10: 1, 30: 1, 60: 1},
		Churn:          1,
	}
	if diff := cmp.Diff(want, r.Result(), cmp.Comparer(near)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, r.Result(), cmp.Comparer(near)); diff != "" {
		t.Errorf("second call: %s", diff)
	}
	if diff := cmp.Diff(Outcome{}, new(Totals).Result()); diff != "" {
		t.Errorf("empty totals: %s", diff)
	}
}

// TestSaturation has a minute in which two nodes of 4 cores have demands of 3.8 cores, 95 %, and a little more.
func TestSaturation(t *testing.T) {
	node := Capacity{CPU: 4000, Memory: 8 * gib}
	for fraction, want := range map[float64]float64{0: 1, 0.5: 2, 1: 0} {
		totals := Totals{Saturation: fraction}
		for i, demand := range []float64{3800, 3801} {
			totals.AddStep(i, node, 1, 60, Step{CPUDemand: demand})
		}
		if got := totals.Result().CPUSaturationMinutes; got != want {
			t.Errorf("above %g of the CPU: %g node minutes, want %g", fraction, got, want)
		}
	}
}

func TestQuantile(t *testing.T) {
	values := []float64{1, 2, 4, 8}
	// at 3p: 0.5 is at 1.5, between 2 and 4
	for p, want := range map[float64]float64{0: 1, 0.5: 3, 1: 8, 1.0 / 3: 2, 0.9: 4 + 0.7*4} {
		if got := quantile(values, p); !near(got, want) {
			t.Errorf("quantile %v is %v, want %v", p, got, want)
		}
	}
}
