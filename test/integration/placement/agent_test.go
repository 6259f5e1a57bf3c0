package placement

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// loadOfExample is the load of the nodes of TestExample in internal/controllers/agent: on node b, pods use more CPU than
// they request.
const loadOfExample = `{"timestamp":%d,"window":{"duration":"15m","start":%d,"end":%d},"source":"file","data":{"NodeMetricsMap":{
"a":{"metrics":[{"type":"CPU","operator":"AVG","value":10},{"type":"CPU","operator":"STD","value":0}]},
"b":{"metrics":[{"type":"CPU","operator":"AVG","value":45},{"type":"CPU","operator":"STD","value":0}]}}}}`

// limited returns a running pod with limits; none if they are empty.
func limited(name, node, cpu, memory, cpuLimit, memoryLimit string) *v1.Pod {
	pod := testcluster.RunningPod(name, node, cpu, memory)
	if cpuLimit != "" {
		pod.Spec.Containers[0].Resources.Limits = schedtest.Amounts("cpu", cpuLimit, "memory", memoryLimit)
	}
	return pod
}

// awaitLog waits until the log of a program contains a text.
func awaitLog(t *testing.T, log fmt.Stringer, text string) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%q was not logged", text), log, func(context.Context) (bool, error) {
		return strings.Contains(log.String(), text), nil
	})
}

// TestAgent checks the reports of two clusters with the RBAC rules of the examples, also after outages of the
// hub and with expired credentials.
func TestAgent(t *testing.T) {
	h := testcluster.StartFleetHub(t)
	files := t.TempDir()
	at := func(cluster string) string { return filepath.Join(files, cluster) }
	for _, cluster := range []string{"cluster1", "cluster2"} {
		h.Accept(t, cluster)
		h.Credentials(t, cluster, at(cluster))
	}
	one, two := h.Cluster, testcluster.Start(t) // the hub is a member, too
	flagsOne, flagsTwo := one.AgentFlags(t), two.AgentFlags(t)

	// The cluster of TestExample in internal/controllers/agent.
	one.Create(t, testcluster.ReadyNode("a", "8", "32Gi", nil))
	one.Create(t, testcluster.ReadyNode("b", "8", "32Gi", nil))
	special := testcluster.ReadyNode("special", "64", "512Gi", nil)
	special.Spec.Taints = []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}
	one.Create(t, special)
	one.Create(t, limited("web", "a", "6", "8Gi", "12", "16Gi"))
	one.Create(t, limited("db", "b", "3", "24Gi", "4", "24Gi"))
	one.Create(t, limited("agent", "b", "0", "0", "", ""))
	now := time.Now().Unix()
	source := testcluster.WriteFile(t, fmt.Sprintf(loadOfExample, now, now-900, now))
	agentOne := one.StartController(t, append(flagsOne, "--cluster-name=cluster1", "--hub-kubeconfig="+at("cluster1"),
		"--load-provider=File",
		"--load-address="+source)...)
	two.Create(t, testcluster.ReadyNode("only", "4", "16Gi", nil))
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	agentTwo := two.StartController(t, append(flagsTwo, "--metrics-bind-address="+metrics, "--cluster-name=cluster2",
		"--hub-kubeconfig="+at("cluster2"))...)

	example := map[string]int32{
		"freeCPU": -12, "freeMemory": 0, "freeCores": -70, "freeGiB": -49, "limitRoomCPU": -20, "limitRoomMemory": 25,
		// On 8 of 16 cores the load exceeds the requests: 0.45 x 8 > 3.
		"lowLoadRisk": 0,
	}
	empty := map[string]int32{
		"freeCPU": 100, "freeMemory": 100, "freeCores": -76, "freeGiB": -59, "limitRoomCPU": 100,
		"limitRoomMemory": 100,
	}
	half := map[string]int32{"freeCPU": 0, "freeMemory": 0, "freeCores": -84, "freeGiB": -68, "limitRoomCPU": 0, "limitRoomMemory": 0}

	t.Run("scores and resources", func(t *testing.T) {
		h.AwaitScores(t, agentOne, "cluster1", example)
		h.AwaitScores(t, agentTwo, "cluster2", empty)
		h.AwaitResources(t, agentOne, "cluster1", "cpu=80/80 memory=576Gi/576Gi pods=330/330")
		h.AwaitResources(t, agentTwo, "cluster2", "cpu=4/4 memory=16Gi/16Gi pods=110/110")
	})
	t.Run("capacity", func(t *testing.T) {
		// a: 8 - 6 CPU; b: 8 - 3 CPU; special has a taint.
		h.AwaitFit(t, agentOne, "cluster1", testcluster.TemplateOf("1", "1Gi"), 2+5)
		h.AwaitFit(t, agentOne, "cluster1", testcluster.TemplateOf("6", "1Gi"), 0)
		h.AwaitFit(t, agentTwo, "cluster2", testcluster.TemplateOf("1", "1Gi"), 4)
	})
	t.Run("changes of pods and nodes", func(t *testing.T) {
		two.Create(t, limited("half", "only", "2", "8Gi", "4", "16Gi"))
		t.Log("scores with the new pod after", h.AwaitScores(t, agentTwo, "cluster2", half))
		must.Succeed(t, two.Client.Delete(t.Context(), testcluster.RunningPod("half", "", "0", "0"), client.GracePeriodSeconds(0)))
		h.AwaitScores(t, agentTwo, "cluster2", empty)
		var special v1.Node
		must.Succeed(t, one.Client.Get(t.Context(), client.ObjectKey{Name: "special"}, &special))
		special.Spec.Unschedulable = true
		must.Succeed(t, one.Client.Update(t.Context(), &special))
		h.AwaitResources(t, agentOne, "cluster1", "cpu=16/80 memory=64Gi/576Gi pods=220/330")
	})
	t.Run("slack", func(t *testing.T) {
		policy := testcluster.PolicyOf("general", "10%", nil)
		one.Create(t, policy)
		list := func(cpu, memory string) v1.ResourceList { return schedtest.Amounts("cpu", cpu, "memory", memory) }
		policy.Status = v1alpha1.ResourceSlackStatus{Target: list("4", "8Gi"), Available: list("2", "16Gi")}
		must.Succeed(t, one.Client.Status().Update(t.Context(), policy))
		with := map[string]int32{"slackCPU": -50, "slackMemory": 50}
		maps.Copy(with, example)
		h.AwaitScores(t, agentOne, "cluster1", with)
		must.Succeed(t, one.Client.Delete(t.Context(), policy))
		h.AwaitScores(t, agentOne, "cluster1", example)
	})
	t.Run("scores deleted on the hub are written again", func(t *testing.T) {
		score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: "plimsoll"}}
		must.Succeed(t, h.Strict.Delete(t.Context(), score))
		h.AwaitScores(t, agentTwo, "cluster2", empty)
	})
	t.Run("the hub is unreachable", func(t *testing.T) {
		h.Proxy.Disconnect()
		awaitLog(t, agentTwo, "the hub is unreachable")
		two.Create(t, limited("half", "only", "2", "8Gi", "4", "16Gi"))
		eventually.True(t, "the scores do not expire", agentTwo, func(ctx context.Context) (bool, error) {
			_, until, err := h.Scores(ctx, "cluster2")
			return until.Before(time.Now()), err
		})
		h.Proxy.Reconnect(t)
		took := h.AwaitScores(t, agentTwo, "cluster2", half)
		if t.Log("newest scores on the hub after", took); took > 30*time.Second {
			t.Errorf("newest scores after %s, want at most 30s", took)
		}
		awaitLog(t, agentTwo, "Report succeeded again")
	})
	t.Run("the hub does not respond on existing connections", func(t *testing.T) {
		before := strings.Count(agentTwo.String(), "the hub is unreachable")
		h.Proxy.DropData()
		eventually.True(t, "the outage of the hub is not logged", agentTwo, func(context.Context) (bool, error) {
			return strings.Count(agentTwo.String(), "the hub is unreachable") > before, nil
		})
		must.Succeed(t, two.Client.Delete(t.Context(), testcluster.RunningPod("half", "", "0", "0"), client.GracePeriodSeconds(0)))
		h.Proxy.ForwardData()
		took := h.AwaitScores(t, agentTwo, "cluster2", empty)
		if t.Log("newest scores on the hub after", took); took > 30*time.Second {
			t.Errorf("newest scores after %s, want at most 30s", took)
		}
	})
	t.Run("credentials are revoked and renewed", func(t *testing.T) {
		account := &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: "plimsoll-agent"}}
		must.Succeed(t, h.Strict.Delete(t.Context(), account))
		awaitLog(t, agentTwo, "they may have expired or been revoked; replace them in the file")
		must.Succeed(t, h.Strict.Create(t.Context(), &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster2",
			Name:      "plimsoll-agent",
		}}))
		h.Credentials(t, "cluster2", at("cluster2"))
		two.Create(t, limited("quarter", "only", "1", "4Gi", "2", "8Gi"))
		h.AwaitScores(t, agentTwo, "cluster2", map[string]int32{
			"freeCPU": 50, "freeMemory": 50, "freeCores": -80, "freeGiB": -62,
			"limitRoomCPU": 50, "limitRoomMemory": 50,
		})
	})
	t.Run("metrics", func(t *testing.T) {
		served := testcluster.Scrape(t, metrics, "plimsoll_", "# ")
		testcluster.ExpectMetrics(t, served, "agent")
		for _, line := range []string{
			`plimsoll_agent_score{score="freeCPU"} 50`, `plimsoll_agent_failures_total{reason="unreachable"} `,
			`plimsoll_agent_resources_foreign 0`,
		} {
			if !strings.Contains(served, line) {
				t.Errorf("metrics lack %s:\n%s", line, served)
			}
		}
		last := strings.TrimSpace(strings.TrimPrefix(testcluster.Scrape(t, metrics, "plimsoll_agent_last_report_timestamp_seconds"),
			"plimsoll_agent_last_report_timestamp_seconds"))
		at, err := strconv.ParseFloat(last, 64)
		if age := time.Since(time.UnixMilli(int64(1000 * at))); err != nil || age < 0 || age > time.Minute {
			t.Errorf("the last report was %s ago (%s): %v", age, last, err)
		}
	})
	agentOne.Stop(t)
	agentTwo.Stop(t)
	// The RBAC rules of the example are sufficient in the member cluster.
	if strings.Contains(agentOne.String(), "orbidden") {
		t.Error(agentOne)
	}
	must.Succeed(t, two.Client.Delete(t.Context(), testcluster.RunningPod("quarter", "", "0", "0"), client.GracePeriodSeconds(0)))
	t.Run("a restarted agent", func(t *testing.T) {
		two.Create(t, limited("half", "only", "2", "8Gi", "4", "16Gi"))
		agent := two.StartController(t, append(flagsTwo, "--cluster-name=cluster2", "--hub-kubeconfig="+at("cluster2"))...)
		h.AwaitScores(t, agent, "cluster2", half)
		agent.Stop(t)
	})
	t.Run("resources of another client", func(t *testing.T) { reportedByOthers(t, h, two, flagsTwo, at) })
	t.Run("rights", func(t *testing.T) { rights(t, h, two, flagsTwo, at) })
}

// reportedByOthers checks an agent of a cluster whose resources another field manager reports.
func reportedByOthers(t *testing.T, h *testcluster.Hub, member *testcluster.Cluster, flags []string, at func(string) string) {
	h.Accept(t, "cluster3")
	h.Credentials(t, "cluster3", at("cluster3"))
	managed := &clusterv1.ManagedCluster{}
	must.Succeed(t, h.Strict.Get(t.Context(), client.ObjectKey{Name: "cluster3"}, managed))
	managed.Status.Conditions = []metav1.Condition{}
	managed.Status.Capacity = clusterv1.ResourceList{"cpu": resource.MustParse("7"), "memory": resource.MustParse("7Gi")}
	managed.Status.Allocatable = managed.Status.Capacity
	must.Succeed(t, h.Strict.Status().Update(t.Context(), managed, client.FieldOwner("registration")))
	flags = append(flags, "--cluster-name=cluster3", "--hub-kubeconfig="+at("cluster3"))
	agent := member.StartController(t, flags...)
	awaitLog(t, agent, `the agent does not" cluster="cluster3"`)
	if got, err := h.Resources(t.Context(), "cluster3"); err != nil || got != "cpu=7/7 memory=7Gi/7Gi pods=0/0" {
		t.Error(got, err)
	}
	eventually.True(t, "no scores are reported", agent, func(ctx context.Context) (bool, error) {
		scores, _, err := h.Scores(ctx, "cluster3")
		return len(scores) > 0, err
	})
	agent.Stop(t)
	// Another client changes resources that the agent has reported: the agent does not overwrite them.
	managed = &clusterv1.ManagedCluster{}
	must.Succeed(t, h.Strict.Get(t.Context(), client.ObjectKey{Name: "cluster2"}, managed))
	managed.Status.Conditions, managed.Status.Allocatable["cpu"] = []metav1.Condition{}, resource.MustParse("3")
	must.Succeed(t, h.Strict.Status().Update(t.Context(), managed, client.FieldOwner("registration")))
	agent = member.StartController(t, append(flags, "--cluster-name=cluster2", "--hub-kubeconfig="+at("cluster2"))...)
	awaitLog(t, agent, `the agent does not" cluster="cluster2"`)
	if got, err := h.Resources(t.Context(), "cluster2"); err != nil || got != "cpu=3/4 memory=16Gi/16Gi pods=110/110" {
		t.Error(got, err)
	}
	agent.Stop(t)
	agent = member.StartController(t, append(flags, "--report-resources=always")...)
	h.AwaitResources(t, agent, "cluster3", "cpu=4/4 memory=16Gi/16Gi pods=110/110")
	agent.Stop(t)
}

// rights checks the requests that an agent may not make, and an agent without permissions.
func rights(t *testing.T, h *testcluster.Hub, member *testcluster.Cluster, flags []string, at func(string) string) {
	c := testcluster.PlacementClient(t, h.Credentials(t, "cluster2", at("cluster2")))
	scores := clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster2", Name: "plimsoll"}}
	otherCluster, otherName := scores, scores
	otherCluster.Namespace, otherName.Name = "cluster1", "another"
	own := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster2"}}
	other := clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: "cluster1"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	for name, request := range map[string]func(ctx context.Context) error{
		"read its scores": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(&scores), scores.DeepCopy())
		},
		"delete its scores":               func(ctx context.Context) error { return c.Delete(ctx, scores.DeepCopy()) },
		"patch another name":              func(ctx context.Context) error { return c.Status().Patch(ctx, otherName.DeepCopy(), patch) },
		"create another name":             func(ctx context.Context) error { return c.Create(ctx, otherName.DeepCopy()) },
		"patch scores of another cluster": func(ctx context.Context) error { return c.Status().Patch(ctx, otherCluster.DeepCopy(), patch) },
		"read its cluster": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Name: "cluster2"}, own.DeepCopy())
		},
		"label its cluster":     func(ctx context.Context) error { return c.Patch(ctx, own.DeepCopy(), patch) },
		"patch another cluster": func(ctx context.Context) error { return c.Status().Patch(ctx, other.DeepCopy(), patch) },
		"list clusters":         func(ctx context.Context) error { return c.List(ctx, &clusterv1.ManagedClusterList{}) },
		"list secrets": func(ctx context.Context) error {
			return c.List(ctx, &v1.SecretList{}, client.InNamespace("cluster2"))
		},
	} {
		if err := request(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("%s: error %v, want Forbidden", name, err)
		}
	}
	// An agent with the name of another cluster logs a remedy and retries.
	agent := member.StartController(t, append(flags, "--cluster-name=cluster1", "--hub-kubeconfig="+at("cluster2"))...)
	awaitLog(t, agent, `check that \"cluster1\" is the name of the cluster on the hub and that examples/placement/agent-hub-rbac.yaml `+
		`was applied for it`)
	agent.Stop(t)
}

// TestControllerFlags checks that invalid flags are reported in one line that names the flag, with exit code 2.
func TestControllerFlags(t *testing.T) {
	t.Parallel()
	stdout, stderr, code := program.Run(t, program.Path(t, "plimsoll-controller"), "--help")
	for _, want := range []string{"--controllers", "--adopt", "annotated", "--leader-elect", "placement: select managed clusters"} {
		if code != 0 || !strings.Contains(stdout+stderr, want) {
			t.Errorf("--help, exit code %d, lacks %q:\n%s%s", code, want, stdout, stderr)
		}
	}
	good, empty := testcluster.WriteFile(t,
		"apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, "+
			"cluster: {server: 'https://127.0.0.1:1'}}]\n"), testcluster.WriteFile(t, "")
	all := func(more ...string) []string {
		return append([]string{"--agent", "--cluster-name=a", "--kubeconfig=" + good, "--hub-kubeconfig=" + good}, more...)
	}
	for want, args := range map[string][]string{
		`--adopt: invalid value "some": must be annotated or all`:           {"--adopt=some"},
		`--controllers: invalid value "placements": must be slack or`:       {"--controllers=placements"},
		"unknown flag: --adpot; did you mean --adopt?":                      {"--adpot=all"},
		`unexpected argument "placement": plimsoll-controller has flags`:    {"placement"},
		"--kubeconfig: stat /nowhere: no such file or directory":            {"--kubeconfig=/nowhere"},
		"--cluster-name: required":                                          {"--agent"},
		`--cluster-name: invalid value "A_b"`:                               all("--cluster-name=A_b"),
		"--hub-kubeconfig: required":                                        {"--agent", "--cluster-name=a"},
		"--hub-kubeconfig: open /nonexistent":                               all("--hub-kubeconfig=/nonexistent"),
		"--hub-kubeconfig: " + empty:                                        all("--hub-kubeconfig=" + empty),
		"--interval: invalid value 1ms: must be at least 1s":                all("--interval=1ms"),
		"--valid-for: invalid value 59s: must be at least twice":            all("--valid-for=59s"),
		`--report-resources: invalid value "x": must be auto, always`:       all("--report-resources=x"),
		"--extra-capacity-min-rate: not with --agent":                       all("--extra-capacity-min-rate=10%"),
		"--interval, --load-address: requires --agent":                      {"--interval=3s", "--load-address=x"},
		`--load-provider: invalid value "x": must be one of Prometheus`:     all("--load-provider=x"),
		`--load-address: required: must be a URL`:                           all("--load-provider=Prometheus"),
		`--load-provider: required with the other flags of the load source`: all("--load-window=3m"),
	} {
		_, stderr, exitCode := program.Run(t, program.Path(t, "plimsoll-controller"), args...)
		if exitCode != 2 || strings.Count(stderr, "\n") != 1 || !strings.HasPrefix(stderr, "plimsoll-controller: "+want) {
			t.Errorf("%v: exit code %d, want %q\n%s", args, exitCode, want, stderr)
		}
	}
}

// startAgents starts a hub that is the member cluster1, the member cluster2, their agents and the controller of placements. The nodes of
// the members have these cores.
func startAgents(t *testing.T, cores ...[]string) (controller *program.Process, members []*testcluster.Cluster) {
	t.Helper()
	h := testcluster.StartFleetHub(t)
	for _, object := range testcluster.Example(t, "fleet.yaml") {
		if object.GetKind() != "ManagedCluster" {
			h.Apply(t, object)
		}
	}
	controller = h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	members = []*testcluster.Cluster{h.Cluster, testcluster.Start(t)}
	for i, member := range members {
		cluster, kubeconfig := fmt.Sprint("cluster", i+1), filepath.Join(t.TempDir(), "hub")
		h.Accept(t, cluster)
		h.Patch(t, &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: cluster}}, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{clusterv1beta2.ClusterSetLabel: "fleet"}},
		})
		h.Credentials(t, cluster, kubeconfig)
		for j, c := range cores[i] {
			member.Create(t, testcluster.ReadyNode(fmt.Sprint("node-", j), c, "64Gi", nil))
		}
		agent := member.StartController(t, append(member.AgentFlags(t), "--cluster-name="+cluster, "--hub-kubeconfig="+kubeconfig)...)
		t.Cleanup(func() { agent.Stop(t) })
	}
	return controller, members
}

// The agents of two member clusters report free cores to the hub. A placement in either version selects by that score, also after it
// changes.
func TestPlacementByAgents(t *testing.T) {
	controller, members := startAgents(t, []string{"8"}, []string{"16"})
	h := members[0]
	for _, file := range []string{"v1alpha1/6-addon-scores.yaml", "6-addon-scores/placement.yaml"} {
		placement := testcluster.Example(t, file)
		h.Apply(t, placement...)
		h.AwaitChosen(t, controller, "free-cores", "cluster2")
		// 15 of the 16 cores of cluster2 are requested.
		members[1].Create(t, testcluster.RunningPod("busy", "node-0", "15", "1Gi"))
		began := time.Now()
		h.AwaitChosen(t, controller, "free-cores", "cluster1")
		t.Logf("%s: the decision changed %.1f s after the pod was created; agents report every second", file, time.Since(began).Seconds())
		must.Succeed(t, members[1].Client.Delete(
			t.Context(), &v1.Pod{ObjectMeta: testcluster.RunningPod("busy", "", "0", "0").ObjectMeta}, client.GracePeriodSeconds(0),
		))
		h.AwaitChosen(t, controller, "free-cores", "cluster2")
		h.DeletePlacements(t, controller, placement...)
	}
	controller.Stop(t)
}
