package predictedutilization

import (
	"math"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// withLoad returns a registry of the plugin with a reading of load, or without load.
func withLoad(nodes map[string]load.Node) frameworkruntime.Registry {
	return frameworkruntime.Registry{Name: shared.NewWithLoad(schedtest.WithLoad(nodes, 0), nil).Share(New)}
}

// of makes a pod belong to a ReplicaSet.
func of(name string, pod *v1.Pod) *v1.Pod {
	controller := true
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name, Controller: &controller}}
	return pod
}

func TestScoreWithoutLoad(t *testing.T) {
	four := []*v1.Node{schedtest.Node("free", "cpu", "4", "memory", "16Gi"), schedtest.Node("used", "cpu", "4", "memory", "16Gi")}
	pod := of("web", schedtest.CPU("p", "", "1", ""))
	for name, tc := range map[string]struct {
		deviations float64
		on         *v1.Pod
		want       map[string]int64
	}{
		// Each pod: mean 1000, variance 400^2 + 300^2 + 700^2 = 740000.
		// free: 1000 + sqrt(740000) = 1860: 1 - 0.465 = 0.535. used: 2000 + sqrt(1480000) = 3217: 1 - 0.804 = 0.196.
		"another workload": {1, of("db", schedtest.CPU("1", "used", "1", "")), map[string]int64{"free": 53, "used": 20}},
		// used: 1480000 + 2 x 700^2 = 2460000: 2000 + 1568 = 3568: 1 - 0.892 = 0.108.
		"the same workload": {1, of("web", schedtest.CPU("1", "used", "1", "")), map[string]int64{"free": 53, "used": 11}},
		// free: 1000 + 2 x 860 = 2720: 1 - 0.68. used: 2000 + 2 x 1217 = 4433, more than the node has: 1 - 1.108.
		"two deviations": {
			2, of("db", schedtest.CPU("1", "used", "1", "")), map[string]int64{"free": 32, "used": -11},
		},
		// No request: mean 100, variance 100^2 + 50^2 + 50^2 = 15000; with the pending pod 755000: 1100 + 869 = 1969.
		"without a request": {
			1, of("db", schedtest.Pod("1", "used", schedtest.Amounts(), schedtest.Amounts())), map[string]int64{"free": 53, "used": 51},
		},
	} {
		t.Run(name, func(t *testing.T) {
			plugin := schedtest.Plugin{Name: Name, Args: &config.PredictedUtilizationArgs{Deviations: &tc.deviations}}
			cluster := schedtest.Cluster{Nodes: four, Pods: []*v1.Pod{tc.on}}
			scores, err := schedtest.Run(t, withLoad(nil), plugin, cluster, pod)
			must.Succeed(t, err)
			for node, want := range tc.want {
				if got := int64(math.Round(float64(scores[node].Raw) / pointUnits)); got != want {
					t.Errorf("%s scores %d, want %d", node, got, want)
				}
			}
		})
	}
}

// A node whose pods use three times their requests scores lower than a node with the same requests whose pods use half of them.
func TestScoreFollowsLoad(t *testing.T) {
	nodes := []*v1.Node{schedtest.Node("hot", "cpu", "16", "memory", "64Gi"), schedtest.Node("cool", "cpu", "16", "memory", "64Gi")}
	pods := []*v1.Pod{of("a", schedtest.CPU("1", "hot", "4", "")), of("b", schedtest.CPU("2", "cool", "4", ""))}
	measured := map[string]load.Node{"hot": schedtest.CPULoad(0.75, 0.02), "cool": schedtest.CPULoad(0.125, 0.02)}
	scores, err := schedtest.Run(t, withLoad(measured), schedtest.Plugin{Name: Name}, schedtest.Cluster{Nodes: nodes, Pods: pods},
		of("c", schedtest.CPU("p", "", "1", "")))
	must.Succeed(t, err)
	if scores["hot"].Normalized >= scores["cool"].Normalized {
		t.Errorf("hot scores %d, cool %d: want less", scores["hot"].Normalized, scores["cool"].Normalized)
	}
}

// TestExplain has a node of 4 CPUs with two pods of another workload, which request 1 CPU each and use 0.8 of it by the load
// of the node.
func TestExplain(t *testing.T) {
	state := framework.NewCycleState()
	pod := of("web", schedtest.CPU("p", "", "1", ""))
	for name, tc := range map[string]struct {
		load             map[string]load.Node
		wantPod, wantCPU []string
	}{
		// See TestScoreWithoutLoad: mean 2000 and variance 1480000 on the node, 740000 of the pod: 3000 + 0.5 x sqrt(2220000) = 3745.
		"without load": {
			nil,
			[]string{"CPU 1.00 cores (1.00 of its request, as pods with a request)", "memory 0.20 GiB (as pods without a request)"},
			[]string{"CPU 94 % of 4.00 cores: 2.00 on the node, 1.00 by the pod, +0.74 as deviation", "; memory "},
		},
		"with load": {
			map[string]load.Node{"n": schedtest.CPULoad(0.2, 0.01)},
			// The measured load says that the pods use less, not what other pods do.
			[]string{"CPU 1.00 cores (1.00 of its request, as pods with a request)"},
			[]string{"0.80 on the node (-1.20 by its measured load)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("n", "cpu", "4", "memory", "16Gi")}, Pods: []*v1.Pod{
				of("db", schedtest.CPU("1", "n", "1", "")), of("api", schedtest.CPU("2", "n", "1", "")),
			}}
			s, err := schedtest.New(t.Context(), withLoad(tc.load), schedtest.Plugin{Name: Name}, cluster)
			must.Succeed(t, err)
			pl := s.Plugin.(*plugin)
			for text, wanted := range map[string][]string{
				pl.ExplainPod(state.Clone(), pod): tc.wantPod, pl.ExplainNode(state.Clone(), pod, s.Nodes[0]): tc.wantCPU,
			} {
				for _, want := range wanted {
					if !strings.Contains(text, want) {
						t.Errorf("%s\nlacks %s", text, want)
					}
				}
			}
		})
	}
}
