package noderesourcesallocatable

import (
	"math"
	"math/big"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

func weight(name string, w int64) config.ResourceWeight {
	return config.ResourceWeight{Name: name, Weight: &w}
}

func TestScore(t *testing.T) {
	nodes := []*v1.Node{schedtest.Node("small", "cpu", "10"), schedtest.Node("middle", "cpu", "50"), schedtest.Node("large", "cpu", "200")}
	cpuOnly := []config.ResourceWeight{weight("cpu", 1)}
	for name, tc := range map[string]struct {
		args    runtime.Object
		cluster schedtest.Cluster
		pod     *v1.Pod
		// want has the raw and the normalized score.
		want map[string][2]int64
	}{
		// middle: (-50000 + 200000) x 100 / 190000 = 78.9
		"least": {
			&config.NodeResourcesAllocatableArgs{Resources: cpuOnly},
			schedtest.Cluster{Nodes: nodes, Pods: []*v1.Pod{schedtest.CPU("1", "small", "9", "9")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string][2]int64{"small": {-10000, 100}, "middle": {-50000, 78}, "large": {-200000, 0}},
		},
		// middle: (50000 - 10000) x 100 / 190000 = 21.05
		"most": {
			&config.NodeResourcesAllocatableArgs{Mode: config.Most, Resources: cpuOnly},
			schedtest.Cluster{Nodes: nodes},
			schedtest.CPU("5", "", "1", "1"),
			map[string][2]int64{"small": {10000, 0}, "middle": {50000, 21}, "large": {200000, 100}},
		},
		// (1048576 x 4000 + 16 Gi) / 1048577 = 20383.9
		"the default weights": {
			nil,
			schedtest.Cluster{Nodes: []*v1.Node{
				schedtest.Node("a", "cpu", "4", "memory", "16Gi"), schedtest.Node("b", "cpu", "4", "memory", "16Gi"),
			}},
			schedtest.CPU("5", "", "1", "1"),
			map[string][2]int64{"a": {-20383, 0}, "b": {-20383, 0}},
		},
		// (2^31-1) x 7 EiB does not fit in 64 bits
		"large weights and amounts": {
			&config.NodeResourcesAllocatableArgs{Mode: config.Most, Resources: []config.ResourceWeight{weight("memory", config.MaxWeight)}},
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("a", "memory", "7Ei"), schedtest.Node("b", "memory", "1")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string][2]int64{"a": {7 << 60, 100}, "b": {1, 0}},
		},
		"nothing allocatable": {
			nil,
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("a"), schedtest.Node("b", "cpu", "0", "memory", "0")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string][2]int64{"a": {0, 0}, "b": {0, 0}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.CheckScores(t, frameworkruntime.Registry{Name: New}, schedtest.Plugin{Name: Name, Args: tc.args}, tc.cluster, tc.pod,
				tc.want)
		})
	}
}

type weighted struct{ amount, weight int64 }

func meanOf(all []weighted) int64 {
	var m mean
	for _, w := range all {
		m.add(w.amount, w.weight)
	}
	return m.value()
}

// The oracle computes with big integers. Amounts are often the largest, where arithmetic overflows.
func TestMeanAgainstBigIntegers(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))
	weight := rapid.Int64Range(1, math.MaxInt32)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) weighted {
			return weighted{amount.Draw(t, "amount"), weight.Draw(t, "weight")}
		}), 1, 5).Draw(t, "all")
		sum, weights := new(big.Int), new(big.Int)
		for _, w := range all {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(w.amount), big.NewInt(w.weight)))
			weights.Add(weights, big.NewInt(w.weight))
		}
		if got, want := meanOf(all), sum.Quo(sum, weights).Int64(); got != want {
			t.Fatalf("mean of %v is %d, want %d", all, got, want)
		}
	})
}
