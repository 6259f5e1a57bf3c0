package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// daily returns the model after some days of two workloads of 10 pods each: those of day use 500 + 300 at noon and 500 - 300 at
// midnight, those of night the opposite, and those of none always 500, with noise of the deviation 50 that lasts an hour.
func daily(days float64) (*Model, *tenants) {
	c := newTenants()
	states, random, noise := podStates{}, rand.New(rand.NewPCG(11, 12)), map[string]float64{}
	var model *Model
	for second := 0.0; second < days*oneDay; second += 300 {
		n := NodeReading{Name: "n"}
		for workload, height := range map[string]float64{"day": -300, "night": 300, "none": 0} {
			for i := range 10 {
				name := fmt.Sprint(workload, i)
				if math.Mod(second, 3600) == 0 {
					noise[name] = 50 * random.NormFloat64()
				}
				p := PodReading{State: states.of(name), Seen: 1, IsUsed: true}
				p.Workload, p.Amounts[CPU].Request = c.key(workload), 1000
				p.Used[CPU] = max(500+height*math.Cos(2*math.Pi*second/oneDay)+noise[name], 0)
				n.Pods = append(n.Pods, p)
			}
		}
		model = c.learner.Observe(&Reading{Second: second, Window: 300, Nodes: []NodeReading{n}})
	}
	return model, c
}

// TestOppositePeaksBelongTogether checks that days are learned after two of them, and not from a workload without days: a pod that is busy
// by day raises the peak of a node with pods of the night by less than the peak of a node with pods of the day.
func TestOppositePeaksBelongTogether(t *testing.T) {
	for _, tc := range []struct {
		days      float64
		low, high float64
	}{
		{0.9, 0, 0},
		{5, 200, 330},
	} {
		model, c := daily(tc.days)
		for workload, sign := range map[string]float64{"day": -1, "night": 1} {
			wave := model.Estimate(c.key(workload), CPU, 1000).Wave
			if wave.amplitude() < tc.low || wave.amplitude() > tc.high || wave.Cosine*sign < 0 {
				t.Errorf("%v days: wave %+v of %s, want %v to %v", tc.days, wave, workload, tc.low, tc.high)
			}
		}
		if wave := model.Estimate(c.key("none"), CPU, 1000).Wave; wave.amplitude() > 30 {
			t.Errorf("%v days: wave %+v of a workload without days", tc.days, wave)
		}
		if tc.high == 0 {
			continue
		}
		pods := func(workload string) (pods []Declared) {
			for range 4 {
				pods = append(pods, Declared{Workload: c.key(workload), Amounts: [Resources]Amount{CPU: {Request: 1000}}})
			}
			return pods
		}
		pending := model.Expect(&pods("day")[0], CPU)
		byDay, byNight := model.Node("x", pods("day")), model.Node("y", pods("night"))
		difference := peak(model, &byDay, &pending, c.key("day"), CPU, 0) - peak(model, &byNight, &pending, c.key("day"), CPU, 0)
		// Five pods of the day have a wave of 5 x 300, four of the night and one of the day one of 3 x 300.
		if difference < 2*tc.low || difference > 2*tc.high {
			t.Errorf("%v days: the peak with pods of the day is higher by %.0f", tc.days, difference)
		}
	}
}

// TestDaysAreSaved checks that a wave survives a restart.
func TestDaysAreSaved(t *testing.T) {
	model, c := daily(4)
	want := model.Estimate(c.key("day"), CPU, 1000).Wave
	second := NewLearner(c.learner.options)
	got := second.Import(c.learner.Export(), 4*oneDay, 4*oneDay).Estimate(c.key("day"), CPU, 1000).Wave
	if math.Abs(got.Cosine-want.Cosine) > 40 || math.Abs(got.Sine-want.Sine) > 40 {
		t.Errorf("wave %+v after a restart, before %+v", got, want)
	}
}
