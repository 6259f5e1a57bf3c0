//go:build foreign

package servers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

const (
	// scrapeInterval is the shortest that metrics-server allows.
	scrapeInterval = 10 * time.Second
	// metricsWindow contains three samples.
	metricsWindow = 25 * time.Second
	// metricsMaxAge allows one late scrape.
	metricsMaxAge = 2 * scrapeInterval
)

// machine is a node with its kubelet and load.
type machine struct {
	name          string
	cores, memory int64
	kubelet       *fakeKubelet
	cpuUsed       float64
	memoryUsed    float64
}

// use sets the utilization of the machine.
func (m *machine) use(cpu, memory float64) {
	m.cpuUsed, m.memoryUsed = cpu, memory
	m.kubelet.use(cpu*float64(m.cores), math.Round(memory*float64(m.memory)))
}

// startMachines starts kubelets and creates their nodes.
func startMachines(t *testing.T, client kubernetes.Interface) []*machine {
	t.Helper()
	var machines []*machine
	for i := range 5 {
		name := fmt.Sprintf("node-%d", i)
		m := &machine{name: name, cores: 2 << i, memory: int64(8<<i) << 30, kubelet: startKubelet(t, "pod-of-"+name, 0, 0)}
		m.use(0.1+0.15*float64(i), 0.8-0.12*float64(i))
		machines = append(machines, m)
		quantities := func(cores, memory int64) v1.ResourceList {
			return v1.ResourceList{
				v1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
				v1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
			}
		}
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Status: v1.NodeStatus{
			Capacity: quantities(m.cores, m.memory),
			// Load is a fraction of the capacity, not of the allocatable resources.
			Allocatable:     quantities(m.cores-1, m.memory/2),
			Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}},
			DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: m.kubelet.port()}},
		}}
		testcluster.Create(t, client.CoreV1().Nodes(), node)
		runPod(t, client, m)
	}
	return machines
}

// runPod creates the pod of a machine, which metrics-server serves once it is running.
func runPod(t *testing.T, client kubernetes.Interface, m *machine) {
	t.Helper()
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: m.kubelet.pod, Namespace: "default"}, Spec: v1.PodSpec{
		NodeName: m.name, Containers: []v1.Container{{Name: "a", Image: "registry.example/a"}, {Name: "b", Image: "registry.example/b"}},
	}}
	pods := client.CoreV1().Pods(pod.Namespace)
	testcluster.Create(t, pods, pod)
	running := []byte(`{"status": {"phase": "Running"}}`)
	if _, err := pods.Patch(t.Context(), pod.Name, types.MergePatchType, running, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// checkPodUsage reads the usage of pods with the permissions of a user and compares it with the usage of the machines: the
// pod of each machine uses three quarters of the CPU and of the memory.
func checkPodUsage(t *testing.T, cp *controlplane.ControlPlane, client kubernetes.Interface, user string, machines []*machine) {
	t.Helper()
	config, err := cp.Config(user)
	must.Succeed(t, err)
	// The client of a scheduler prefers the encoding that metrics-server does not support for all types.
	config.ContentType = "application/vnd.kubernetes.protobuf"
	metrics, err := metricsclient.NewForConfig(config)
	must.Succeed(t, err)
	source, err := metricsserver.NewPods(metricsserver.OpenPods(metrics.MetricsV1beta1().RESTClient()))
	must.Succeed(t, err)
	_, err = source.ReadPods(t.Context())
	if load.ReasonOf(err) != load.Denied || !strings.Contains(err.Error(), "list of pods in the group metrics.k8s.io") {
		t.Errorf("without permission: %v", err)
	}
	allowMetrics(t, client, user, "pods")
	var reading load.PodReading
	eventually.True(t, "the usage of all pods", nil, func(ctx context.Context) (bool, error) {
		reading, err = source.ReadPods(ctx)
		if load.ReasonOf(err) == load.Denied || load.ReasonOf(err) == load.Empty {
			err = nil // The API server needs some time to grant the permission, and metrics-server to see the pods.
		}
		return err == nil && len(reading.Pods) == len(machines) && isRecent(reading.Time) &&
			math.Abs((reading.Window-scrapeInterval).Seconds()) <= 2, err
	})
	for i, m := range machines {
		usage := reading.Pods[i]
		cpu, memory := 0.75*1000*m.cpuUsed*float64(m.cores), 0.75*m.memoryUsed*float64(m.memory)
		if usage.Namespace != "default" || usage.Name != m.kubelet.pod || !near(usage.CPU/cpu, 1) || !near(usage.Memory/memory, 1) {
			t.Errorf("%+v, want %v millicores and %v bytes of pod %s", usage, cpu, memory, m.kubelet.pod)
		}
	}
	if reading.Rejected != 0 {
		t.Errorf("%d pods were rejected", reading.Rejected)
	}
}

// checkSnapshotUsage takes a snapshot with the usage of pods, and simulates it: the pod of each machine uses three quarters
// of the CPU and of the memory.
func checkSnapshotUsage(t *testing.T, access string, machines []*machine) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s.ndjson.gz")
	if out, warnings := testcluster.MustPlimsoll(t, "snapshot", "-o", file, "--kubeconfig", access); !strings.Contains(out,
		"usage of 5 pods") {
		t.Fatalf("plimsoll snapshot: %s%s", out, warnings)
	}
	s, err := recording.Open(file)
	must.Succeed(t, err)
	used := map[string]load.PodUsage{}
	for _, pod := range s.Usage.Pods {
		used[pod.Name] = pod
	}
	for _, m := range machines {
		got, cpu, memory := used[m.kubelet.pod], 750*m.cpuUsed*float64(m.cores), 0.75*m.memoryUsed*float64(m.memory)
		if math.Abs(got.CPU-cpu) > 0.02*cpu || math.Abs(got.Memory-memory) > 0.02*memory {
			t.Errorf("%s: %+v, want %v millicores and %v bytes", m.kubelet.pod, got, cpu, memory)
		}
	}
	out, _ := testcluster.MustPlimsoll(t, "simulate", "--recording", file, "--tail", "1m")
	assumed := "the usage of 5 of 5 pods is what " + metricprovider.MetricsServer + " measured"
	if !strings.Contains(out, "usage measured\n") || !strings.Contains(out, assumed) {
		t.Errorf("plimsoll simulate:\n%s", out)
	}
}

// startMetricsServer starts metrics-server and registers it with the API server.
func startMetricsServer(t *testing.T, cp *controlplane.ControlPlane, client kubernetes.Interface) *program.Process {
	t.Helper()
	path, port := program.Build(
		t, "metrics-server", "test/metricsserver", "sigs.k8s.io/metrics-server/cmd/metrics-server",
	), program.FreePort(t)
	// metrics-server requires it at start.
	eventually.True(t, "the API server does not publish its authentication configuration", nil, func(ctx context.Context) (bool, error) {
		published, err := client.CoreV1().ConfigMaps("kube-system").Get(ctx, "extension-apiserver-authentication", metav1.GetOptions{})
		return err == nil && published.Data["requestheader-client-ca-file"] != "", nil
	})
	server := program.Start(t, path, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+t.TempDir(),
		"--kubeconfig="+cp.Kubeconfig, "--authentication-kubeconfig="+cp.Kubeconfig, "--authorization-kubeconfig="+cp.Kubeconfig,
		"--kubelet-insecure-tls", "--kubelet-use-node-status-port", "--kubelet-preferred-address-types=InternalIP",
		"--kubelet-request-timeout=5s", "--metric-resolution="+scrapeInterval.String())
	// The API server retries an APIService that is unavailable at first with a growing interval.
	eventually.True(t, "metrics-server does not listen", server, func(context.Context) (bool, error) {
		select {
		case <-server.Exited():
			return false, errors.New("metrics-server exited")
		default:
		}
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
		}
		return err == nil, nil
	})
	register(t, client, port)
	return server
}

// register makes the API server forward requests for the metrics API to a local port. In a cluster the
// service has a selector; without a service network, it needs an external name that resolves.
func register(t *testing.T, client kubernetes.Interface, port int) {
	t.Helper()
	service := &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: "metrics-server"}, Spec: v1.ServiceSpec{
		Type: v1.ServiceTypeExternalName, ExternalName: "localhost", Ports: []v1.ServicePort{{Port: int32(port)}},
	}}
	testcluster.Create(t, client.CoreV1().Services("kube-system"), service)
	const apiService = `{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": "v1beta1.metrics.k8s.io"},
		"spec": {"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100, "versionPriority": 100,
			"insecureSkipTLSVerify": true, "service": {"namespace": "kube-system", "name": "metrics-server", "port": %d}}}`
	err := client.CoreV1().RESTClient().Post().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices").
		SetHeader("Content-Type", "application/json").Body(fmt.Appendf(nil, apiService, port)).Do(t.Context()).Error()
	must.Succeed(t, err)
}

// allowMetrics permits a user to list nodes or pods of the metrics API.
func allowMetrics(t *testing.T, client kubernetes.Interface, user, kind string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: "read-metrics-of-" + kind}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"metrics.k8s.io"}, Resources: []string{kind}, Verbs: []string{"list"}},
	}}
	testcluster.Create(t, client.RbacV1().ClusterRoles(), role)
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	testcluster.Create(t, client.RbacV1().ClusterRoleBindings(), binding)
}

// newMetricsSource returns the source with the permissions of a user.
func newMetricsSource(t *testing.T, cp *controlplane.ControlPlane, user string) *metricsserver.Source {
	t.Helper()
	config, err := cp.Config(user)
	must.Succeed(t, err)
	client, err := kubernetes.NewForConfig(config)
	must.Succeed(t, err)
	metrics, err := metricsclient.NewForConfig(config)
	must.Succeed(t, err)
	factory := informers.NewSharedInformerFactory(client, 0)
	lister := factory.Core().V1().Nodes().Lister()
	factory.Start(t.Context().Done())
	for kind, synced := range factory.WaitForCacheSync(t.Context().Done()) {
		if !synced {
			t.Fatalf("no list of %s", kind)
		}
	}
	source, err := metricsserver.New(metricsserver.Config{
		Metrics: metrics.MetricsV1beta1().NodeMetricses(), Nodes: load.FromLister(lister),
		Window: metricsWindow, MaxAge: metricsMaxAge,
	})
	must.Succeed(t, err)
	return source
}

// readUntil reads every half second until done returns true for the reading or its error.
func readUntil(t *testing.T, what string, source load.Source, log fmt.Stringer, done func(load.Reading, error) bool) {
	t.Helper()
	var reading load.Reading
	var readErr error
	err := wait.PollUntilContextTimeout(t.Context(), 500*time.Millisecond, eventually.Limit, true, func(ctx context.Context) (bool, error) {
		reading, readErr = source.Read(ctx)
		return done(reading, readErr), nil
	})
	if err != nil {
		t.Fatalf("%s: %v; the last reading: %+v, %v\n%s", what, err, reading, readErr, log)
	}
}

// isRecent reports whether a time can be the time of the last scrape. Times in the API are in whole seconds, and a scrape takes
// up to a second unless the machine is busy.
func isRecent(at time.Time) bool {
	age := time.Since(at)
	return age >= 0 && age <= scrapeInterval+2*time.Second
}

// near reports whether a value is the expected value, within the errors of single precision in the window
// (6e-8 of the value) and of rates in whole nanocores. The counters and times of the kubelets are exact.
func near(got, want float64) bool { return math.Abs(got-want) < 1e-6 }

// steady reports whether a node has the load of a machine during the whole window.
func steady(node load.Node, m *machine) bool {
	return node.HasCPU && node.HasMemory && near(node.CPU.Mean, m.cpuUsed) && near(node.CPU.StdDev, 0) &&
		near(node.Memory.Mean, m.memoryUsed) && near(node.Memory.StdDev, 0)
}

// between reports whether a window contains samples of two loads. If a fraction p of the samples has the second
// load, which differs by d from the first, the mean differs by p d from the first and by (1 - p) d from the
// second, and the variance is the product p (1 - p) d².
func between(got load.Utilization, from, to float64) bool {
	variance := (got.Mean - from) * (to - got.Mean)
	return variance > 1e-4 && near(got.StdDev, math.Sqrt(variance))
}

// TestMetricsServer reads the load of five kubelets from a real metrics-server behind the API server, and
// compares it with their usage.
func TestMetricsServer(t *testing.T) {
	cp, _, client := startAggregatingPlane(t)
	machines := startMachines(t, client)
	const user = "system:kube-scheduler"
	source := newMetricsSource(t, cp, user)

	failed := func(reason load.Reason, hint string) func(load.Reading, error) bool {
		return func(_ load.Reading, err error) bool {
			return err != nil && load.ReasonOf(err) == reason && strings.Contains(err.Error(), hint)
		}
	}
	readUntil(t, "without permission", source, nil, failed(load.Denied, "list of nodes in the group metrics.k8s.io"))
	allowMetrics(t, client, user, "nodes")
	readUntil(t, "without metrics-server", source, nil, failed(load.Unreachable, "check that metrics-server is installed"))

	server := startMetricsServer(t, cp, client)
	var reading load.Reading
	readUntil(t, "not all nodes are read", source, server, func(r load.Reading, err error) bool {
		reading = r
		// The API server needs some time to reach metrics-server, which has no rate before its second scrape.
		if reason := load.ReasonOf(err); err != nil && reason != load.Unreachable && reason != load.Empty {
			t.Errorf("failed to read as %s: %v", reason, err)
		}
		return err == nil && len(r.Nodes) == len(machines) && isRecent(r.Time)
	})
	for _, m := range machines {
		if node := reading.Nodes[m.name]; !steady(node, m) {
			t.Errorf("%s: %+v, want CPU %.2f and memory %.2f", m.name, node, m.cpuUsed, m.memoryUsed)
		}
	}
	if !(reading.Window > 0 && reading.Window <= metricsWindow) || reading.Source != metricprovider.MetricsServer ||
		reading.Rejected != 0 ||
		reading.Stale != 0 {
		t.Errorf("%+v", reading)
	}

	checkPodUsage(t, cp, client, user, machines)

	access := filepath.Join(t.TempDir(), "kubeconfig")
	must.Succeed(t, cp.WriteKubeconfig(access, user))
	if table, _ := testcluster.MustPlimsoll(t, "load", "top", "--kubeconfig", access); !strings.Contains(table,
		fmt.Sprintf("%d nodes; ", len(machines))) || !strings.Contains(table, metricprovider.MetricsServer) {
		t.Errorf("plimsoll load top:\n%s", table)
	}
	checkSnapshotUsage(t, access, machines)

	changing, silent, others := machines[0], machines[4], machines[1:4]
	before := *changing
	changing.use(0.9, 0.2)
	silent.kubelet.stop()
	changed := false
	readUntil(t, "the load of node-0 is not updated, or node-4 does not become stale", source, server,
		func(reading load.Reading, err error) bool {
			if err != nil {
				t.Errorf("reading load: %v", err)
				return true
			}
			for _, m := range others {
				if node := reading.Nodes[m.name]; !steady(node, m) {
					t.Errorf("%s: %+v, want no change", m.name, node)
				}
			}
			node, known := reading.Nodes[silent.name]
			if known != (reading.Stale == 0) || known && !steady(node, silent) {
				t.Errorf("%s: %+v (%t) with %d stale nodes", silent.name, node, known, reading.Stale)
			}
			node = reading.Nodes[changing.name]
			changed = changed || between(node.CPU, before.cpuUsed, changing.cpuUsed) &&
				between(node.Memory, before.memoryUsed, changing.memoryUsed)
			return changed && !known && steady(node, changing) || t.Failed()
		})

	server.Kill()
	readUntil(t, "without a running metrics-server", source, server, failed(load.Unreachable, "check that metrics-server is running"))
}
