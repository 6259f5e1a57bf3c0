package predictedutilization

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	internalconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// drawPod draws a pod with one or two containers, each with some requests, and with overhead or an init container.
func drawPod(t *rapid.T, name, node string) *v1.Pod {
	pod := schedtest.Pod(name, node, schedtest.Amounts(), schedtest.Amounts())
	amounts := func(label string) v1.ResourceList {
		list := schedtest.Amounts()
		if rapid.Bool().Draw(t, label+" has CPU") {
			list = schedtest.Amounts("cpu", fmt.Sprint(rapid.IntRange(0, 3000).Draw(t, label+" CPU"), "m"))
		}
		if rapid.Bool().Draw(t, label+" has memory") {
			list[v1.ResourceMemory] = schedtest.Amounts("memory", fmt.Sprint(rapid.IntRange(0, 6000).Draw(t, label+" memory"), "Mi"))[v1.ResourceMemory]
		}
		return list
	}
	pod.Spec.Containers[0].Resources.Requests = amounts("first")
	if rapid.Bool().Draw(t, "second") {
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: "second"})
		pod.Spec.Containers[1].Resources.Requests = amounts("second")
	}
	if rapid.Bool().Draw(t, "init") {
		pod.Spec.InitContainers = []v1.Container{{Name: "init"}}
		pod.Spec.InitContainers[0].Resources.Requests = amounts("init")
	}
	if rapid.Bool().Draw(t, "overhead") {
		pod.Spec.Overhead = schedtest.Amounts("cpu", "50m")
	}
	return pod
}

// TestTermsEqualInTreePlugins compares the terms of requests with the scores of the plugins of kube-scheduler.
func TestTermsEqualInTreePlugins(t *testing.T) {
	resources := []internalconfig.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	weights := func(utilization, least, balanced int64) *config.PredictedUtilizationArgs {
		return &config.PredictedUtilizationArgs{
			TermWeights: config.TermWeights{Utilization: &utilization, LeastAllocated: &least, BalancedAllocation: &balanced},
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		var cluster schedtest.Cluster
		for i := range rapid.IntRange(1, 4).Draw(rt, "nodes") {
			name, amounts := fmt.Sprint("node-", i), []string{"pods", "110"}
			if rapid.IntRange(0, 9).Draw(rt, "no CPU") > 0 {
				amounts = append(amounts, "cpu", fmt.Sprint(rapid.IntRange(1, 8).Draw(rt, "cores")))
			}
			if rapid.IntRange(0, 9).Draw(rt, "no memory") > 0 {
				amounts = append(amounts, "memory", fmt.Sprint(rapid.IntRange(1, 16).Draw(rt, "GiB"), "Gi"))
			}
			cluster.Nodes = append(cluster.Nodes, schedtest.Node(name, amounts...))
			for j := range rapid.IntRange(0, 4).Draw(rt, "pods") {
				cluster.Pods = append(cluster.Pods, drawPod(rt, fmt.Sprint("pod-", i, "-", j), name))
			}
		}
		pod := drawPod(rt, "pending", "")
		for _, tc := range []struct {
			args  *config.PredictedUtilizationArgs
			other schedtest.Plugin
		}{
			{weights(0, 1, 0), schedtest.Plugin{Name: names.NodeResourcesFit, Args: &internalconfig.NodeResourcesFitArgs{
				ScoringStrategy: &internalconfig.ScoringStrategy{Type: internalconfig.LeastAllocated, Resources: resources},
			}}},
			{weights(0, 0, 1), schedtest.Plugin{
				Name: names.NodeResourcesBalancedAllocation, Args: &internalconfig.NodeResourcesBalancedAllocationArgs{Resources: resources},
				ScoreOnly: true, // PreScore skips pods without requests
			}},
		} {
			got, err := schedtest.Run(t, withLoad(nil), schedtest.Plugin{Name: Name, Args: tc.args}, cluster, pod)
			must.Succeed(rt, err)
			want, err := schedtest.Run(t, nil, tc.other, cluster, pod)
			must.Succeed(rt, err)
			for node := range want {
				if got[node].Raw != pointUnits*want[node].Normalized {
					rt.Errorf("%s on %s: got %d/1000, want %d", tc.other.Name, node, got[node].Raw, want[node].Normalized)
				}
			}
		}
	})
}

// TestWeightedTerms has one pod of 1 CPU, of another workload, on node used. See TestScoreWithoutLoad: the utilization terms are 53.5 and
// 19.6.
//
//	least allocated: free: CPU 75, memory 98 (200 MiB of 16 GiB): 86. used: CPU 50, memory 97: 73.
//	balanced: free: 100 - 25/2 = 87 after and 100 before: 50 + (50 - 13)/2 = 68. used: 75 after and 87 before: 50 + (50 - 12)/2 = 69.
//	before anything is measured: free: (86 + 68)/7 = 22. used: (73 + 69)/7 = 20.286: 1.714 less, 100 - 4 after stretching. With weight 3,
//	the nodes differ by 12, as with the default profile: 86 + 68 - 73 - 69.
//	otherwise: free: (5 x 53.494 + 86 + 68)/7 = 60.210. used: (5 x 19.586 + 73 + 69)/7 = 34.276: 25.934 less, 100 - 60.5.
func TestWeightedTerms(t *testing.T) {
	five, one := int64(5), int64(1)
	args := &config.PredictedUtilizationArgs{
		TermWeights: config.TermWeights{Utilization: &five, LeastAllocated: &one, BalancedAllocation: &one},
	}
	cluster := schedtest.Cluster{
		Nodes: []*v1.Node{schedtest.Node("free", "cpu", "4", "memory", "16Gi"), schedtest.Node("used", "cpu", "4", "memory", "16Gi")},
		Pods:  []*v1.Pod{of("db", schedtest.CPU("1", "used", "1", ""))},
	}
	schedtest.CheckScores(t, withLoad(nil), schedtest.Plugin{Name: Name, Args: args}, cluster, of("web", schedtest.CPU("p", "", "1", "")),
		map[string][2]int64{"free": {22_000, 100}, "used": {20_286, 96}})
	weights := termWeightsOf(&args.TermWeights)
	nodes := fwk.NodeScoreList{{Score: weights.rawScore(terms{53.494, 86, 68})}, {Score: weights.rawScore(terms{19.586, 73, 69})}}
	if nodes[0].Score != 60_210 || nodes[1].Score != 34_276 {
		t.Errorf("raw scores %v, want 60210 and 34276", nodes)
	}
	if normalize(nodes); nodes[0].Score != 100 || nodes[1].Score != 39 {
		t.Errorf("scores %v, want 100 and 39", nodes)
	}
}
