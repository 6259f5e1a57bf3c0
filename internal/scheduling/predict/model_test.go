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

// near reports whether two numbers are equal but for rounding.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// learned returns a model with workloads whose pods were measured.
func learned(t *rapid.T) (*Model, []resources.WorkloadKey) {
	l, states := NewLearner(Options{HistoryWeight: 1, HalfLife: 3600}), podStates{}
	keys := make([]resources.WorkloadKey, 4)
	for i := range keys {
		keys[i] = resources.Workload{Namespace: "n", Kind: "Job", Name: fmt.Sprint(i)}.Key()
	}
	var model *Model
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	for minute := range rapid.IntRange(1, 30).Draw(t, "readings") {
		reading := Reading{Second: float64(60 * minute), Window: 300}
		for i := range 3 {
			n := NodeReading{Name: fmt.Sprint(i)}
			for j := range 4 {
				p := PodReading{State: states.of(fmt.Sprint(i, j)), Seen: 1, IsUsed: j < 3}
				p.Workload = keys[j]
				for r := range p.Amounts {
					if j%2 == 0 {
						p.Amounts[r].Request = 100
					}
					p.Used[r] = 200 * random.Float64()
					n.Measured[r] = Measured{n.Measured[r].Mean + p.Used[r], true}
				}
				n.Pods = append(n.Pods, p)
			}
			reading.Nodes = append(reading.Nodes, n)
		}
		model = l.Observe(&reading)
	}
	return model, keys
}

// somePod draws a pod.
func somePod(t *rapid.T, keys []resources.WorkloadKey) Declared {
	p := Declared{Workload: rapid.SampledFrom(keys).Draw(t, "workload")}
	for r := range p.Amounts {
		p.Amounts[r] = Amount{
			Request: rapid.SampledFrom([]float64{0, 50, 100, 300}).Draw(t, "request"),
			Limit:   rapid.SampledFrom([]float64{0, 400}).Draw(t, "limit"),
		}
	}
	return p
}

// peakOracle computes the predicted peak of pods by the sum over all pairs of them.
func peakOracle(m *Model, name string, pods []Declared, r int, k float64) float64 {
	mean, time, unknown, limit := 0.0, 0.0, 0.0, 0.0
	for i := range pods {
		a := m.Expect(&pods[i], r)
		mean, limit = mean+a.Mean, limit+a.Limit
		for j := range pods {
			b := m.Expect(&pods[j], r)
			switch {
			case i == j:
				time += a.Deviation * a.Deviation
				unknown += a.Shared*a.Shared + a.Own*a.Own
			case pods[i].Workload == pods[j].Workload:
				unknown += a.Shared * b.Shared
			}
		}
	}
	if shift, ok := m.nodes[name]; ok {
		mean, unknown = mean+shift[r].Mean, unknown-shift[r].Known
	}
	return min(mean+k*math.Sqrt(time+unknown), limit)
}

// TestPeak compares the peak of a node and a pending pod, which is computed from sums per workload, with the sum over
// all pairs of pods.
func TestPeak(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model, keys := learned(t)
		pods := make([]Declared, rapid.IntRange(1, 12).Draw(t, "pods"))
		for i := range pods {
			pods[i] = somePod(t, keys)
		}
		on, pending := pods[1:], &pods[0]
		r, k := rapid.IntRange(0, Resources-1).Draw(t, "resource"), rapid.Float64Range(0, 5).Draw(t, "k")
		use, expected := model.Node("elsewhere", on), model.Expect(pending, r)
		got, want := peak(model, &use, &expected, pending.Workload, r, k), peakOracle(model, "elsewhere", pods, r, k)
		if !near(got, want) {
			t.Fatalf("peak %v, by pairs %v", got, want)
		}
		shuffled := rapid.Permutation(on).Draw(t, "order")
		other := model.Node("elsewhere", shuffled)
		if again := peak(model, &other, &expected, pending.Workload, r, k); !near(got, again) {
			t.Fatalf("peak %v, in another order %v", got, again)
		}
	})
}

// TestPeakIsMonotone checks that neither a further pod nor a higher request lowers the peak, and that more deviations raise it.
func TestPeakIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model, keys := learned(t)
		pods := make([]Declared, rapid.IntRange(0, 6).Draw(t, "pods"))
		for i := range pods {
			pods[i] = somePod(t, keys)
		}
		r, pod := rapid.IntRange(0, Resources-1).Draw(t, "resource"), somePod(t, keys)
		name := rapid.SampledFrom([]string{"0", "1", "elsewhere"}).Draw(t, "node")
		peak := func(pods []Declared, pod Declared, k float64) float64 {
			use, expected := model.Node(name, pods), model.Expect(&pod, r)
			return peak(model, &use, &expected, pod.Workload, r, k)
		}
		before := peak(pods, pod, 2)
		if more := peak(append(slices.Clone(pods), somePod(t, keys)), pod, 2); more < before-1e-6 {
			t.Fatalf("peak %v, with a further pod %v", before, more)
		}
		if more := peak(pods, pod, 3); more < before-1e-6 {
			t.Fatalf("peak %v, with more deviations %v", before, more)
		}
		if pod.Amounts[r].Request > 0 {
			larger := pod
			larger.Amounts[r].Request *= 2
			if more := peak(pods, larger, 2); more < before-1e-6 {
				t.Fatalf("peak %v, with twice the request %v", before, more)
			}
		}
	})
}

// TestUnmeasured checks the expectations before the first measurement:
//
//	request 400:   mean 400, over time 0.4 x 400 = 160, own 0.3 x 400 = 120, workload 0.7 x 400 = 280
//	two such pods of different workloads: variance 2 x (160^2 + 120^2 + 280^2) = 236800, peak 800 + 2 x 486.6 = 1773.2
//	of the same: variance + 2 x 280^2 = 393600, peak 800 + 2 x 627.4 = 2054.8
//	no request:    mean 100, the CPU that kube-scheduler assumes
//	limit 50:      mean 50
func TestUnmeasured(t *testing.T) {
	m := NewModel()
	a, b := resources.Workload{Name: "a"}.Key(), resources.Workload{Name: "b"}.Key()
	pod := func(key resources.WorkloadKey, request, limit float64) *Declared {
		return &Declared{Workload: key, Amounts: [Resources]Amount{CPU: {request, limit}}}
	}
	on := m.Node("n", []Declared{*pod(a, 400, 0)})
	pending := m.Expect(pod(b, 400, 0), CPU)
	if got := peak(m, &on, &pending, b, CPU, 2); math.Abs(got-1773.2) > 0.1 {
		t.Errorf("peak of different workloads %.1f, want 1773.2", got)
	}
	if got := peak(m, &on, &pending, a, CPU, 2); math.Abs(got-2054.8) > 0.1 {
		t.Errorf("peak of one workload %.1f, want 2054.8", got)
	}
	if got := m.Expect(pod(a, 0, 0), CPU).Mean; got != 100 {
		t.Errorf("a pod without a request is expected to use %v, want 100", got)
	}
	if got := m.Expect(pod(a, 0, 50), CPU).Mean; got != 50 {
		t.Errorf("a pod with a limit of 50 is expected to use %v, want 50", got)
	}
	limited := m.Node("n", []Declared{*pod(a, 400, 500)})
	pending = m.Expect(pod(b, 400, 500), CPU)
	if got := peak(m, &limited, &pending, b, CPU, 2); got != 1000 {
		t.Errorf("peak %v, want the sum of the limits, 1000", got)
	}
}

// peak returns the predicted peak of a node with one more pod of a workload.
func peak(m *Model, use *NodeUse, pod *Expected, key resources.WorkloadKey, r int, k float64) float64 {
	return m.Peak(&use.Sums[r], use.Share(key, BitOf(key)), pod, r, k)
}

// podStates are the states of the pods of one learner, by name.
type podStates map[string]*PodState

func (s podStates) of(name string) *PodState {
	if s[name] == nil {
		s[name] = &PodState{}
	}
	return s[name]
}
