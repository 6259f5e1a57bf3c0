package generate

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// At returns the usage of a pod at a step, alone.
func (m *usageModel) At(pod, group uint64, step int64) (cpu, memory float64) {
	c := m.newUsage(pod, group, 1, 1)
	return c.At(0, recording.Step*step)
}

// model returns the model of a valid text.
func model(t testing.TB, text string, seed uint64) *usageModel {
	t.Helper()
	s, err := ParseUsage(text)
	must.Succeed(t, err)
	m, err := newUsageModel(s, seed)
	must.Succeed(t, err)
	return m
}

// usageSample returns the CPU usage of many pods, each in its own group, at steps 137 apart.
func usageSample(m *usageModel, pods, steps int) []float64 {
	values := make([]float64, 0, pods*steps)
	for pod := range pods {
		c := m.newUsage(uint64(pod), uint64(pod), 1, 1)
		for i := range steps {
			cpu, _ := c.At(0, recording.Step*(int64(i)*137))
			values = append(values, cpu)
		}
	}
	return values
}

func TestMeanAndDeviation(t *testing.T) {
	for text, want := range map[string]struct{ mean, deviation float64 }{
		"constant:mean=0.7":    {0.7, 0},
		"beta:mean=0.4,cv=0.5": {0.4, 0.2},
		// the variance of the uniform distribution over [0, 1] is 1/12
		"beta:mean=0.5,cv=0.57735026919,max=1":                       {0.5, math.Sqrt(1.0 / 12)},
		"beta:mean=0.4,cv=0.5,between=1":                             {0.4, 0.2},
		"beta:mean=0.4,cv=0.5,between=0,hold=100":                    {0.4, 0.2},
		"beta:mean=0.4,cv=0":                                         {0.4, 0},
		"beta:mean=0.4,cv=0.5,workload=0.6":                          {0.4, 0.2},
		"beta:mean=0.4,cv=0.5,workload=0.6,between=0.2,together=0.1": {0.4, 0.2},
		"diurnal:mean=0.5,cv=0.5,phases=0,workload-phases=1":         {0.5, 0.25},
		"bursts:mean=0.3,cv=0.8":                                     {0.3, 0.24},
		"diurnal:mean=0.5,cv=0.5,phases=1":                           {0.5, 0.25},
		"diurnal:mean=0.5,cv=0.36,phases=1":                          {0.5, 0.18},
	} {
		t.Run(text, func(t *testing.T) {
			values := usageSample(model(t, text, 1), 20_000, 10)
			mean, deviation := stat.MeanStdDev(values, nil)
			if math.Abs(mean-want.mean) > 0.015*want.mean || math.Abs(deviation-want.deviation) > 0.04*want.deviation+1e-9 {
				t.Errorf("mean %v, deviation %v, want %+v", mean, deviation, want)
			}
		})
	}
}

// TestQuantiles compares quantiles with those of gonum's beta distribution.
func TestQuantiles(t *testing.T) {
	s := UsageShape{Kind: Beta, Mean: 0.4, CV: 0.5, Max: 2, Hold: 1}
	// mean 0.2 and deviation 0.1 on [0, 1]: concentration 0.16/0.01 - 1 = 15
	beta := distuv.Beta{Alpha: 3, Beta: 12}
	table, err := s.quantiles()
	must.Succeed(t, err)
	c := usageCurve{table: table}
	for z := -4.0; z <= 3.5; z += 0.013 {
		p := distuv.UnitNormal.CDF(z)
		if got, want := c.quantile(z), 2*beta.Quantile(p); math.Abs(got-want) > 1e-3*want {
			t.Errorf("quantile of %v is %v, want %v", p, got, want)
		}
	}
}

// correlation returns the correlation of the CPU usage of pods 1 and 2 over a number of steps from a step on.
func correlation(m *usageModel, group1, group2 uint64, from, steps, every int64) float64 {
	a, b := m.newUsage(1, group1, 1, 1), m.newUsage(2, group2, 1, 1)
	var x, y []float64
	for i := range steps {
		u, _ := a.At(0, recording.Step*(from+i*every))
		v, _ := b.At(0, recording.Step*(from+i*every))
		x, y = append(x, u), append(y, v)
	}
	return stat.Correlation(x, y, nil)
}

func TestTogether(t *testing.T) {
	const text = "beta:mean=0.4,cv=0.3,between=0,together=0.6,hold=10"
	m := model(t, text, 3)
	// The scores have 0.6 of their variance in common; such a narrow beta distribution is
	// nearly linear in its score.
	if got := correlation(m, 5, 5, 0, 20_000, 50); math.Abs(got-0.6) > 0.03 {
		t.Errorf("correlation in a group %v, want 0.6", got)
	}
	if got := correlation(m, 5, 6, 0, 20_000, 50); math.Abs(got) > 0.03 {
		t.Errorf("correlation between groups %v, want 0", got)
	}
	// The correlation is the same between two draws.
	if got := correlation(m, 5, 5, 5, 20_000, 50); math.Abs(got-0.6) > 0.03 {
		t.Errorf("correlation in a group between draws %v, want 0.6", got)
	}
	// A burst affects most pods of a group: while the usage of one pod is high, the usage of the
	// other pod is high much more often than the 0.05 of independent pods.
	m = model(t, "bursts:mean=0.3", 3)
	a, b := m.newUsage(1, 5, 1, 1), m.newUsage(2, 5, 1, 1)
	var high, both float64
	for i := range int64(50_000) {
		u, _ := a.At(0, recording.Step*(i*50))
		v, _ := b.At(0, recording.Step*(i*50))
		if u > 0.6 {
			high++
			if v > 0.6 {
				both++
			}
		}
	}
	if high/50_000 < 0.04 || high/50_000 > 0.06 || both/high < 0.4 {
		t.Errorf("high for a share of %v, both for %v of that", high/50_000, both/high)
	}
}

// TestBetween verifies that between is the share of the variance between pods.
func TestBetween(t *testing.T) {
	m := model(t, "beta:mean=0.4,cv=0.3,between=0.9,hold=10", 3)
	var means, within []float64
	for pod := range uint64(4000) {
		c, values := m.newUsage(pod, pod, 1, 1), []float64(nil)
		for i := range int64(100) {
			cpu, _ := c.At(0, recording.Step*(i*50))
			values = append(values, cpu)
		}
		mean, variance := stat.MeanVariance(values, nil)
		means, within = append(means, mean), append(within, variance)
	}
	between := stat.Variance(means, nil)
	if share := between / (between + stat.Mean(within, nil)); math.Abs(share-0.9) > 0.01 {
		t.Errorf("share of the variance between pods %v, want 0.9", share)
	}
}

// TestWorkload verifies that workload is the share of the variance between groups, that between is the share
// between the pods of a group, and that later pods of a group use as much as earlier pods.
func TestWorkload(t *testing.T) {
	m := model(t, "beta:mean=0.4,cv=0.3,workload=0.6,between=0.3,hold=10", 3)
	const groups, pods, steps = 3000, 8, 20
	var groupMeans, betweenPods, within []float64
	for group := range uint64(groups) {
		var means []float64
		for pod := range uint64(pods) {
			c, values := m.newUsage(group*pods+pod, group, 1, 1), []float64(nil)
			for i := range int64(steps) {
				cpu, _ := c.At(0, recording.Step*(i*50))
				values = append(values, cpu)
			}
			mean, variance := stat.MeanVariance(values, nil)
			means, within = append(means, mean), append(within, variance)
		}
		mean, variance := stat.MeanVariance(means, nil)
		groupMeans, betweenPods = append(groupMeans, mean), append(betweenPods, variance)
	}
	// The variance of means has a part of the variance that is averaged.
	own := stat.Mean(within, nil)
	between := stat.Mean(betweenPods, nil) - own/steps
	workload := stat.Variance(groupMeans, nil) - between/pods - own/steps/pods
	total := own + between + workload
	if math.Abs(workload/total-0.6) > 0.02 || math.Abs(between/total-0.3) > 0.02 || math.Abs(math.Sqrt(total)-0.12) > 0.003 {
		t.Errorf("shares of groups %v and of pods %v, want 0.6 and 0.3; deviation %v, want 0.12",
			workload/total, between/total, math.Sqrt(total))
	}
}

// TestWorkloadPhases verifies that the pods of a group have their peak at the same time, and pods of different groups
// at different times.
func TestWorkloadPhases(t *testing.T) {
	m := model(t, "diurnal:mean=0.4,cv=0.37,amplitude=0.5,period=100,phases=0,workload-phases=1,between=0,hold=1", 3)
	same, different := 0.0, 0.0
	for group := range uint64(50) {
		same += correlation(m, group, group, 0, 200, 1) / 50
		different += correlation(m, group, group+100, 0, 200, 1) / 50
	}
	// The variance relative to the mean is 0.37^2 = 0.137; the sine contributes 0.5^2/2 = 0.125.
	if same < 0.8 || math.Abs(different) > 0.3 {
		t.Errorf("correlations %v in a group and %v between groups", same, different)
	}
}

// TestDay verifies that the peak is at a quarter and the minimum at three quarters of the period.
func TestDay(t *testing.T) {
	m := model(t, "diurnal:mean=0.4,cv=0.36,amplitude=0.5,period=100,phases=0,between=0", 3)
	var sums [4]float64
	for pod := range uint64(2000) {
		c := m.newUsage(pod, pod, 1, 1)
		for quarter := range sums {
			cpu, _ := c.At(0, recording.Step*(1000+int64(quarter)*25))
			sums[quarter] += cpu / 2000
		}
	}
	// 0.4 (1 + 0.5 sin)
	for quarter, want := range []float64{0.4, 0.6, 0.4, 0.2} {
		if math.Abs(sums[quarter]-want) > 0.01 {
			t.Errorf("quarter %d: %v, want %v", quarter, sums[quarter], want)
		}
	}
}

// drawSpec draws a valid text of any kind.
func drawSpec(t *rapid.T) string {
	kind := rapid.SampledFrom(UsageKinds).Draw(t, "kind")
	workload := rapid.Float64Range(0, 1).Draw(t, "workload")
	between := rapid.Float64Range(0, 1-workload).Draw(t, "between")
	text := fmt.Sprintf("%s:mean=%v,workload=%v,between=%v,together=%v,hold=%d", kind, rapid.Float64Range(0.05, 0.5).Draw(t, "mean"),
		workload, between, rapid.Float64Range(0, max(1-workload-between, 0)).Draw(t, "together"), rapid.IntRange(1, 100).Draw(t, "hold"))
	if kind != Constant {
		text += fmt.Sprintf(",cv=%v", rapid.Float64Range(0.36, 0.8).Draw(t, "cv"))
	}
	return text
}

// TestUsageProperties verifies that values are in range, the same for the same seed, and the same
// for steps in order as for single steps.
func TestUsageProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, seed := drawSpec(t), rapid.Uint64().Draw(t, "seed")
		s, err := ParseUsage(text)
		must.Succeed(t, err)
		if second, err := ParseUsage(s.String()); err != nil || second != s {
			t.Fatalf("%s is parsed as %+v, %v, want %+v", s, second, err, s)
		}
		m, _ := newUsageModel(s, seed)
		twin, _ := newUsageModel(s, seed)
		pod, group := rapid.Uint64().Draw(t, "pod"), rapid.Uint64().Draw(t, "group")
		c := m.newUsage(pod, group, 1, 1)
		step := int64(0)
		for range 50 {
			step = max(0, step+rapid.Int64Range(-3, 40).Draw(t, "advance"))
			cpu, memory := c.At(0, recording.Step*step)
			wantCPU, wantMemory := twin.At(pod, group, step)
			if cpu != wantCPU || memory != wantMemory {
				t.Fatalf("step %d: %v, %v in order, %v, %v alone", step, cpu, memory, wantCPU, wantMemory)
			}
			if !(cpu >= 0 && cpu <= s[usageCPU].Max+1e-9) || !(memory >= 0 && memory <= s[usageMemory].Max+1e-9) {
				t.Fatalf("step %d: %v, %v", step, cpu, memory)
			}
		}
	})
}

func TestSeedsAndPodsDiffer(t *testing.T) {
	const text = "beta:mean=0.4,cv=0.5"
	seen := map[float64]bool{}
	for seed := range uint64(20) {
		m := model(t, text, seed)
		for pod := range uint64(20) {
			cpu, memory := m.At(pod, 0, 7)
			seen[cpu], seen[memory] = true, true
		}
	}
	if len(seen) != 800 {
		t.Errorf("%d different values, want 800", len(seen))
	}
}

// TestGoldenValue verifies that the values of a seed do not change between versions.
func TestGoldenValue(t *testing.T) {
	cpu, memory := model(t, "beta:mean=0.4,cv=0.5,max=2,between=0.5,together=0.1,hold=10", 42).At(7, 3, 1003)
	if got, want := fmt.Sprintf("%.6f %.6f", cpu, memory), "0.161595 0.635157"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestUsageDoesNotAllocate(t *testing.T) {
	m := model(t, "diurnal", 1)
	c, step := m.newUsage(1, 2, 1, 1), int64(0)
	if n := testing.AllocsPerRun(1000, func() { c.At(0, recording.Step*step); step++ }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
