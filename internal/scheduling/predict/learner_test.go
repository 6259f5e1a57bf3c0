package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// TestLearnsFromNodes has nodes whose pods with a request use 0.6 of it, and whose pods without one use 900. Only the load of
// nodes is measured: both are found to 5 %.
func TestLearnsFromNodes(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600}), podStates{}
	var model *Model
	var nodes []NodeReading
	for i := range 40 {
		n := NodeReading{Name: fmt.Sprint(i)}
		for j := range 10 {
			p := PodReading{State: states.of(fmt.Sprint(i, " ", j)), Seen: 1}
			p.Workload = resources.Workload{Name: fmt.Sprint(r.IntN(50))}.Key()
			if r.IntN(5) > 0 {
				p.Amounts[CPU].Request = 500 + 1000*r.Float64()
				n.Measured[CPU].Mean += 0.6 * p.Amounts[CPU].Request
			} else {
				n.Measured[CPU].Mean += 900
			}
			n.Pods = append(n.Pods, p)
		}
		n.Measured[CPU].StdDev, n.Measured[CPU].Known = 100, true
		nodes = append(nodes, n)
	}
	for minute := range 30 {
		model = l.Observe(&Reading{Second: float64(60 * minute), Window: 60, Nodes: nodes})
	}
	unknown := resources.Workload{Name: "never seen"}.Key()
	if got := model.Estimate(unknown, CPU, 1000).Mean / 1000; math.Abs(got-0.6) > 0.03 {
		t.Errorf("pods with a request use %.3f of it, want 0.6", got)
	}
	if got := model.Estimate(unknown, CPU, 0).Mean; math.Abs(got-900) > 45 {
		t.Errorf("pods without a request use %.0f, want 900", got)
	}
}

// TestLearnsWorkloads has ten workloads of ten pods that use 0.1, 0.2, ... 1 of their requests and vary by a tenth. The expected
// usage of each workload is within a tenth of its usage; an unknown workload is expected to use about the mean of all, 0.55.
func TestLearnsWorkloads(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600}), podStates{}
	key := func(i int) resources.WorkloadKey { return resources.Workload{Name: fmt.Sprint(i)}.Key() }
	var model *Model
	for minute := range 60 {
		n := NodeReading{Name: "n"}
		for i := range 100 {
			p := PodReading{State: states.of(fmt.Sprint(i)), Seen: 1, IsUsed: true}
			p.Workload, p.Amounts[CPU].Request = key(i/10), 1000
			p.Used[CPU] = float64(100*(1+i/10)) * (0.9 + 0.2*r.Float64())
			n.Measured[CPU].Mean += p.Used[CPU]
			n.Pods = append(n.Pods, p)
		}
		n.Measured[CPU].Known = true
		model = l.Observe(&Reading{Second: float64(60 * minute), Window: 60, Nodes: []NodeReading{n}})
	}
	for i := range 10 {
		want := 0.1 * float64(1+i)
		if got := model.Estimate(key(i), CPU, 1000).Mean / 1000; math.Abs(got/want-1) > 0.1 {
			t.Errorf("workload %d uses %.3f of its requests, want %.1f", i, got, want)
		}
	}
	if got := model.Estimate(key(99), CPU, 1000).Mean / 1000; math.Abs(got-0.55) > 0.06 {
		t.Errorf("an unknown workload is expected to use %.3f, want 0.55", got)
	}
	if got := model.Workloads(); got != 10 {
		t.Errorf("%d workloads are known, want 10", got)
	}
}

// TestHistory compares the decaying mean of a history with the mean over the list of all readings: reading i of n has the weight
// decay^(n-1-i) x its seconds.
func TestHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 50).Draw(t, "used")
		decay := rapid.Float64Range(0.8, 1).Draw(t, "decay")
		seconds := rapid.Float64Range(1, 600).Draw(t, "seconds")
		var h history
		for _, x := range used {
			h.add(x, seconds, &decays{history: decay, recent: decay / 2})
		}
		weight, mean := 0.0, 0.0
		for i, x := range used {
			w := seconds * math.Pow(decay, float64(len(used)-1-i))
			weight, mean = weight+w, mean+w*x
		}
		if mean /= weight; !near(h.seconds, weight) || !near(h.mean, mean) {
			t.Fatalf("seconds and mean %v, %v; by the list %v, %v", h.seconds, h.mean, weight, mean)
		}
	})
}

// TestFit compares the fit with the solution of its equations by elimination, over loads without outliers.
func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fit
		f.reset(1, 100)
		// The rows of the equations, with the prior as two observations: the square of (a - 1) / 0.5, of (b - 100) / 300.
		m := [2][3]float64{{4, 0, 4}, {0, 1.0 / 90000, 100.0 / 90000}}
		for range rapid.IntRange(1, 20).Draw(t, "nodes") {
			x, y := rapid.Float64Range(0, 5000).Draw(t, "requests"), float64(rapid.IntRange(0, 5).Draw(t, "pods"))
			z, variance := rapid.Float64Range(0, 5000).Draw(t, "load"), 1e8
			f.add(x, y, z, variance)
			for i, a := range [2]float64{x, y} {
				m[i][0] += a * x / variance
				m[i][1] += a * y / variance
				m[i][2] += a * z / variance
			}
		}
		f.solve()
		factor := m[1][0] / m[0][0]
		b := (m[1][2] - factor*m[0][2]) / (m[1][1] - factor*m[0][1])
		a := (m[0][2] - m[0][1]*b) / m[0][0]
		if a < 0 || b < 0 {
			if f.mean[requested] < 0 || f.mean[unrequested] < 0 {
				t.Fatalf("negative: %v", f.mean)
			}
			return
		}
		if !near(f.mean[requested], a) || !near(f.mean[unrequested], b) {
			t.Fatalf("fit %v, by elimination %v and %v", f.mean, a, b)
		}
	})
}

// TestAnyInput checks that predictions from any measurements are finite and not negative, and do not depend on the order of the
// nodes.
func TestAnyInput(t *testing.T) {
	amount := rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{
		0, 1, 1e18, 1e300, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.SmallestNonzeroFloat64, math.MaxFloat64,
	}))
	rapid.Check(t, func(t *rapid.T) {
		options := Options{HistoryWeight: 1, HalfLife: 3600}
		l, reversed := NewLearner(options), NewLearner(options)
		states, statesReversed := podStates{}, podStates{}
		var model, other *Model
		key := resources.Workload{Name: "w"}.Key()
		for range rapid.IntRange(1, 4).Draw(t, "readings") {
			reading := Reading{Second: rapid.Float64Range(0, 1e6).Draw(t, "second"), Window: 60}
			for i := range rapid.IntRange(0, 3).Draw(t, "nodes") {
				n := NodeReading{Name: fmt.Sprint(i)}
				for r := range n.Measured {
					n.Measured[r] = Measured{amount.Draw(t, "mean"), amount.Draw(t, "deviation"), true}
				}
				for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
					p := PodReading{
						State:  states.of(fmt.Sprint(i, j)),
						Seen:   amount.Draw(t, "seen"),
						IsUsed: rapid.Bool().Draw(t, "is used"),
					}
					p.Workload = key
					for r := range p.Used {
						p.Used[r] = amount.Draw(t, "used")
						p.Amounts[r] = Amount{amount.Draw(t, "request"), amount.Draw(t, "limit")}
					}
					n.Pods = append(n.Pods, p)
				}
				reading.Nodes = append(reading.Nodes, n)
			}
			model = l.Observe(&reading)
			backwards := reading
			backwards.Nodes = nil
			for i, n := range slices.Backward(reading.Nodes) {
				n.Pods = slices.Clone(n.Pods)
				for j := range n.Pods {
					n.Pods[j].State = statesReversed.of(fmt.Sprint(i, j))
				}
				backwards.Nodes = append(backwards.Nodes, n)
			}
			other = reversed.Observe(&backwards)
		}
		for r := range Resources {
			pod := Declared{Workload: key, Amounts: [Resources]Amount{{Request: 100}, {Request: 100}}}
			use, expected := model.Node("0", []Declared{pod}), model.Expect(&pod, r)
			highest := peak(model, &use, &expected, key, r, 2)
			if !(highest >= 0) || math.IsInf(highest, 0) {
				t.Fatalf("peak %v of %+v and %+v", highest, use, expected)
			}
			use = other.Node("0", []Declared{pod})
			expected = other.Expect(&pod, r)
			if again := peak(other, &use, &expected, key, r, 2); math.Abs(again-highest) > 1e-3*max(1, highest) {
				t.Fatalf("peak %v, with the nodes in another order %v", highest, again)
			}
		}
	})
}

// TestFollowsPreciseReadings checks the shift of nodes: if a node uses 500 more than expected for an hour, with readings that hardly
// vary, the prediction includes most of the difference; if the readings vary as much as they differ, the prediction follows slowly.
func TestFollowsPreciseReadings(t *testing.T) {
	predict := func(deviation float64, jump float64) float64 {
		l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600}), podStates{}
		var reading Reading
		for minute := range 60 {
			reading = Reading{Second: float64(60 * minute), Window: 60}
			for i := range 20 {
				n := NodeReading{Name: fmt.Sprint(i), Measured: [Resources]Measured{CPU: {1000, deviation, true}}}
				p := PodReading{State: states.of(fmt.Sprint(i)), Seen: 1}
				p.Workload, p.Amounts[CPU].Request = resources.Workload{Name: fmt.Sprint(i)}.Key(), 1000
				n.Pods = append(n.Pods, p)
				if i == 0 {
					n.Measured[CPU].Mean += jump
				}
				if minute%2 == 0 {
					n.Measured[CPU].Mean += deviation
				} else {
					n.Measured[CPU].Mean -= deviation
				}
				reading.Nodes = append(reading.Nodes, n)
			}
			l.Observe(&reading)
		}
		return reading.Nodes[0].Predicted[CPU] - reading.Nodes[1].Predicted[CPU]
	}
	if got := predict(10, 500); !(got > 300 && got <= 500) {
		t.Errorf("a precise difference of 500 is predicted as %.0f", got)
	}
	precise, vague := predict(10, 100), predict(300, 100)
	if !(vague > 0 && vague < precise) {
		t.Errorf("differences of 100 are predicted as %.0f if readings are precise, %.0f if not: want less", precise, vague)
	}
}

// TestForgets checks that pods, workloads and nodes that are gone are dropped, so that a learner is as large as its cluster.
func TestForgets(t *testing.T) {
	l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600}), podStates{}
	for minute := range 2000 {
		p := PodReading{State: states.of(fmt.Sprint(minute)), Seen: 1, IsUsed: true}
		p.Workload, p.Used = resources.Workload{Name: fmt.Sprint(minute)}.Key(), [Resources]float64{1, 1}
		l.Observe(&Reading{Second: float64(60 * minute), Nodes: []NodeReading{{Name: fmt.Sprint(minute), Pods: []PodReading{p}}}})
	}
	// A workload is forgotten when its one pod counts less than 0.05: after log2(20) = 4.3 hours.
	if len(l.pods) != 1 || len(l.nodes) > 1 || len(l.workloads) > 265 {
		t.Errorf(
			"%d pods, %d nodes and %d workloads are remembered, want 1, 1 and at most 265", len(l.pods), len(l.nodes), len(l.workloads),
		)
	}
}

// TestWithout has pods of two workloads that use 0.2 of their requests at the same time or none of it, on nodes whose load
// is 500 more than the usage of their pods. Without a part of the estimator, the effect of that part is absent.
func TestWithout(t *testing.T) {
	learn := func(without Parts) *Model {
		l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600, Without: without}), podStates{}
		var model *Model
		for minute := range 60 {
			reading := Reading{Second: float64(60 * minute), Window: 60}
			for i := range 5 {
				n := NodeReading{Name: fmt.Sprint(i), Measured: [Resources]Measured{CPU: {500, 10, true}}}
				for j := range 4 {
					p := PodReading{State: states.of(fmt.Sprint(i, j)), Seen: 1, IsUsed: true}
					p.Workload, p.Amounts[CPU].Request = resources.Workload{Name: fmt.Sprint(j % 2)}.Key(), 1000
					if minute/4%2 == 0 {
						p.Used[CPU] = 400
					}
					n.Measured[CPU].Mean += p.Used[CPU]
					n.Pods = append(n.Pods, p)
				}
				reading.Nodes = append(reading.Nodes, n)
			}
			model = l.Observe(&reading)
		}
		return model
	}
	all := learn(0)
	unknown := func(m *Model) float64 { return m.Estimate(resources.WorkloadKey{}, CPU, 1000).Mean / 1000 }
	shift := func(m *Model) float64 { return m.Node("0", nil).Sums[CPU].Shift }
	if unknown(all) > 0.5 || all.withinWorkload < 0.3 || shift(all) <= 0 {
		t.Fatalf("ratio %.2f, correlation %.2f, shift %.0f", unknown(all), all.withinWorkload, shift(all))
	}
	if got := unknown(learn(Fit)); got != 1 {
		t.Errorf("without fit, unknown pods use %.2f of their requests, want 1", got)
	}
	if got := learn(Correlation).withinWorkload; got != 0 {
		t.Errorf("without correlation, the correlation is %.2f", got)
	}
	if got := shift(learn(Blending)); got != 0 {
		t.Errorf("without blending, the measured load adds %.0f", got)
	}
}
