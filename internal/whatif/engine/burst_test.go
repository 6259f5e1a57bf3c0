package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// lowRiskOnly is a profile with LowRiskOverCommitment as the only score plugin.
const lowRiskOnly = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
parallelism: 1
profiles:
- plugins:
    score: {disabled: [{name: "*"}], enabled: [{name: LowRiskOverCommitment, weight: 1}]}
  pluginConfig: [{name: LowRiskOverCommitment, args: {riskLimitWeight: 0, countRecentPods: %t}}]
`

// burst schedules 100 pods before the load is measured again, and returns the number of
// pods on each of ten nodes with 16 cores. Each node has one older pod.
func burst(t *testing.T, countRecent bool, cpu func(i int) load.Utilization, running func(i int) string, request string) map[string]int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	must.Succeed(t, os.WriteFile(path, fmt.Appendf(nil, lowRiskOnly, countRecent), 0o600))
	cfg, err := config.Load(path)
	must.Succeed(t, err)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	reading := &load.Reading{Time: now.Add(-20 * time.Second), Window: 15 * time.Minute, Nodes: map[string]load.Node{}}
	var cluster Cluster
	for i := range 10 {
		name := fmt.Sprintf("node-%d", i)
		cluster.Nodes = append(cluster.Nodes, node(name, "16"))
		old := pod("old-"+name, name, running(i), "16")
		old.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue,
			LastTransitionTime: metav1.NewTime(now.Add(-time.Hour)),
		}}
		cluster.Running = append(cluster.Running, old)
		reading.Nodes[name] = load.Node{CPU: cpu(i), HasCPU: true}
	}
	e := newEngine(t, cluster, Options{Config: cfg, Load: reading, Clock: func() time.Time { return now }})
	got := map[string]int{}
	for i := range 100 {
		p := pod(fmt.Sprintf("burst-%d", i), "", request, "16")
		if request == "0" {
			p.Spec.Containers[0].Resources = v1.ResourceRequirements{} // a request of 0 differs from no request
		}
		name, err := e.Schedule(t.Context(), p, "")
		must.Succeed(t, err)
		got[name]++
	}
	return got
}

// highest returns the highest number of pods on a node.
func highest(counts map[string]int) (highest int) {
	for _, n := range counts {
		highest = max(highest, n)
	}
	return highest
}

// TestBurstSpreadsOverEqualNodes has equal nodes with a usage equal to their requests. A new pod
// adds its request immediately and its usage only with the next measurement, so that its node seems
// to have a lower risk than other nodes unless recent pods are counted.
func TestBurstSpreadsOverEqualNodes(t *testing.T) {
	cpu := func(int) load.Utilization { return load.Utilization{Mean: 0.3, StdDev: 0.05} }
	running := func(int) string { return "4800m" } // 30 % of 16 cores
	with, without := burst(t, true, cpu, running, "500m"), burst(t, false, cpu, running, "500m")
	t.Logf("pods per node, recent pods counted: %v; not counted: %v", with, without)
	// Each pod adds 500m of requests: after 22 pods the 16 cores are requested.
	if highest(without) < 20 {
		t.Errorf("recent pods not counted: at most %d pods on a node, want at least 20", highest(without))
	}
	if len(with) != 10 || highest(with) > 14 {
		t.Errorf("recent pods counted: %d nodes, at most %d pods on one; want 10 nodes, at most 14 pods", len(with), highest(with))
	}
}

// TestBurstOfBestEffortPodsSpreads has one idle node and pods without requests, which count as 100m
// each as in kube-scheduler: with (0.3 - 0.05) x 16 cores = 40 pods the node is as loaded as the
// other nine nodes, and the remaining 60 pods are spread over all ten: 46 and 6 each.
func TestBurstOfBestEffortPodsSpreads(t *testing.T) {
	cpu := func(i int) load.Utilization {
		if i == 0 {
			return load.Utilization{Mean: 0.05, StdDev: 0.03}
		}
		return load.Utilization{Mean: 0.3, StdDev: 0.03}
	}
	running := func(int) string { return "4" } // 25 %
	with, without := burst(t, true, cpu, running, "0"), burst(t, false, cpu, running, "0")
	t.Logf("pods per node, recent pods counted: %v; not counted: %v", with, without)
	if without["node-0"] != 100 {
		t.Errorf("recent pods not counted: %d pods on the idle node, want all", without["node-0"])
	}
	if n := with["node-0"]; n < 43 || n > 49 || len(with) != 10 {
		t.Errorf("recent pods counted: %d pods on the idle node, %d nodes; want about 46 pods, 10 nodes", n, len(with))
	}
}
