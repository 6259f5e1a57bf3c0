//go:build nodes

package tests

import (
	"context"
	"encoding/json"
	"errors"
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

// settleLimit bounds the time until metrics are about the pods alone: some intervals of metrics-server and Prometheus.
const settleLimit = 90 * time.Second

// startLoad starts a busy node, node-1, which has nothing requested, and a calm one, node-2, whose pods request far more than they use.
func startLoad(t *testing.T) {
	t.Helper()
	pin := func(pod *v1.Pod, number int) *v1.Pod {
		pod.Spec.NodeSelector = map[string]string{v1.LabelHostname: cluster.Nodes[number].Name}
		return pod
	}
	create(t, pin(newPod("busy", loadPool, "burn", "-cpu", fmt.Sprint(busyCPU)), 0))
	// Without a request, the default plugins would count 100m and 200Mi for it, as they do for the busy one.
	create(t, pin(request(newPod("memory", loadPool, "memory", "-mib", fmt.Sprint(heldMiB)), 1), 0))
	create(t, pin(request(newPod("calm", loadPool, "burn", "-cpu", fmt.Sprint(calmCPU)), 150), 1))
	for _, name := range []string{"busy", "memory", "calm"} {
		await(t, name, "runs", isRunning)
	}
}

// testLoad expects the usage of pods and nodes from metrics-server and Prometheus in the right units in all that reads it, and then that
// pods go to the less busy of two nodes with the profiles that read load, and to the busy one, which has no requests, with the default.
func testLoad(t *testing.T) {
	t.Run("metrics-server", testMetricsServer)
	t.Run("profiles", testProfiles)
	t.Run("Prometheus", testPrometheus)
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

// amount is a measured amount and the range in which it must be.
type amount struct {
	what             string
	value, low, high float64
}

// check returns an error about the amounts that are outside of their ranges.
func check(amounts []amount) error {
	var wrong []error
	for _, a := range amounts {
		if !(a.value >= a.low && a.value <= a.high) {
			wrong = append(wrong, fmt.Errorf("%s: %.5g, want %.5g to %.5g", a.what, a.value, a.low, a.high))
		}
	}
	return errors.Join(wrong...)
}

// awaitPods waits until a source has the usage of the pods of startLoad in millicores and bytes. Its first readings may be from before a pod.
func awaitPods(t *testing.T, config metricprovider.Config) {
	t.Helper()
	source, err := provider.NewPods(config, access(t))
	must.Succeed(t, err)
	retry(t, settleLimit, "waiting for the usage of pods from "+source.String(), func(ctx context.Context) error {
		reading, err := source.ReadPods(ctx)
		if err != nil {
			return err
		}
		used := map[string]load.PodUsage{}
		for _, pod := range reading.Pods {
			used[pod.Name] = pod
		}
		return check([]amount{
			{"millicores of busy", used["busy"].CPU, busyCPU, busyCPU + overhead},
			{"millicores of calm", used["calm"].CPU, calmCPU, calmCPU + overhead},
			{"millicores of memory", used["memory"].CPU, 0, overhead},
			{"bytes of memory", used["memory"].Memory, heldMiB << 20, (heldMiB + 16) << 20},
			{"bytes of busy", used["busy"].Memory, 1 << 20, 32 << 20},
		})
	})
}

// loadOf returns the load of the nodes of startLoad, as fractions of their capacity: what pods use, and up to a fifth of the capacity for the
// daemons of a node.
func loadOf(reading load.Reading) []amount {
	busy, calm := reading.Nodes[busyNode], reading.Nodes[calmNode]
	const daemons = 0.2
	return []amount{
		{"CPU of the busy node", busy.CPU.Mean, float64(busyCPU) / capacityCPU, float64(busyCPU)/capacityCPU + daemons},
		{"CPU of the calm node", calm.CPU.Mean, float64(calmCPU) / capacityCPU, float64(calmCPU)/capacityCPU + daemons},
		{"memory of the busy node", busy.Memory.Mean, float64(heldMiB<<20) / capacityMemory, float64((heldMiB+250)<<20) / capacityMemory},
		{"memory of the calm node", calm.Memory.Mean, 0.005, float64(250<<20) / capacityMemory},
	}
}

// awaitNodes waits until a source has the load of all nodes. Its first readings may be from before the pods, or from the start of a node.
func awaitNodes(t *testing.T, config metricprovider.Config) {
	t.Helper()
	retry(t, settleLimit, "waiting for the load of nodes from "+config.Type, func(ctx context.Context) error {
		source, err := provider.New(config, access(t))
		if err != nil {
			return err
		}
		reading, err := source.Read(ctx)
		if err == nil && (len(reading.Lost) > 0 || len(reading.Nodes) != len(cluster.Nodes)) {
			err = fmt.Errorf("%d nodes, and lost %v", len(reading.Nodes), reading.Lost)
		}
		if err != nil {
			return err
		}
		return check(loadOf(reading))
	})
}

func testMetricsServer(t *testing.T) {
	awaitPods(t, metricprovider.Config{Type: metricprovider.MetricsServer})
	awaitNodes(t, metricprovider.Config{Type: metricprovider.MetricsServer})

	// A single sample is what the metrics API says, as a fraction of the capacity of the node, unless metrics-server reads between both.
	retry(t, settleLimit, "comparing the metrics API with the load", func(ctx context.Context) error {
		source, err := provider.New(metricprovider.Config{Type: metricprovider.MetricsServer}, access(t))
		if err != nil {
			return err
		}
		list, err := access(t).Metrics.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		nodes, err := access(t).Nodes()
		if err != nil {
			return err
		}
		capacity := map[string]v1.ResourceList{}
		for _, node := range nodes {
			capacity[node.Name] = node.Status.Capacity
		}
		reading, err := source.Read(ctx)
		if err != nil {
			return err
		}
		var amounts []amount
		for _, item := range list.Items {
			node, whole := reading.Nodes[item.Name], capacity[item.Name]
			cpu := item.Usage.Cpu().AsApproximateFloat64() / whole.Cpu().AsApproximateFloat64()
			memory := item.Usage.Memory().AsApproximateFloat64() / whole.Memory().AsApproximateFloat64()
			amounts = append(amounts, amount{"CPU of " + item.Name, node.CPU.Mean, cpu - 1e-6, cpu + 1e-6},
				amount{"memory of " + item.Name, node.Memory.Mean, memory - 1e-6, memory + 1e-6})
		}
		if len(list.Items) != len(cluster.Nodes) {
			return fmt.Errorf("metrics of %d nodes", len(list.Items))
		}
		return check(amounts)
	})

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
	if err := check(loadOf(shown)); err != nil {
		t.Errorf("plimsoll load top: %v", err)
	}

	// The same through a load watcher.
	port := program.FreePort(t)
	_, kubeconfig, err := cluster.ChartConfig(t.Context(), "load-watcher")
	must.Succeed(t, err)
	watcher, err := cluster.StartServer("load-watcher", cluster.Program("load-watcher"), "--kubeconfig="+kubeconfig,
		fmt.Sprintf("--listen=127.0.0.1:%d", port), "--poll-interval=1s")
	must.Succeed(t, err)
	defer watcher.Stop()
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	must.Succeed(t, realnodes.AwaitHTTP(t.Context(), address+"/readyz"))
	awaitNodes(t, metricprovider.Config{Type: metricprovider.Service, Address: address})

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

func testPrometheus(t *testing.T) {
	address, err := cluster.StartPrometheus(t.Context())
	must.Succeed(t, err)
	prometheus = address
	awaitPods(
		t,
		metricprovider.Config{Type: metricprovider.Prometheus, Address: address, RateWindow: metav1.Duration{Duration: 30 * time.Second}},
	)
	awaitNodes(t, prometheusConfig(t, address))
}

// prometheus is the URL of Prometheus.
var prometheus string

// testRecordPast records the past from Prometheus. The rate of a pod that is younger than two minutes is too low: wait until it is older.
func testRecordPast(t *testing.T) {
	file := filepath.Join(t.TempDir(), "prometheus.ndjson.gz")
	retry(t, eventually.Limit, "recording from Prometheus", func(context.Context) error {
		plimsoll(t, "record", "--prometheus", prometheus, "--from=1m", "--step=5s", "--force", "-o", file)
		r := readRecording(t, file)
		busy, calm, held := r.pod(t, "busy"), r.pod(t, "calm"), r.pod(t, "memory")
		return check([]amount{
			{"millicores of busy", lastOf(&busy.CPU), 0.95 * busyCPU, busyCPU + overhead},
			{"millicores of calm", lastOf(&calm.CPU), 0.95 * calmCPU, calmCPU + overhead},
			{"bytes of busy", lastOf(&busy.Memory), 1 << 20, 32 << 20},
			{"bytes of memory", lastOf(&held.Memory), heldMiB << 20, (heldMiB + 16) << 20},
		})
	})
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
	nodesWithLoad = `plimsoll_load_nodes{source="the metrics API (metrics.k8s.io)"}`
	hasNoLoad     = `plimsoll_load_degraded{source="the metrics API (metrics.k8s.io)"}`
	podsWithUsage = `plimsoll_pod_usage_pods{source="the metrics API (metrics.k8s.io), pods"}`
	hasNoUsage    = `plimsoll_pod_usage_degraded{source="the metrics API (metrics.k8s.io), pods"}`
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
	awaitMetrics(
		t,
		"no load of the recreated node",
		func(m map[string]float64) bool { return m[nodesWithLoad] < float64(len(cluster.Nodes)) },
	)
	awaitMetrics(
		t,
		"the load of the recreated node",
		func(m map[string]float64) bool { return m[nodesWithLoad] == float64(len(cluster.Nodes)) },
	)
	// The source has not read while the node did not exist, and still has its earlier samples.
	reading, err = source.Read(t.Context())
	must.Succeed(t, err)
	between(t, "CPU of the recreated node", reading.Nodes[busyNode].CPU.Mean, 0, 0.25)
	expectNode(t, "plimsoll-low-risk", busyNode)
	expectNode(t, "plimsoll-predicted", busyNode)
}
