package plugins

import (
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

var (
	at      = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	amounts = schedtest.Amounts
)

// withLoad returns the plugins with a reading of that age, nil for none.
func withLoad(nodes map[string]load.Node, age time.Duration) frameworkruntime.Registry {
	return RegistryWithLoad(func(maxAge time.Duration) (*load.Store, error) {
		store := load.NewStore(maxAge, func() time.Time { return at })
		if nodes == nil {
			return store, nil
		}
		return store, store.Put(load.Reading{Time: at.Add(-age), Nodes: nodes})
	})
}

func weight(name string, w int64) config.ResourceWeight {
	return config.ResourceWeight{Name: name, Weight: &w}
}

// scored is a raw and a normalised score.
type scored schedtest.Scores

type row struct {
	args    runtime.Object
	cluster schedtest.Cluster
	pod     *v1.Pod
	want    map[string]scored
}

func check(t *testing.T, name string, tests map[string]row) {
	t.Helper()
	for title, tc := range tests {
		for _, scoreOnly := range []bool{false, true} {
			t.Run(title+map[bool]string{true: ", score only"}[scoreOnly], func(t *testing.T) {
				scores, err := schedtest.Run(t, withLoad(nil, 0), schedtest.Plugin{Name: name, Args: tc.args, ScoreOnly: scoreOnly}, tc.cluster, tc.pod)
				got := map[string]scored{}
				for node, s := range scores {
					got[node] = scored(s)
				}
				if err != nil || !maps.Equal(got, tc.want) {
					t.Errorf("scores %v, want %v (%v)", got, tc.want, err)
				}
			})
		}
	}
}

func TestNodeResourcesLimits(t *testing.T) {
	cpuOnly := &config.NodeResourcesLimitsArgs{Resources: []config.ResourceWeight{weight("cpu", 1)}}
	eight := []*v1.Node{schedtest.Node("node1", "cpu", "8"), schedtest.Node("node2", "cpu", "8")}
	check(t, "NodeResourcesLimits", map[string]row{
		// node1: (8 - (6+4+4)) x 100 / 8 = -75, node2: (8 - (3+2+4)) x 100 / 8 = -12.5
		"limits, not requests": {
			cpuOnly,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{
				schedtest.CPU("1", "node1", "2", "6"), schedtest.CPU("2", "node1", "2", "4"),
				schedtest.CPU("3", "node2", "3", "3"), schedtest.CPU("4", "node2", "2", "2"),
			}},
			schedtest.CPU("5", "", "1", "4"),
			map[string]scored{"node1": {-75, 0}, "node2": {-12, 100}},
		},
		// node1 has a pod without a limit, 8 of 8: (8 - (8+2)) x 100 / 8 = -25
		// node2: (8 - (4+2)) x 100 / 8 = 25
		"a pod without a limit is reckoned with the node": {
			cpuOnly,
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "node1", "1", ""), schedtest.CPU("2", "node2", "1", "4")}},
			schedtest.CPU("5", "", "1", "2"),
			map[string]scored{"node1": {-25, 0}, "node2": {25, 100}},
		},
		// node1: (8 - (1+2)) x 100 / 8 = 62.5
		"a pod without a limit is reckoned with the default": {
			&config.NodeResourcesLimitsArgs{Resources: cpuOnly.Resources, DefaultLimits: map[string]resource.Quantity{"cpu": resource.MustParse("1")}},
			schedtest.Cluster{Nodes: eight, Pods: []*v1.Pod{schedtest.CPU("1", "node1", "1", ""), schedtest.CPU("2", "node2", "1", "4")}},
			schedtest.CPU("5", "", "1", "2"),
			map[string]scored{"node1": {62, 100}, "node2": {25, 0}},
		},
		// cpu (8-2) x 100 / 8 = 75 on both; 3 x gpu (4-2) x 100 / 4 = 150 on node1,
		// and node2 has none
		"a resource that a node lacks": {
			&config.NodeResourcesLimitsArgs{Resources: []config.ResourceWeight{weight("cpu", 1), weight("nvidia.com/gpu", 3)}},
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("node1", "cpu", "8", "nvidia.com/gpu", "4"), schedtest.Node("node2", "cpu", "8")}},
			schedtest.Pod("5", "", amounts("cpu", "2", "nvidia.com/gpu", "2"), amounts("cpu", "2", "nvidia.com/gpu", "2")),
			map[string]scored{"node1": {225, 100}, "node2": {75, 0}},
		},
		// cpu (8-2) x 100 / 8 = 75; memory, without a limit, (n-n) = 0: 75 on both
		"nothing tells them apart": {
			nil,
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("node1", "cpu", "8", "memory", "8Gi"), schedtest.Node("node2", "cpu", "8", "memory", "4Gi")}},
			schedtest.CPU("5", "", "1", "2"),
			map[string]scored{"node1": {75, 0}, "node2": {75, 0}},
		},
		// node1: (1 - 2^63) x 100 / 1 does not fit an int64
		"amounts beyond all bounds": {
			cpuOnly,
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("node1", "cpu", "1m"), schedtest.Node("node2", "memory", "1Gi")}},
			schedtest.CPU("5", "", "1m", "9E"),
			map[string]scored{"node1": {-math.MaxInt64, 0}, "node2": {0, 100}},
		},
	})
}

func TestNodeResourcesAllocatable(t *testing.T) {
	nodes := []*v1.Node{schedtest.Node("small", "cpu", "10"), schedtest.Node("middle", "cpu", "50"), schedtest.Node("large", "cpu", "200")}
	cpuOnly := []config.ResourceWeight{weight("cpu", 1)}
	check(t, "NodeResourcesAllocatable", map[string]row{
		// middle: (-50000 + 200000) x 100 / 190000 = 78.9
		"least": {
			&config.NodeResourcesAllocatableArgs{Resources: cpuOnly},
			schedtest.Cluster{Nodes: nodes, Pods: []*v1.Pod{schedtest.CPU("1", "small", "9", "9")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string]scored{"small": {-10000, 100}, "middle": {-50000, 78}, "large": {-200000, 0}},
		},
		// middle: (50000 - 10000) x 100 / 190000 = 21.05
		"most": {
			&config.NodeResourcesAllocatableArgs{Mode: config.Most, Resources: cpuOnly},
			schedtest.Cluster{Nodes: nodes},
			schedtest.CPU("5", "", "1", "1"),
			map[string]scored{"small": {10000, 0}, "middle": {50000, 21}, "large": {200000, 100}},
		},
		// (1048576 x 4000 + 16 Gi) / 1048577 = 20383.9
		"the default weights": {
			nil,
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("a", "cpu", "4", "memory", "16Gi"), schedtest.Node("b", "cpu", "4", "memory", "16Gi")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string]scored{"a": {-20383, 0}, "b": {-20383, 0}},
		},
		// (2^31-1) x 8 EiB would not fit even 64 bits without a sign
		"large weights and amounts": {
			&config.NodeResourcesAllocatableArgs{Mode: config.Most, Resources: []config.ResourceWeight{weight("memory", config.MaxWeight)}},
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("a", "memory", "7Ei"), schedtest.Node("b", "memory", "1")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string]scored{"a": {7 << 60, 100}, "b": {1, 0}},
		},
		"nothing allocatable": {
			nil,
			schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("a"), schedtest.Node("b", "cpu", "0", "memory", "0")}},
			schedtest.CPU("5", "", "1", "1"),
			map[string]scored{"a": {0, 0}, "b": {0, 0}},
		},
	})
}

// Bad arguments are an error when the plugin is made, and name the field.
func TestBadArguments(t *testing.T) {
	tests := map[string]struct {
		plugin schedtest.Plugin
		want   string
	}{
		"limits":      {schedtest.Plugin{Name: "NodeResourcesLimits", Args: &config.NodeResourcesLimitsArgs{Resources: []config.ResourceWeight{{Name: "cpus"}}}}, "args of NodeResourcesLimits: resources[0].name"},
		"allocatable": {schedtest.Plugin{Name: "NodeResourcesAllocatable", Args: &config.NodeResourcesAllocatableArgs{Mode: "Best"}}, "args of NodeResourcesAllocatable: mode"},
		"risk":        {schedtest.Plugin{Name: "LowRiskOverCommitment", Args: &config.LowRiskOverCommitmentArgs{SmoothingWindowSize: new(int64)}}, "args of LowRiskOverCommitment: smoothingWindowSize"},
		"of another":  {schedtest.Plugin{Name: "LowRiskOverCommitment", Args: &config.NodeResourcesLimitsArgs{}}, "args of LowRiskOverCommitment: want *config.LowRiskOverCommitmentArgs, got *config.NodeResourcesLimitsArgs"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := schedtest.New(t.Context(), Registry(), tc.plugin, schedtest.Cluster{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
		})
	}
}
