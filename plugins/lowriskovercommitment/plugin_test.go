package lowriskovercommitment

import (
	"math"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// withLoad returns a registry of the plugin with a reading of load of that age, or without load.
func withLoad(nodes map[string]load.Node, age time.Duration) frameworkruntime.Registry {
	return frameworkruntime.Registry{Name: shared.NewWithLoad(schedtest.WithLoad(nodes, age), nil).Share(New)}
}

func TestScore(t *testing.T) {
	limitsOnly := 1.0
	eight := []*v1.Node{schedtest.Node("a", "cpu", "8", "memory", "32Gi"), schedtest.Node("b", "cpu", "8", "memory", "32Gi")}
	same := schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "a", "4", "12"), schedtest.CPU("2", "b", "4", "12")}}
	pod := schedtest.CPU("p", "", "1", "2")
	for name, tc := range map[string]struct {
		args    *config.LowRiskOverCommitmentArgs
		cluster schedtest.Cluster
		pod     *v1.Pod
		load    map[string]load.Node
		age     time.Duration
		want    map[string]int64
	}{
		// a: request 5, limit 14, excess 9, allowed 3: 1 - 3/9 = 0.67.
		// b: request 5, limit 7, allowed 2 of 2: 0. Memory has no limits: 0.
		"limits only": {
			nil,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "a", "4", "12"), schedtest.CPU("2", "b", "4", "5")}},
			pod, nil, 0,
			map[string]int64{"a": 33, "b": 100},
		},
		// a: the mean is at the requests, load risk 0.5: 1 - (0.67 + 0.5) / 2 = 0.42
		// b: far below, load risk 0: 1 - 0.67 / 2 = 0.67
		"load": {
			nil, same, pod,
			map[string]load.Node{"a": schedtest.CPULoad(0.5, 0.1), "b": schedtest.CPULoad(0.25, 0.02)},
			0,
			map[string]int64{"a": 42, "b": 67},
		},
		// 1 - 0.67 on both
		"stale load": {
			nil, same, pod,
			map[string]load.Node{"a": schedtest.CPULoad(0.5, 0.1), "b": schedtest.CPULoad(0.25, 0.02)},
			5*time.Minute + 1,
			map[string]int64{"a": 33, "b": 33},
		},
		"load at the maximum age": {
			nil, same, pod, map[string]load.Node{"a": schedtest.CPULoad(0.5, 0.1)}, 5 * time.Minute, map[string]int64{"a": 42, "b": 33},
		},
		"only limits count": {
			&config.LowRiskOverCommitmentArgs{RiskLimitWeight: &limitsOnly}, same, pod,
			map[string]load.Node{"a": schedtest.CPULoad(0.9, 0.1)},
			0,
			map[string]int64{"a": 33, "b": 33},
		},
		"only load of CPU": {
			&config.LowRiskOverCommitmentArgs{RiskLimitWeights: map[string]float64{"cpu": 0}}, same, pod,
			map[string]load.Node{"a": schedtest.CPULoad(0.5, 0.1), "b": schedtest.CPULoad(0.25, 0.02)},
			0,
			map[string]int64{"a": 50, "b": 100},
		},
		"invalid load": {
			nil, same, pod,
			map[string]load.Node{"a": schedtest.CPULoad(-1, 0.1), "b": schedtest.CPULoad(0.25, -1)},
			0,
			map[string]int64{"a": 33, "b": 33},
		},
		// a runs best-effort pods at 90 %: load risk 1. b is idle and empty: load risk 0. No limit risk.
		"a best-effort pod": {
			nil,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.Pod("1", "a", nil, nil)}},
			schedtest.Pod("p", "", nil, nil),
			map[string]load.Node{"a": schedtest.CPULoad(0.9, 0.01), "b": schedtest.CPULoad(0.03, 0.002)},
			0,
			map[string]int64{"a": 50, "b": 100},
		},
		// capacity 10, allocatable 8. a: 0.48 of 10 is 0.6 of 8, more than the requests of 4.4 (0.55): load
		// risk 1. b: 0.4 of 10 is 0.5 of 8: load risk 0.
		"capacity above allocatable": {
			nil,
			schedtest.Cluster{
				Nodes: []*v1.Node{nodeWithReserve("a", "10", "8"), nodeWithReserve("b", "10", "8")},
				Pods: []*v1.Pod{
					schedtest.CPU("1", "a", "4400m", "4400m"), schedtest.CPU("2", "b", "4400m", "4400m"),
					schedtest.CPU("3", "a", "0", ""), schedtest.CPU("4", "b", "0", ""),
				},
			},
			schedtest.CPU("p", "", "1", "1"),
			map[string]load.Node{"a": schedtest.CPULoad(0.48, 0), "b": schedtest.CPULoad(0.4, 0)},
			0,
			map[string]int64{"a": 50, "b": 100},
		},
		// memory: request 24+4 of 32, limit 48+4: excess 24, allowed 4: 0.83, more than the risk of CPU
		"the riskier resource decides": {
			nil,
			schedtest.Cluster{Nodes: eight[:1], Pods: []*v1.Pod{
				schedtest.Pod("1", "a", schedtest.Amounts("cpu", "4", "memory", "24Gi"), schedtest.Amounts("cpu", "12", "memory", "48Gi")),
			}},
			schedtest.Pod("p", "", schedtest.Amounts("cpu", "1", "memory", "4Gi"), schedtest.Amounts("cpu", "2", "memory", "4Gi")),
			nil, 0,
			map[string]int64{"a": 17},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := schedtest.Plugin{Name: Name}
			if tc.args != nil {
				plugin.Args = tc.args
			}
			want := map[string][2]int64{}
			for node, score := range tc.want {
				want[node] = [2]int64{score, score} // scores are not normalized
			}
			schedtest.CheckScores(t, withLoad(tc.load, tc.age), plugin, tc.cluster, tc.pod, want)
		})
	}
}

// nodeWithReserve returns a node whose allocatable CPU is less than its capacity.
func nodeWithReserve(name, capacity, allocatable string) *v1.Node {
	node := schedtest.Node(name, "cpu", capacity, "memory", "32Gi")
	node.Status.Allocatable = schedtest.Amounts("cpu", allocatable, "memory", "32Gi")
	return node
}

// The risk in the metrics is the risk of the scores without a pending pod.
func TestRisk(t *testing.T) {
	cluster := schedtest.Cluster{
		Nodes: []*v1.Node{
			schedtest.Node("a", "cpu", "8", "memory", "32Gi"), schedtest.Node("b", "cpu", "8", "memory", "32Gi"),
			schedtest.Node("c", "cpu", "8", "memory", "32Gi"),
		},
		Pods: []*v1.Pod{schedtest.CPU("1", "a", "4", "12"), schedtest.CPU("2", "b", "4", "12")},
	}
	registry := withLoad(map[string]load.Node{"a": schedtest.CPULoad(0.9, 0.01), "c": schedtest.CPULoad(0.02, 0.001)}, 0)
	s, err := schedtest.New(t.Context(), registry, schedtest.Plugin{Name: Name}, cluster)
	must.Succeed(t, err)
	for i, want := range []float64{
		// Excess 12 - 4 = 8, allowed 8 - 4 = 4: limit risk 0.5. The load is 7.2, ten standard deviations of 0.08 below the
		// capacity, but always above the requests: load risk 1. (0.5 + 1) / 2.
		0.75,
		// Without load: the limit risk.
		0.5,
		// Empty and idle.
		0,
	} {
		if got := s.Plugin.(shared.RiskEvaluator).Risk(cache.NewSums(s.Nodes[i])); math.Abs(got-want) > 0.005 {
			t.Errorf("%s: risk %.3f, want %.3f", cluster.Nodes[i].Name, got, want)
		}
	}
}
