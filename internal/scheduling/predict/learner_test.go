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

// TestLearnsWorkloads has ten workloads of ten pods that use 0.1, 0.2, ... 1 of their requests and vary by a tenth. The expected
// usage of each workload is within a tenth of its usage; an unknown workload is expected to use about the mean of the ten and of four that
// use their requests (the prior), (10 x 0.55 + 4) / 14 = 0.68.
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
	if got := model.Estimate(key(99), CPU, 1000).Mean / 1000; math.Abs(got-0.68) > 0.06 {
		t.Errorf("an unknown workload is expected to use %.3f, want 0.68", got)
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
					n.Measured[r] = Measured{amount.Draw(t, "mean"), true}
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

// TestFollowsNodes has a node that uses 500 more than expected for an hour: the prediction includes most of the difference.
func TestFollowsNodes(t *testing.T) {
	l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600}), podStates{}
	var reading Reading
	for minute := range 60 {
		reading = Reading{Second: float64(60 * minute), Window: 60}
		for i := range 20 {
			n := NodeReading{Name: fmt.Sprint(i), Measured: [Resources]Measured{CPU: {1000, true}}}
			p := PodReading{State: states.of(fmt.Sprint(i)), Seen: 1}
			p.Workload, p.Amounts[CPU].Request = resources.Workload{Name: fmt.Sprint(i)}.Key(), 1000
			n.Pods = append(n.Pods, p)
			if i == 0 {
				n.Measured[CPU].Mean += 500
			}
			reading.Nodes = append(reading.Nodes, n)
		}
		l.Observe(&reading)
	}
	if got := reading.Nodes[0].Predicted[CPU] - reading.Nodes[1].Predicted[CPU]; !(got > 300 && got <= 500) {
		t.Errorf("a difference of 500 is predicted as %.0f", got)
	}
}

// TestIsMeasured checks what counts as a measurement.
func TestIsMeasured(t *testing.T) {
	for name, tc := range map[string]struct {
		load, usage, imported, want bool
	}{
		"nothing": {}, "load": {load: true, want: true}, "usage": {usage: true, want: true}, "history": {imported: true, want: true},
	} {
		l := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600})
		if tc.imported {
			l.Import([]Past{{Kind: "ReplicaSet", Name: "web", CPU: PastUsage{Pods: 1, Seconds: 60, Mean: 100}}}, 0, 60)
		}
		n := NodeReading{Name: "n", Measured: [Resources]Measured{CPU: {100, tc.load}}, Pods: []PodReading{{Seen: 1, IsUsed: tc.usage}}}
		if got := l.Observe(&Reading{Second: 60, Window: 60, Nodes: []NodeReading{n}}).IsMeasured(); got != tc.want {
			t.Errorf("%s: measured: %t, want %t", name, got, tc.want)
		}
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
