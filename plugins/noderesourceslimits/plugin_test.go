package noderesourceslimits

import (
	"math"
	"math/big"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
	cpuOnly := &config.NodeResourcesLimitsArgs{Resources: []config.ResourceWeight{weight("cpu", 1)}}
	eight := []*v1.Node{schedtest.Node("node1", "cpu", "8"), schedtest.Node("node2", "cpu", "8")}
	for name, tc := range map[string]struct {
		args    runtime.Object
		cluster schedtest.Cluster
		pod     *v1.Pod
		// want has the raw and the normalized score.
		want map[string][2]int64
	}{
		// node1: (8 - (6+4+4)) x 100 / 8 = -75, node2: (8 - (3+2+4)) x 100 / 8 = -12.5
		"limits, not requests": {
			cpuOnly,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{
				schedtest.CPU("1", "node1", "2", "6"), schedtest.CPU("2", "node1", "2", "4"),
				schedtest.CPU("3", "node2", "3", "3"), schedtest.CPU("4", "node2", "2", "2"),
			}},
			schedtest.CPU("5", "", "1", "4"),
			map[string][2]int64{"node1": {-75, 0}, "node2": {-12, 100}},
		},
		// node1 has a pod without a limit, which counts as 8: (8 - (8+2)) x 100 / 8 = -25
		// node2: (8 - (4+2)) x 100 / 8 = 25
		"a pod without a limit counts with the whole node": {
			cpuOnly,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "node1", "1", ""), schedtest.CPU("2", "node2", "1", "4")}},
			schedtest.CPU("5", "", "1", "2"),
			map[string][2]int64{"node1": {-25, 0}, "node2": {25, 100}},
		},
		// node1: (8 - (1+2)) x 100 / 8 = 62.5
		"a pod without a limit counts with the default": {
			&config.NodeResourcesLimitsArgs{
				Resources: cpuOnly.Resources, DefaultLimits: map[string]resource.Quantity{"cpu": resource.MustParse("1")},
			},
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "node1", "1", ""), schedtest.CPU("2", "node2", "1", "4")}},
			schedtest.CPU("5", "", "1", "2"),
			map[string][2]int64{"node1": {62, 100}, "node2": {25, 0}},
		},
		// cpu (8-2) x 100 / 8 = 75 on both; gpu 3 x (4-2) x 100 / 4 = 150 on node1, none on node2
		"a resource that a node lacks": {
			&config.NodeResourcesLimitsArgs{Resources: []config.ResourceWeight{weight("cpu", 1), weight("nvidia.com/gpu", 3)}},
			schedtest.Cluster{Nodes: []*v1.Node{
				schedtest.Node("node1", "cpu", "8", "nvidia.com/gpu", "4"), schedtest.Node("node2", "cpu", "8"),
			}},
			schedtest.Pod("5", "", schedtest.Amounts("cpu", "2", "nvidia.com/gpu", "2"),
				schedtest.Amounts("cpu", "2", "nvidia.com/gpu", "2")),
			map[string][2]int64{"node1": {225, 100}, "node2": {75, 0}},
		},
		// cpu (8-2) x 100 / 8 = 75; memory without a limit (n-n) = 0: 75 on both
		"equal scores": {
			nil,
			schedtest.Cluster{Nodes: []*v1.Node{
				schedtest.Node("node1", "cpu", "8", "memory", "8Gi"), schedtest.Node("node2", "cpu", "8", "memory", "4Gi"),
			}},
			schedtest.CPU("5", "", "1", "2"),
			map[string][2]int64{"node1": {75, 0}, "node2": {75, 0}},
		},
		// node1: (1 - 2^63) x 100 / 1 does not fit an int64
		"a raw score that saturates": {
			cpuOnly,
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("node1", "cpu", "1m"), schedtest.Node("node2", "memory", "1Gi")}},
			schedtest.CPU("5", "", "1m", "9E"),
			map[string][2]int64{"node1": {-math.MaxInt64, 0}, "node2": {0, 100}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			schedtest.CheckScores(t, frameworkruntime.Registry{Name: New}, schedtest.Plugin{Name: Name, Args: tc.args}, tc.cluster, tc.pod,
				tc.want)
		})
	}
}

// The oracle computes with big integers. Amounts are often the largest, where arithmetic overflows.
func TestHeadroomAgainstBigIntegers(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		allocatable, limits, w := amount.Draw(t, "allocatable"), amount.Draw(t, "limits"), rapid.Int64Range(1, math.MaxInt32).Draw(t, "w")
		want := int64(0)
		if allocatable > 0 {
			n := new(big.Int).Sub(big.NewInt(allocatable), big.NewInt(limits))
			n.Mul(n, big.NewInt(100*w))
			want = clamp(n.Quo(n, big.NewInt(allocatable)))
		}
		if got := headroom(allocatable, limits, w); got != want {
			t.Fatalf("headroom(%d, %d, %d) = %d, want %d", allocatable, limits, w, got, want)
		}
	})
}

func clamp(n *big.Int) int64 {
	if n.IsInt64() && n.Int64() != math.MinInt64 {
		return n.Int64()
	}
	return int64(n.Sign()) * math.MaxInt64
}
