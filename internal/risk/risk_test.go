package risk

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance }

func TestLimitRisk(t *testing.T) {
	for name, tc := range map[string]struct {
		resource Resource
		want     float64
	}{
		// request 4+1 = 5, limit 12+2 = 14, excess 9, allowed 8-5 = 3: 1 - 3/9
		"limits above the capacity": {Resource{Capacity: 8, Requests: 4, Limits: 12, PodRequest: 1, PodLimit: 2}, 2.0 / 3},
		// request 5, limit 7, excess 2, allowed 7-5 = 2: 1 - 2/2
		"limits within the capacity": {Resource{Capacity: 8, Requests: 4, Limits: 5, PodRequest: 1, PodLimit: 2}, 0},
		// request 5, limit 5, excess 0
		"guaranteed pods only": {Resource{Capacity: 8, Requests: 4, Limits: 4, PodRequest: 1, PodLimit: 1}, 0},
		// request min(10, 8) = 8, limit 20, excess 12, allowed 0
		"requests above the capacity": {Resource{Capacity: 8, Requests: 9, Limits: 18, PodRequest: 1, PodLimit: 2}, 1},
		// request 1, limit max(2, 8) = 8, excess 7, allowed 7: 0
		"an unbounded pod on the node": {Resource{Capacity: 8, Unbounded: true, PodRequest: 1, PodLimit: 2}, 0},
		// request 4, limit max(10+0, 8) = 10, excess 6, allowed 4: 1 - 4/6
		"an unbounded pending pod": {Resource{Capacity: 8, Requests: 4, Limits: 10, PodUnbounded: true}, 1.0 / 3},
		// a best-effort pod on an empty node: request 0, limit 8, excess 8, allowed 8
		"best effort on an empty node": {Resource{Capacity: 8, PodUnbounded: true}, 0},
		// request 0, limit 1, excess 1, allowed 0
		"no capacity":              {Resource{PodRequest: 1, PodLimit: 1}, 1},
		"no capacity, nothing set": {Resource{PodUnbounded: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.resource.LimitRisk(); !near(got, tc.want, 1e-12) {
				t.Errorf("%+v: limit risk %v, want %v", tc.resource, got, tc.want)
			}
		})
	}
}

func TestLoadRisk(t *testing.T) {
	const window = 5
	for name, tc := range map[string]struct {
		resource Resource
		load     Load
		window   float64
		want     float64
	}{
		// mean 0.5, variance 0.05: concentration 0.25/0.05 - 1 = 4, Beta(2, 2).
		// F(x) = 3x^2 - 2x^3: F(0.25) = 0.15625, bound 1: 1 - 0.15625
		"Beta(2, 2)": {Resource{Capacity: 8, Machine: 8, Requests: 2, Limits: 8}, Load{0.5, math.Sqrt(0.01)}, window, 0.84375},
		// the same with limits of 4 in 8: F(0.5) = 0.5, 1 - 0.15625/0.5
		"limits bound the load": {Resource{Capacity: 8, Machine: 8, Requests: 2, Limits: 4}, Load{0.5, math.Sqrt(0.01)}, window, 0.6875},
		// an unbounded pod: bound 1
		"an unbounded pod": {
			Resource{Capacity: 8, Machine: 8, Requests: 2, Limits: 4, Unbounded: true}, Load{0.5, math.Sqrt(0.01)}, window, 0.84375,
		},
		// mean 0.5, variance 1/12: concentration 0.25x12 - 1 = 2, Beta(1, 1), F(x) = x
		"uniform": {Resource{Capacity: 10, Machine: 10, Requests: 3, Limits: 20}, Load{0.5, math.Sqrt(1.0 / 12)}, 1, 0.7},
		// 0.4 of a machine of 10 is 0.5 of the allocatable 8; without deviation the step at 0.5 is above the
		// threshold 3.9/8 = 0.4875
		"allocatable less than the machine": {Resource{Capacity: 8, Machine: 10, Requests: 3.9, Limits: 16}, Load{0.4, 0}, window, 1},
		"no deviation, below the requests":  {Resource{Capacity: 8, Machine: 8, Requests: 5, Limits: 8}, Load{0.5, 0}, window, 0},
		"no deviation, above the requests":  {Resource{Capacity: 8, Machine: 8, Requests: 3, Limits: 8}, Load{0.5, 0}, window, 1},
		"certainly above the limits":        {Resource{Capacity: 8, Machine: 8, Requests: 1, Limits: 2}, Load{0.5, 0}, window, 1},
		// the variance is limited to 0.3 x 0.7: load 0 with probability 0.7, 1 with 0.3
		"all or nothing":       {Resource{Capacity: 8, Machine: 8, Requests: 4, Limits: 8}, Load{0.3, 1}, window, 0.3},
		"no load, no requests": {Resource{Capacity: 8, Machine: 8, PodUnbounded: true}, Load{0, 0}, window, 0},
		"busy, no requests":    {Resource{Capacity: 8, Machine: 8, PodUnbounded: true, Idle: idleMemory}, Load{0.4, 0}, window, 1},
		"full, no requests":    {Resource{Capacity: 8, Machine: 8, PodUnbounded: true}, Load{1, 0}, window, 1},
		"idle, no requests":    {Resource{Capacity: 8, Machine: 8, PodUnbounded: true, Idle: idleCPU}, Load{0.03, 0}, window, 0},
		"idle, a small request": {
			Resource{Capacity: 8, Machine: 8, PodRequest: 0.1, PodLimit: 0.2, Idle: idleCPU}, Load{0.03, 0}, window, 0,
		},
		"guaranteed pods":        {Resource{Capacity: 8, Machine: 8, Requests: 4, Limits: 4}, Load{0.5, 0.1}, window, 0},
		"no capacity, some load": {Resource{Machine: 8}, Load{0.5, 0.1}, window, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.resource.LoadRisk(tc.load, tc.window); !near(got, tc.want, 1e-9) {
				t.Errorf("%+v under %+v: load risk %v, want %v", tc.resource, tc.load, got, tc.want)
			}
		})
	}
}

func TestScore(t *testing.T) {
	for risk, want := range map[float64]int64{0: 100, 1: 0, 0.5: 50, 1.0 / 3: 67, 0.995: 1, -1: 100, 7: 0, math.NaN(): 0, math.Inf(1): 0} {
		if got := Score(risk); got != want {
			t.Errorf("Score(%v) = %d, want %d", risk, got, want)
		}
	}
}

// drawResource draws a valid resource: limits are at least the requests, and the machine is at least the
// capacity.
func drawResource(t *rapid.T) Resource {
	capacity := rapid.Float64Range(1, 1e13).Draw(t, "capacity")
	fraction := func(label string, most float64) float64 {
		return rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, most)).Draw(t, label) * capacity
	}
	requests, podRequest := fraction("requests", 1), fraction("podRequest", 1)
	return Resource{
		Capacity: capacity,
		Machine:  capacity * rapid.Float64Range(1, 1.5).Draw(t, "machine"),
		Requests: requests, Limits: requests + fraction("excess", 3),
		Unbounded:  rapid.Bool().Draw(t, "unbounded"),
		PodRequest: podRequest, PodLimit: podRequest + fraction("podExcess", 3),
		PodUnbounded: rapid.Bool().Draw(t, "podUnbounded"),
		Idle:         idleCPU,
	}
}

func drawLoad(t *rapid.T) Load {
	return Load{
		Mean:   rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1), rapid.Just(1.0)).Draw(t, "mean"),
		StdDev: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 1e-6), rapid.Float64Range(0, 1)).Draw(t, "stdDev"),
	}
}

func TestRisksAreProbabilities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, load := drawResource(t), drawLoad(t)
		window := rapid.Float64Range(1, 100).Draw(t, "window")
		for name, got := range map[string]float64{"limit": r.LimitRisk(), "load": r.LoadRisk(load, window)} {
			if !(got >= 0 && got <= 1) {
				t.Fatalf("%s risk %v of %+v under %+v", name, got, r, load)
			}
		}
	})
}

// Increasing the limits on a node never decreases the limit risk.
func TestLimitRiskIncreasesWithLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawResource(t)
		more := r
		more.Limits += rapid.Float64Range(0, 2).Draw(t, "more") * r.Capacity
		if a, b := r.LimitRisk(), more.LimitRisk(); a > b+1e-9 {
			t.Fatalf("%+v: %v, with limits of %v: %v", r, a, more.Limits, b)
		}
	})
}

// Increasing the threshold never increases the probability of overuse.
func TestOveruseDecreasesWithThreshold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := fitBeta(drawLoad(t), rapid.Float64Range(1, 20).Draw(t, "window"))
		low := rapid.Float64Range(0, 1).Draw(t, "low")
		high := rapid.Float64Range(low, 1).Draw(t, "high")
		bound := rapid.Float64Range(high, 1).Draw(t, "bound")
		if a, b := d.overuse(low, bound), d.overuse(high, bound); a < b-1e-9 {
			t.Fatalf("%+v: overuse of %v is %v, of %v it is %v", d, low, a, high, b)
		}
	})
}

// An idle, empty node never scores less than a busy node, for any pod.
func TestIdleEmptyNodeIsNeverWorse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		busy := drawResource(t)
		busy.Machine = busy.Capacity
		busyLoad := Load{rapid.Float64Range(0.2, 1).Draw(t, "mean"), rapid.Float64Range(0, 0.5).Draw(t, "stdDev")}
		idle := busy
		idle.Requests, idle.Limits, idle.Unbounded = 0, 0, false
		idleLoad := Load{rapid.Float64Range(0, 0.02).Draw(t, "idleMean"), rapid.Float64Range(0, 0.004).Draw(t, "idleStdDev")}
		weight := rapid.Float64Range(0, 1).Draw(t, "weight")
		score := func(r Resource, l Load) int64 {
			return Score(Model{5, weight}.Combine(r.LimitRisk(), r.LoadRisk(l, 5)))
		}
		if a, b := score(idle, idleLoad), score(busy, busyLoad); a < b {
			t.Fatalf("idle %+v scores %d, busy %+v scores %d", idle, a, busy, b)
		}
	})
}

// A node that is busy with best-effort pods has a high load risk.
func TestLoadRiskOfBestEffortPods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := Resource{Capacity: 8, Machine: 8, Unbounded: true, PodUnbounded: true, Idle: idleMemory}
		load := Load{rapid.Float64Range(0.5, 1).Draw(t, "mean"), rapid.Float64Range(0, 0.1).Draw(t, "stdDev")}
		if got := r.LoadRisk(load, 5); got < 0.75 {
			t.Fatalf("load risk %v under %+v", got, load)
		}
	})
}

// The oracle is the beta distribution of gonum, and the integral of its density by the trapezoid rule
// where the density is smooth.
func TestFitAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mean := rapid.Float64Range(0.05, 0.95).Draw(t, "mean")
		concentration := rapid.Float64Range(2.5, 200).Draw(t, "concentration")
		stdDev := math.Sqrt(mean * (1 - mean) / (concentration + 1))
		d := fitBeta(Load{mean, stdDev}, 1)
		oracle := distuv.Beta{Alpha: mean * concentration, Beta: (1 - mean) * concentration}
		if !near(oracle.Mean(), mean, 1e-9) || !near(oracle.StdDev(), stdDev, 1e-9) {
			t.Fatalf("%+v has other moments", oracle)
		}
		x := rapid.Float64Range(0, 1).Draw(t, "x")
		if got, want := d.CDF(x), oracle.CDF(x); !near(got, want, 1e-9) {
			t.Fatalf("F(%v) = %v, want %v", x, got, want)
		}
		if oracle.Alpha < 1.5 || oracle.Beta < 1.5 {
			return
		}
		const steps = 4000
		integral := 0.0
		for i := range steps {
			a, b := x*float64(i)/steps, x*float64(i+1)/steps
			integral += (oracle.Prob(a) + oracle.Prob(b)) / 2 * (b - a)
		}
		if !near(d.CDF(x), integral, 2e-3) {
			t.Fatalf("F(%v) = %v, the density integrates to %v", x, d.CDF(x), integral)
		}
	})
}

// Loads that vary little have nearly a normal distribution: the probability of values up to the mean plus z deviations does not
// depend on the mean.
func TestSmallDeviations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Both parameters are at least 2,000, where skewness changes a probability by less than 0.005.
		concentration := math.Pow(10, rapid.Float64Range(4, 9.9).Draw(t, "exponent"))
		lowest := 2000 / concentration
		mean := rapid.Float64Range(lowest, 1-lowest).Draw(t, "mean")
		stdDev := math.Sqrt(mean * (1 - mean) / (concentration + 1))
		d := fitBeta(Load{mean, stdDev}, 1)
		for z, want := range map[float64]float64{-5: 0, -2: 0.0228, -1: 0.1587, 0: 0.5, 1: 0.8413, 2: 0.9772, 5: 1} {
			if got := d.CDF(mean + z*stdDev); !near(got, want, 0.005) || got < 0 || got > 1 {
				t.Fatalf("mean %v, deviation %v: F(mean %+g deviations) = %v, want %v", mean, stdDev, z, got, want)
			}
		}
	})
}

// The limit cases continue the family of distributions without a jump.
func TestFitIsContinuous(t *testing.T) {
	for _, mean := range []float64{0.1, 0.5, 0.9} {
		nearlyStep := fitBeta(Load{mean, 1e-4}, 1)
		if nearlyStep.shape != beta || nearlyStep.CDF(mean-0.01) > 1e-9 || nearlyStep.CDF(mean+0.01) < 1-1e-9 {
			t.Errorf("mean %v: a deviation of 1e-4 is not close to a step: %+v", mean, nearlyStep)
		}
		most := math.Sqrt(mean * (1 - mean))
		nearlyTwo, two := fitBeta(Load{mean, most * (1 - 1e-6)}, 1), fitBeta(Load{mean, most}, 1)
		if nearlyTwo.shape != beta || two.shape != twoPoint || !near(nearlyTwo.CDF(0.5), two.CDF(0.5), 1e-3) {
			t.Errorf("mean %v: F(0.5) jumps from %v to %v", mean, nearlyTwo.CDF(0.5), two.CDF(0.5))
		}
	}
}

func FuzzScoreIsInRange(f *testing.F) {
	f.Add(8.0, 8.0, 4.0, 12.0, 1.0, 2.0, 0.5, 0.1, 5.0, 0.5)
	f.Add(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.NaN(), math.Inf(1), -1.0, 0.0)
	f.Add(1e-300, 1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 1.0)
	f.Fuzz(func(t *testing.T, capacity, machine, requests, limits, podRequest, podLimit, mean, stdDev, window, weight float64) {
		r := Resource{Capacity: capacity, Machine: machine, Requests: requests, Limits: limits, PodRequest: podRequest, PodLimit: podLimit}
		if got := Score(Model{window, weight}.Combine(r.LimitRisk(), r.LoadRisk(Load{mean, stdDev}, window))); got < 0 || got > 100 {
			t.Errorf("score %d", got)
		}
	})
}

func Example() {
	// Eight cores. The pods on the node request four and may use twelve; the
	// pending pod requests one and may use two. A load of half the machine,
	// varying by a tenth, is over the four requested cores about half the time.
	r := Resource{Capacity: 8, Machine: 8, Requests: 4, Limits: 12, PodRequest: 1, PodLimit: 2}
	limit, load := r.LimitRisk(), r.LoadRisk(Load{Mean: 0.5, StdDev: 0.1}, 5)
	fmt.Printf(
		"limit risk %.3f, load risk %.3f, score %d\n",
		limit,
		load,
		Score(Model{DefaultWindow, DefaultLimitWeight}.Combine(limit, load)),
	)
	// Output: limit risk 0.667, load risk 0.500, score 42
}
