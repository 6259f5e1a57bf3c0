package plugins

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// draw draws a cluster of nodes with pods of one container, a pending pod, and load.
func draw(t *rapid.T) (schedtest.Cluster, *v1.Pod, map[string]load.Node) {
	var cluster schedtest.Cluster
	measured := map[string]load.Node{}
	pod := func(name, node string) *v1.Pod {
		request := rapid.Int64Range(0, 4000).Draw(t, "request")
		limit := ""
		if rapid.Bool().Draw(t, "limited") {
			limit = fmt.Sprintf("%dm", request+rapid.Int64Range(0, 4000).Draw(t, "excess")+1)
		}
		return schedtest.CPU(name, node, fmt.Sprintf("%dm", request), limit)
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		name := fmt.Sprint("node-", i)
		cluster.Nodes = append(
			cluster.Nodes, schedtest.Node(name, "cpu", fmt.Sprint(rapid.IntRange(1, 64).Draw(t, "cpu")), "memory", "64Gi"),
		)
		for j := range rapid.IntRange(0, 5).Draw(t, "pods") {
			cluster.Pods = append(cluster.Pods, pod(fmt.Sprint(name, "-", j), name))
		}
		if rapid.Bool().Draw(t, "measured") {
			measured[name] = schedtest.CPULoad(rapid.Float64Range(0, 1.2).Draw(t, "mean"), rapid.Float64Range(0, 0.5).Draw(t, "deviation"))
		}
	}
	return cluster, pod("pending", ""), measured
}

// A plugin that is enabled for score only, without PreScore, gives the same scores.
func TestScoresWithoutPreScore(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cluster, pod, measured := draw(rt)
		for _, plugin := range All {
			name := plugin.Name
			with, err := schedtest.Run(t, withLoad(measured, 0), schedtest.Plugin{Name: name}, cluster, pod)
			must.Succeed(rt, err)
			without, err := schedtest.Run(t, withLoad(measured, 0), schedtest.Plugin{Name: name, ScoreOnly: true}, cluster, pod)
			if err != nil || !maps.Equal(with, without) {
				rt.Fatalf("%s: %v with PreScore, %v without (%v)", name, with, without, err)
			}
		}
	})
}

// The oracle computes the raw scores of the two integer plugins from the manifests, with big integers.
func TestRawScoresAgainstOracle(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cluster, pod, _ := draw(rt)
		limits, err := schedtest.Run(t, withLoad(nil, 0), schedtest.Plugin{Name: "NodeResourcesLimits"}, cluster, pod)
		must.Succeed(rt, err)
		allocatable, err := schedtest.Run(t, withLoad(nil, 0), schedtest.Plugin{Name: "NodeResourcesAllocatable"}, cluster, pod)
		must.Succeed(rt, err)
		for _, node := range cluster.Nodes {
			cpu, memory := node.Status.Allocatable.Cpu().MilliValue(), node.Status.Allocatable.Memory().Value()
			raw := headroom(node.Name, cpu, v1.ResourceCPU, cluster, pod) + headroom(node.Name, memory, v1.ResourceMemory, cluster, pod)
			if got := limits[node.Name].Raw; got != raw {
				rt.Fatalf("limits of %s: %d, want %d", node.Name, got, raw)
			}
			sum := new(big.Int).Mul(big.NewInt(cpu), big.NewInt(1<<20))
			sum.Add(sum, big.NewInt(memory))
			if got, want := allocatable[node.Name].Raw, -sum.Quo(sum, big.NewInt(1<<20+1)).Int64(); got != want {
				rt.Fatalf("allocatable of %s: %d, want %d", node.Name, got, want)
			}
		}
	})
}

// headroom returns (allocatable - limits) x 100 / allocatable; a pod without a limit counts with the
// allocatable amount.
func headroom(node string, allocatable int64, name v1.ResourceName, cluster schedtest.Cluster, pending *v1.Pod) int64 {
	left := big.NewInt(allocatable)
	for _, pod := range append(slices.Clip(cluster.Pods), pending) {
		if pod != pending && pod.Spec.NodeName != node {
			continue
		}
		limit, declared := pod.Spec.Containers[0].Resources.Limits[name]
		amount := allocatable
		if declared {
			amount = limit.MilliValue() // only CPU is declared here
		}
		left.Sub(left, big.NewInt(amount))
	}
	left.Mul(left, big.NewInt(100))
	return left.Quo(left, big.NewInt(allocatable)).Int64()
}

// Every plugin returns a score in [0, 100] for any nodes, pods and load.
func FuzzScoreRange(f *testing.F) {
	f.Add(int64(8000), int64(32<<30), int64(1000), int64(4000), 0.5, 0.1)
	f.Add(int64(0), int64(0), int64(0), int64(0), math.NaN(), math.Inf(1))
	f.Add(int64(-1), int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MaxInt64), -1.0, -1.0)
	f.Add(int64(1), int64(math.MinInt64), int64(math.MinInt64), int64(1), 1e300, 1e-300)
	f.Fuzz(func(t *testing.T, cpu, memory, request, limit int64, mean, deviation float64) {
		list := func(cpu, memory int64) v1.ResourceList {
			return v1.ResourceList{
				v1.ResourceCPU:    *resource.NewMilliQuantity(cpu, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
			}
		}
		odd, empty := schedtest.Node("odd"), schedtest.Node("empty")
		odd.Status.Allocatable, odd.Status.Capacity = list(cpu, memory), list(memory, cpu)
		pod := func(name, node string) *v1.Pod {
			return schedtest.Pod(name, node, list(request, limit), list(limit, request), list(limit, limit), nil)
		}
		cluster := schedtest.Cluster{
			Nodes: []*v1.Node{odd, empty, schedtest.Node("plain", "cpu", "8", "memory", "32Gi")},
			Pods:  []*v1.Pod{pod("1", "odd"), pod("2", "odd"), pod("3", "plain"), pod("4", "empty")},
		}
		node := load.Node{
			CPU: load.Utilization{Mean: mean, StdDev: deviation}, HasCPU: true,
			Memory: load.Utilization{Mean: deviation, StdDev: mean}, HasMemory: true,
		}
		measured := map[string]load.Node{"odd": node, "empty": node, "plain": node}
		for _, plugin := range All {
			name := plugin.Name
			scores, err := schedtest.Run(t, withLoad(measured, 0), schedtest.Plugin{Name: name}, cluster, pod("p", ""))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for node, s := range scores {
				if s.Normalized < 0 || s.Normalized > 100 {
					t.Fatalf("%s scores %s %d", name, node, s.Normalized)
				}
			}
		}
	})
}
