package predict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// learnDeviations returns the deviations of four nodes, as fractions of their means, and the deviation over time of a pod of an unknown
// workload, as a fraction of its mean, after some seconds. The nodes have 36 pods of 18 workloads, half of them without requests; the usage
// of a pod in a reading, every 15 seconds, is its mean times what vary returns. The load of nodes is not measured.
func learnDeviations(seconds float64, vary func(r *rand.Rand, pod int, second float64) float64) (nodes, unknown float64) {
	l, states, r := NewLearner(Options{HistoryWeight: 1, HalfLife: DefaultHalfLife}), podStates{}, rand.New(rand.NewPCG(1, 2))
	pods := make([]PodReading, 36)
	means := make([]float64, len(pods))
	for i := 0; i < len(pods); i += 2 {
		mean := 2 + 40*r.Float64()
		for j := i; j < i+2; j++ {
			pods[j].State, pods[j].Seen, pods[j].IsUsed = states.of(fmt.Sprint(j)), 1, true
			pods[j].Workload, means[j] = resources.Workload{Name: fmt.Sprint(i)}.Key(), mean
			if i%4 == 0 {
				pods[j].Amounts[CPU].Request = mean * (0.4 + 1.2*r.Float64())
			}
		}
	}
	var model *Model
	reading := Reading{Window: 15, Nodes: make([]NodeReading, 4)}
	for second := 0.0; second <= seconds; second += 15 {
		for i := range reading.Nodes {
			reading.Nodes[i] = NodeReading{Name: fmt.Sprint(i)}
		}
		for i := range pods {
			pods[i].Used[CPU] = means[i] * max(vary(r, i, second), 0)
			n := &reading.Nodes[(i+i/4)%4]
			n.Pods = append(n.Pods, pods[i])
		}
		reading.Second = 1e6 + second
		model = l.Observe(&reading)
	}
	for i := range reading.Nodes {
		declared := make([]Declared, len(reading.Nodes[i].Pods))
		for j := range declared {
			declared[j] = reading.Nodes[i].Pods[j].Declared
		}
		sum := model.Node(reading.Nodes[i].Name, declared).Sums[CPU]
		nodes += math.Sqrt(sum.Variance) / sum.Mean / 4
	}
	e := model.Expect(&Declared{}, CPU)
	return nodes, e.Deviation / e.Mean
}

// TestDeviationsAreLearned checks that deviations are learned as fast as means, also of unknown workloads: constant pods have hardly any
// after minutes. Readings that vary by 0.4 have 0.4/3 on a node of nine equal pods, and pods that vary by 0.4 over hours as much after
// hours.
func TestDeviationsAreLearned(t *testing.T) {
	constant := func(*rand.Rand, int, float64) float64 { return 1 }
	quick := func(r *rand.Rand, _ int, _ float64) float64 { return 1 + 0.4*r.NormFloat64() }
	slow := func(_ *rand.Rand, pod int, second float64) float64 {
		return 1 + 0.4*math.Sqrt2*math.Sin(float64(pod)+2*math.Pi*second/(4*3600))
	}
	for _, tc := range []struct {
		name            string
		minutes         float64
		vary            func(*rand.Rand, int, float64) float64
		low, high       float64 // of nodes
		podLow, podHigh float64 // of a pod of an unknown workload
	}{
		{"constant", 0, constant, 0.15, 0.3, 0.4, 0.6},
		{"constant", 6, constant, 0, 0.08, 0, 0.4},
		{"constant", 60, constant, 0, 0.02, 0, 0.25},
		{"quick", 6, quick, 0.08, 0.2, 0.3, 0.6},
		{"quick", 60, quick, 0.06, 0.15, 0.2, 0.5},
		{"slow", 6 * 60, slow, 0.08, 0.2, 0.2, 0.6},
	} {
		nodes, pod := learnDeviations(60*tc.minutes, tc.vary)
		if !(nodes >= tc.low && nodes <= tc.high && pod >= tc.podLow && pod <= tc.podHigh) {
			t.Errorf("%s pods for %v minutes: deviations of nodes %.3f, want %v to %v; of an unknown pod %.3f, want %v to %v",
				tc.name, tc.minutes, nodes, tc.low, tc.high, pod, tc.podLow, tc.podHigh)
		}
	}
}
