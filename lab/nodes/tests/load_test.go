//go:build nodes

package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// What the pods of testLoad use. A pod uses some millicores more than its work.
const (
	busyCPU  = 120
	calmCPU  = 10
	overhead = 15
	heldMiB  = 64
)

// startLoad starts a busy node, node-1, which has nothing requested, and a calm one, node-2, whose pods request far more than they use.
func startLoad(t *testing.T) {
	t.Helper()
	pin := func(pod *v1.Pod, number int) *v1.Pod {
		pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: cluster.Nodes[number].Name}
		return pod
	}
	create(t, pin(newPod("busy", loadPool, "burn", "-cpu", fmt.Sprint(busyCPU)), 0))
	create(t, pin(newPod("memory", loadPool, "memory", "-mib", fmt.Sprint(heldMiB)), 0))
	create(t, pin(request(newPod("calm", loadPool, "burn", "-cpu", fmt.Sprint(calmCPU)), 150), 1))
	for _, name := range []string{"busy", "memory", "calm"} {
		await(t, name, "runs", isRunning)
	}
}

// testLoad expects the usage of pods and nodes from metrics-server and Prometheus in the right units in all that reads it, and then that
// pods go to the less busy of two nodes with the profiles that read load, and to the busy one, which has no requests, with the default.
func testLoad(t *testing.T) {
	prometheus, err := cluster.StartPrometheus(t.Context())
	must.Succeed(t, err)
	t.Run("metrics-server", testMetricsServer)
	t.Run("profiles", testProfiles)
	t.Run("Prometheus", func(t *testing.T) { testPrometheus(t, prometheus) })
}

// access returns the access of load sources to the cluster.
func access(t *testing.T) provider.Cluster {
	t.Helper()
	client, err := metricsclient.NewForConfig(cluster.Config)
	must.Succeed(t, err)
	return provider.Cluster{
		Nodes: func() (nodes []*v1.Node, err error) {
			list, err := cluster.Client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
			if err != nil {
				return nil, err
			}
			for i := range list.Items {
				nodes = append(nodes, &list.Items[i])
			}
			return nodes, nil
		},
		Metrics:    client.MetricsV1beta1().NodeMetricses(),
		PodMetrics: metricsserver.OpenPods(client.MetricsV1beta1().RESTClient()),
	}
}

// awaitPods waits until a source has the pods of testLoad at full use, and expects their usage in millicores and bytes.
func awaitPods(t *testing.T, config metricprovider.Config) {
	t.Helper()
	source, err := provider.NewPods(config, access(t))
	must.Succeed(t, err)
	used := map[string]load.PodUsage{}
	eventually.TrueWithin(t, eventually.Limit, 500*time.Millisecond, "waiting for the usage of pods from "+source.String(), printer(func() string {
		return fmt.Sprint(used, err)
	}), func(ctx context.Context) (bool, error) {
		var reading load.PodReading
		if reading, err = source.ReadPods(ctx); err != nil {
			return false, nil
		}
		for _, pod := range reading.Pods {
			used[pod.Name] = pod
		}
		// The first rates are over a time before the pod.
		return used["busy"].CPU >= busyCPU && used["calm"].CPU >= calmCPU && used["memory"].Memory >= heldMiB<<20, nil
	})
	between(t, "millicores of busy", used["busy"].CPU, busyCPU, busyCPU+overhead)
	between(t, "millicores of calm", used["calm"].CPU, calmCPU, calmCPU+overhead)
	between(t, "millicores of memory", used["memory"].CPU, 0, overhead)
	between(t, "bytes of memory", used["memory"].Memory, heldMiB<<20, (heldMiB+16)<<20)
	between(t, "bytes of busy", used["busy"].Memory, 1<<20, 32<<20)
}

// expectNodes expects the load of the nodes of testLoad, as fractions of their capacity: what pods use, and up to a fifth of the capacity
// for the daemons of a node.
func expectNodes(t *testing.T, reading load.Reading) {
	t.Helper()
	busy, calm := reading.Nodes["node-1"], reading.Nodes["node-2"]
	between(t, "CPU of the busy node", busy.CPU.Mean, float64(busyCPU)/capacityCPU, float64(busyCPU)/capacityCPU+0.2)
	between(t, "CPU of the calm node", calm.CPU.Mean, float64(calmCPU)/capacityCPU, float64(calmCPU)/capacityCPU+0.2)
	between(t, "memory of the busy node", busy.Memory.Mean, float64(heldMiB<<20)/capacityMemory, float64((heldMiB+250)<<20)/capacityMemory)
	between(t, "memory of the calm node", calm.Memory.Mean, 0.005, float64(250<<20)/capacityMemory)
}

// awaitNodes waits until a source has the load of all nodes at full use.
func awaitNodes(t *testing.T, config metricprovider.Config) load.Reading {
	t.Helper()
	source, err := provider.New(config, access(t))
	must.Succeed(t, err)
	var reading load.Reading
	eventually.TrueWithin(t, eventually.Limit, 500*time.Millisecond, "waiting for the load of nodes from "+source.String(), printer(func() string {
		return fmt.Sprintf("%+v %v", reading, err)
	}), func(ctx context.Context) (bool, error) {
		reading, err = source.Read(ctx)
		return err == nil && len(reading.Lost) == 0 && len(reading.Nodes) == len(cluster.Nodes) &&
			reading.Nodes["node-1"].CPU.Mean >= float64(busyCPU)/capacityCPU, nil
	})
	return reading
}

func testMetricsServer(t *testing.T) {
	awaitPods(t, metricprovider.Config{Type: metricprovider.MetricsServer})
	reading := awaitNodes(t, metricprovider.Config{Type: metricprovider.MetricsServer})
	expectNodes(t, reading)

	// A single sample is what the metrics API says, as a fraction of the capacity of the node.
	list, err := access(t).Metrics.List(t.Context(), metav1.ListOptions{})
	must.Succeed(t, err)
	for _, item := range list.Items {
		if age := item.Timestamp.Sub(reading.Time); age != 0 {
			continue // a newer sample
		}
		node := reading.Nodes[item.Name]
		between(t, "CPU of "+item.Name, node.CPU.Mean, item.Usage.Cpu().AsApproximateFloat64()/capacityCPU*1000-1e-6,
			item.Usage.Cpu().AsApproximateFloat64()/capacityCPU*1000+1e-6)
		between(t, "memory of "+item.Name, node.Memory.Mean, item.Usage.Memory().AsApproximateFloat64()/capacityMemory-1e-6,
			item.Usage.Memory().AsApproximateFloat64()/capacityMemory+1e-6)
	}

	// The same for users, in percent.
	var top struct {
		Nodes []struct {
			Name        string
			CPU, Memory struct{ Mean float64 }
		}
	}
	must.Succeed(t, json.Unmarshal([]byte(plimsoll(t, "load", "top", "-o", "json")), &top))
	shown := load.Reading{Nodes: map[string]load.Node{}}
	for _, node := range top.Nodes {
		shown.Nodes[node.Name] = load.Node{CPU: load.Utilization{Mean: node.CPU.Mean}, Memory: load.Utilization{Mean: node.Memory.Mean}}
	}
	expectNodes(t, shown)

	// The same through a load watcher.
	port := program.FreePort(t)
	_, kubeconfig, err := cluster.ChartConfig(t.Context(), "load-watcher")
	must.Succeed(t, err)
	watcher, err := cluster.StartServer("load-watcher", cluster.Program("load-watcher"), "--kubeconfig="+kubeconfig, fmt.Sprintf("--listen=127.0.0.1:%d", port),
		"--poll-interval=1s")
	must.Succeed(t, err)
	defer watcher.Stop()
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	must.Succeed(t, realnodes.AwaitHTTP(t.Context(), address+"/readyz"))
	expectNodes(t, awaitNodes(t, metricprovider.Config{Type: metricprovider.Service, Address: address}))

	// The scheduler has the load of all nodes.
	awaitMetrics(t, "the load of all nodes", func(m map[string]float64) bool {
		return m[nodesWithLoad] == float64(len(cluster.Nodes)) && m[hasNoLoad] == 0 && m[podsWithUsage] >= 3
	})
}

// prometheusConfig returns the configuration of docs/load.md for Prometheus without node-exporter, with shorter times.
func prometheusConfig(t *testing.T, address string) metricprovider.Config {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(project, "docs/load.md"))
	must.Succeed(t, err)
	_, after, found := strings.Cut(string(page), "Without node-exporter")
	_, after, hasBlock := strings.Cut(after, "```yaml\n")
	block, _, _ := strings.Cut(after, "```")
	if !found || !hasBlock {
		t.Fatal("docs/load.md has no queries for clusters without node-exporter")
	}
	var document struct{ MetricProvider metricprovider.Config }
	must.Succeed(t, yaml.UnmarshalStrict([]byte(strings.NewReplacer("15m", "30s", "5m", "20s", "1m", "5s").Replace(block)), &document))
	document.MetricProvider.Address = address
	return document.MetricProvider
}

func testPrometheus(t *testing.T, address string) {
	pods := metricprovider.Config{Type: metricprovider.Prometheus, Address: address, RateWindow: metav1.Duration{Duration: 30 * time.Second}}
	awaitPods(t, pods)
	config := prometheusConfig(t, address)
	expectNodes(t, awaitNodes(t, config))

	// A recording from the same server.
	file := filepath.Join(t.TempDir(), "prometheus.plrec")
	plimsoll(t, "record", "--prometheus", address, "--from=1m", "--step=5s", "-o", file)
	recorded := readRecording(t, file)
	for _, want := range []struct {
		name           string
		cpu, minMemory float64
	}{{"busy", busyCPU, 1 << 20}, {"calm", calmCPU, 1 << 20}, {"memory", 0, heldMiB << 20}} {
		pod := recorded.pod(t, want.name)
		cpu, memory := lastOf(&pod.CPU), lastOf(&pod.Memory)
		// The rate is over two minutes.
		between(t, "recorded millicores of "+want.name, cpu, 0.7*want.cpu, want.cpu+overhead)
		between(t, "recorded bytes of "+want.name, memory, want.minMemory, want.minMemory+32<<20)
	}
}

// Nodes of startLoad.
const busyNode, calmNode = "node-1", "node-2"

// expectNode expects that a profile selects a node for a new pod.
func expectNode(t *testing.T, profile, want string) {
	t.Helper()
	if node := nodeFor(t, "new-"+profile, loadPool, profile, 20); node != want {
		t.Errorf("%s selected %s, want %s", profile, node, want)
	}
}

// testProfiles expects pods on the less busy node with the profiles that read load.
func testProfiles(t *testing.T) {
	expectNode(t, "default-scheduler", busyNode)
	expectNode(t, "plimsoll-predicted", calmNode)
	expectNode(t, "plimsoll-low-risk", calmNode)
}

// Metrics of the scheduler.
const (
	nodesWithLoad = `plimsoll_load_nodes{source="KubernetesMetricsServer"}`
	podsWithUsage = `plimsoll_pod_usage_pods{source="KubernetesMetricsServer"}`
	hasNoLoad     = `plimsoll_load_degraded{source="KubernetesMetricsServer"}`
	hasNoUsage    = `plimsoll_pod_usage_degraded{source="KubernetesMetricsServer"}`
)

// testMetricsStop stops metrics-server. The plugins fall back within the staleness bound and say so: low-risk to limits, with which the
// default plugins decide, predicted to what it has learned. When metrics-server is back, both read load again.
func testMetricsStop(t *testing.T) {
	cluster.MetricsServer.Stop()
	stopped := time.Now()
	awaitMetrics(t, "no fresh load", func(m map[string]float64) bool { return m[hasNoLoad] == 1 && m[hasNoUsage] == 1 })
	// The newest sample is up to two intervals of metrics-server old when it stops.
	between(t, "seconds until the plugins fell back", time.Since(stopped).Seconds(),
		maxLoadAge.Seconds()-2*realnodes.Resolution.Seconds(), maxLoadAge.Seconds()+5)
	log := logOf("scheduler")
	for _, want := range []string{"No fresh load: nodes are scored without it", "No fresh usage of pods"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log of the scheduler lacks %q:\n%s", want, endOf("scheduler"))
		}
	}
	expectNode(t, "plimsoll-low-risk", busyNode)
	expectNode(t, "plimsoll-predicted", calmNode)
	must.Succeed(t, cluster.StartMetricsServer())
	awaitMetrics(t, "fresh load", func(m map[string]float64) bool { return m[hasNoLoad] == 0 && m[hasNoUsage] == 0 })
	expectNode(t, "plimsoll-low-risk", calmNode)
	expectNode(t, "plimsoll-predicted", calmNode)
}

// testRecreatedNode recreates the busy node with the same name, without its pods. Its counters begin at zero again. Its load may not be the
// one of the earlier node, nor below zero or above one.
func testRecreatedNode(t *testing.T) {
	source, err := provider.New(metricprovider.Config{Type: metricprovider.MetricsServer}, access(t))
	must.Succeed(t, err)
	reading, err := source.Read(t.Context())
	must.Succeed(t, err)
	between(t, "CPU of the busy node", reading.Nodes[busyNode].CPU.Mean, float64(busyCPU)/capacityCPU, 1)
	began := time.Now()
	must.Succeed(t, cluster.Restart(t.Context(), cluster.Nodes[0]))
	t.Logf("%s was ready again after %.1f s", busyNode, time.Since(began).Seconds())
	must.Succeed(t, setPool(t.Context(), 0))
	awaitMetrics(t, "no load of the recreated node", func(m map[string]float64) bool { return m[nodesWithLoad] < float64(len(cluster.Nodes)) })
	awaitMetrics(t, "the load of the recreated node", func(m map[string]float64) bool { return m[nodesWithLoad] == float64(len(cluster.Nodes)) })
	// The source has not read while the node did not exist, and still has its earlier samples.
	reading, err = source.Read(t.Context())
	must.Succeed(t, err)
	between(t, "CPU of the recreated node", reading.Nodes[busyNode].CPU.Mean, 0, 0.25)
	expectNode(t, "plimsoll-low-risk", busyNode)
	expectNode(t, "plimsoll-predicted", busyNode)
}
