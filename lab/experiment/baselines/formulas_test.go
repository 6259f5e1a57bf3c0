package baselines

import (
	"math"
	"testing"
)

func TestTargetLoadPacking(t *testing.T) {
	for _, tc := range []struct {
		percent float64
		want    int64
	}{
		{0, 40},   // 60 x 0 / 40 + 40
		{20, 70},  // 60 x 20 / 40 + 40
		{40, 100}, // 60 x 40 / 40 + 40
		{41, 39},  // 40 x 59 / 60 = 39.33
		{70, 20},  // 40 x 30 / 60
		{100, 0},
		{130, 0},
	} {
		if got := targetLoadPacking(tc.percent); got != tc.want {
			t.Errorf("%v %%: score %d, want %d", tc.percent, got, tc.want)
		}
	}
	for _, tc := range [][3]int64{{500, 800, 800}, {500, 0, 750}, {333, 0, 500}, {0, 0, 1000}} { // 1.5 x 333 = 499.5
		if got := predictMillicores(tc[0], tc[1]); got != tc[2] {
			t.Errorf("request %d, limit %d: %d millicores, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}

func TestLoadVariation(t *testing.T) {
	for _, tc := range []struct{ mean, request, deviation, want float64 }{
		{0.5, 0.1, 0.2, 60}, // 1 - (0.6 + 0.2)/2
		{0.9, 0.3, 0.1, 45}, // 1 - (1 + 0.1)/2
		{0, 0, 0, 100},
	} {
		if got := loadVariation(tc.mean, tc.request, tc.deviation); math.Abs(got-tc.want) > 1e-9 {
			t.Errorf("%+v: %v", tc, got)
		}
	}
}

func TestLowRisk(t *testing.T) {
	for name, tc := range map[string]struct {
		c               commitment
		mean, deviation float64
		measured        bool
		want            float64
	}{
		// Limits of 1.5 of the capacity, 0.5 of them above it: 0.5/(1.5-0.5) = 0.5, weight 0.5.
		"limits only": {commitment{0.5, 1.5, 0.4, 1.2}, 0, 0, false, 0.25},
		// Requests count up to the capacity: 0.5/(1.5-1) = 1.
		"requests above the capacity": {commitment{1.2, 1.5, 0.4, 1.2}, 0, 0, false, 0.5},
		"limits within the capacity":  {commitment{0.5, 0.9, 0.4, 0.8}, 0, 0, false, 0},
		// A constant load of 0.6 is above the requests of 0.4 with certainty: 0.5 x 0.5 + 0.5 x 1.
		"constant load above requests": {commitment{0.5, 1.5, 0.4, 1.2}, 0.6, 0, true, 0.75},
		"constant load below requests": {commitment{0.5, 1.5, 0.7, 1.2}, 0.6, 0, true, 0.25},
		// The deviation of the uniform distribution is 1/sqrt(12), over sqrt(5) for the smoothing: the load is above
		// 0.4 with a probability of 0.6.
		"uniform load": {commitment{0.4, 1, 0.4, 1}, 0.5, 1 / math.Sqrt(60), true, 0.3},
		// It is at most 0.8, the limits, so that 0.4 of 0.8 is below the requests.
		"uniform load within limits": {commitment{0.4, 0.8, 0.4, 0.8}, 0.5, 1 / math.Sqrt(60), true, 0.25},
		// Nothing is requested and limited: a probability of 1.
		"empty node": {commitment{0.1, 0.1, 0, 0}, 0.3, 0.1, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lowRisk(tc.c, tc.mean, tc.deviation, tc.measured); math.Abs(got-tc.want) > 1e-9 {
				t.Errorf("risk %v, want %v", got, tc.want)
			}
		})
	}
}

func TestKoordinator(t *testing.T) {
	for _, tc := range [][4]int64{
		{1000, 0, 85, 850},
		{1000, 2000, 85, 1700}, // of the limit
		{1000, 1000, 70, 700},
		{1, 1, 120, 1}, // at most the limit
		{0, 0, 85, 250},
	} {
		if got := koordEstimate(tc[0], tc[1], tc[2], 250); got != tc[3] {
			t.Errorf("request %d, limit %d, %d %%: %d, want %d", tc[0], tc[1], tc[2], got, tc[3])
		}
	}
	for name, tc := range map[string]struct{ usedCPU, cpu, usedMemory, memory, want int64 }{
		"both":             {400, 1000, 30, 100, 65},
		"rounded down":     {333, 1000, 0, 3, 83}, // (66 + 100) / 2
		"CPU at 65 %":      {654, 1000, 0, 100, 67},
		"CPU above 65 %":   {655, 1000, 0, 100, 0}, // 65.5 is rounded to 66
		"memory at 95 %":   {0, 1000, 95, 100, 52},
		"memory above":     {0, 1000, 96, 100, 0},
		"without capacity": {0, 0, 0, 100, 50},
	} {
		if got := koordScore(tc.usedCPU, tc.cpu, tc.usedMemory, tc.memory); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestCrane(t *testing.T) {
	for name, tc := range map[string]struct {
		cpu, memory craneUsage
		hot, want   int64
	}{
		"idle": {want: 100},
		// CPU 0.2 x 0.7 + 0.3 x 0.6 + 0.5 x 0.4 = 0.52, memory 1: 1.52/2
		"peaks of CPU": {cpu: craneUsage{0.3, 0.4, 0.6}, want: 76},
		"hot":          {cpu: craneUsage{0.3, 0.4, 0.6}, hot: 3, want: 46},
		"very hot":     {hot: 11, want: 0},
		// CPU 0.2 x 0.35 + 0.3 x 0.25 + 0.5 x 0 = 0.145, memory 1: 57.25
		"at the thresholds":       {cpu: craneUsage{0.65, 0.75, 1}, want: 57},
		"average above 0.65":      {cpu: craneUsage{0.66, 0.7, 0.7}, want: 0},
		"hour of memory above it": {memory: craneUsage{0.5, 0.76, 0.8}, want: 0},
	} {
		if got := crane(tc.cpu, tc.memory, tc.hot); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
	for _, tc := range [][3]int64{{4, 1, 0}, {5, 1, 1}, {11, 5, 4}} {
		if got := craneHotValue(tc[0], tc[1]); got != tc[2] {
			t.Errorf("%d and %d pods: hot value %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}
