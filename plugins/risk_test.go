package plugins

import (
	"maps"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

func cpuLoad(mean, deviation float64) load.Node {
	return load.Node{CPU: load.Utilization{Mean: mean, StdDev: deviation}, HasCPU: true}
}

func TestLowRiskOverCommitment(t *testing.T) {
	limitsOnly := 1.0
	eight := []*v1.Node{schedtest.Node("a", "cpu", "8", "memory", "32Gi"), schedtest.Node("b", "cpu", "8", "memory", "32Gi")}
	same := schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "a", "4", "12"), schedtest.CPU("2", "b", "4", "12")}}
	pod := schedtest.CPU("p", "", "1", "2")
	tests := map[string]struct {
		args    *config.LowRiskOverCommitmentArgs
		cluster schedtest.Cluster
		pod     *v1.Pod
		load    map[string]load.Node
		age     time.Duration
		want    map[string]int64
	}{
		// a: request 5, limit 14, excess 9, allowed 3: 1 - 3/9 = 0.67. b: request
		// 5, limit 7: all of it can be had. Memory is unbounded and promised to
		// nobody: no risk.
		"limits only": {
			nil,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "a", "4", "12"), schedtest.CPU("2", "b", "4", "5")}},
			pod, nil, 0,
			map[string]int64{"a": 33, "b": 100},
		},
		// a: the mean is at the requests, load risk 0.5: 1 - (0.67 + 0.5) / 2 = 0.42
		// b: far below, load risk 0: 1 - 0.67 / 2 = 0.67
		"load": {nil, same, pod, map[string]load.Node{"a": cpuLoad(0.5, 0.1), "b": cpuLoad(0.25, 0.02)}, 0, map[string]int64{"a": 42, "b": 67}},
		// 1 - 0.67 on both
		"stale load":         {nil, same, pod, map[string]load.Node{"a": cpuLoad(0.5, 0.1), "b": cpuLoad(0.25, 0.02)}, 5*time.Minute + 1, map[string]int64{"a": 33, "b": 33}},
		"load just in time":  {nil, same, pod, map[string]load.Node{"a": cpuLoad(0.5, 0.1)}, 5 * time.Minute, map[string]int64{"a": 42, "b": 33}},
		"only limits weigh":  {&config.LowRiskOverCommitmentArgs{RiskLimitWeight: &limitsOnly}, same, pod, map[string]load.Node{"a": cpuLoad(0.9, 0.1)}, 0, map[string]int64{"a": 33, "b": 33}},
		"only load of CPU":   {&config.LowRiskOverCommitmentArgs{RiskLimitWeights: map[string]float64{"cpu": 0}}, same, pod, map[string]load.Node{"a": cpuLoad(0.5, 0.1), "b": cpuLoad(0.25, 0.02)}, 0, map[string]int64{"a": 50, "b": 100}},
		"a load of no sense": {nil, same, pod, map[string]load.Node{"a": cpuLoad(-1, 0.1), "b": cpuLoad(0.25, -1)}, 0, map[string]int64{"a": 33, "b": 33}},
		// a runs best-effort pods at 90 %, b is idle and empty: load risk 1 and 0,
		// no limit risk
		"a best-effort pod": {
			nil,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.Pod("1", "a", nil, nil)}},
			schedtest.Pod("p", "", nil, nil),
			map[string]load.Node{"a": cpuLoad(0.9, 0.01), "b": cpuLoad(0.03, 0.002)},
			0,
			map[string]int64{"a": 50, "b": 100},
		},
		// the machine has 10, pods may have 8: 0.48 of 10 is 0.6 of 8, over the 4.4
		// requested (0.55) for certain; on b 0.4 is 0.5 and under it
		"more machine than allocatable": {
			nil,
			schedtest.Cluster{
				Nodes: []*v1.Node{machine("a", "10", "8"), machine("b", "10", "8")},
				Pods:  []*v1.Pod{schedtest.CPU("1", "a", "4400m", "4400m"), schedtest.CPU("2", "b", "4400m", "4400m"), schedtest.CPU("3", "a", "0", ""), schedtest.CPU("4", "b", "0", "")},
			},
			schedtest.CPU("p", "", "1", "1"),
			map[string]load.Node{"a": cpuLoad(0.48, 0), "b": cpuLoad(0.4, 0)},
			0,
			map[string]int64{"a": 50, "b": 100},
		},
		// memory: request 24+4 of 32, limit 48+4: excess 24, allowed 4, risk 0.83;
		// more than that of CPU
		"the riskier resource decides": {
			nil,
			schedtest.Cluster{Nodes: eight[:1], Pods: []*v1.Pod{
				schedtest.Pod("1", "a", amounts("cpu", "4", "memory", "24Gi"), amounts("cpu", "12", "memory", "48Gi")),
			}},
			schedtest.Pod("p", "", amounts("cpu", "1", "memory", "4Gi"), amounts("cpu", "2", "memory", "4Gi")),
			nil, 0,
			map[string]int64{"a": 17},
		},
	}
	for name, tc := range tests {
		for _, scoreOnly := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", score only"}[scoreOnly], func(t *testing.T) {
				plugin := schedtest.Plugin{Name: "LowRiskOverCommitment", ScoreOnly: scoreOnly}
				if tc.args != nil {
					plugin.Args = tc.args
				}
				scores, err := schedtest.Run(t, withLoad(tc.load, tc.age), plugin, tc.cluster, tc.pod)
				got := map[string]int64{}
				for node, s := range scores {
					got[node] = s.Normalised
				}
				if err != nil || !maps.Equal(got, tc.want) {
					t.Errorf("scores %v, want %v (%v)", got, tc.want, err)
				}
			})
		}
	}
}

// machine returns a node that keeps some of its CPU for itself.
func machine(name, capacity, allocatable string) *v1.Node {
	node := schedtest.Node(name, "cpu", capacity, "memory", "32Gi")
	node.Status.Allocatable = amounts("cpu", allocatable, "memory", "32Gi")
	return node
}
