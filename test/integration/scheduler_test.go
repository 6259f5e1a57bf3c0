// Package integration runs the programs as a cluster would, on the embedded
// control plane.
package integration

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	crlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// The built programs.
var scheduler, demo, plimsoll, loadWatcher, controller string

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	crlog.SetLogger(klog.NewKlogr())
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "plimsoll-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scheduler, demo = filepath.Join(dir, "plimsoll-scheduler"), filepath.Join(dir, "plimsoll-demo")
	plimsoll, loadWatcher = filepath.Join(dir, "plimsoll"), filepath.Join(dir, "load-watcher")
	controller = filepath.Join(dir, "plimsoll-controller")
	build := exec.Command("go", "build", "-o", dir, "../../cmd/plimsoll-scheduler", "../../cmd/plimsoll-demo", "../../cmd/plimsoll", "../../cmd/load-watcher", "../../cmd/plimsoll-controller")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "building the programs: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// output collects what a process writes, while it writes.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// legacyConfig is what users of these plugins have: a version that is no
// longer served, the plugin enabled under score alone, everything else off.
const legacyConfig = `apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true}
clientConnection: {kubeconfig: %q}
profiles:
- schedulerName: trimaran
  plugins:
    score:
      disabled: [{name: '*'}]
      enabled: [{name: LowRiskOverCommitment, weight: 10}]
  pluginConfig:
  - name: LowRiskOverCommitment
    args:
      watcherAddress: %s
      smoothingWindowSize: 5
      riskLimitWeight: 0.5
      pollInterval: 100ms
- schedulerName: limits
  plugins:
    score:
      disabled: [{name: '*'}]
      enabled: [{name: NodeResourcesLimits}]
`

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scheduler.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func eventually(t *testing.T, what string, log fmt.Stringer, condition func(context.Context) (bool, error)) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 60*time.Second, true, condition); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, log)
	}
}

// startPlane starts a control plane for the length of the test, and returns it
// with access that may do everything.
func startPlane(t *testing.T, options controlplane.Options) (*controlplane.ControlPlane, *rest.Config, *kubernetes.Clientset) {
	t.Helper()
	cp, err := controlplane.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cp.Stop)
	config, err := cp.Config("test", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return cp, config, client
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

func createNode(t *testing.T, client kubernetes.Interface, name string) {
	t.Helper()
	amounts := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("32Gi"), v1.ResourcePods: resource.MustParse("110"),
	}
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Capacity: amounts, Allocatable: amounts}}
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func createPod(t *testing.T, client kubernetes.Interface, name, node, schedulerName, request, limit string) {
	t.Helper()
	list := func(cpu string) v1.ResourceList {
		return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("1Gi")}
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1.PodSpec{NodeName: node, SchedulerName: schedulerName, Containers: []v1.Container{{
			Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: list(request), Limits: list(limit)},
		}}},
	}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// schedulerPages returns what reads the pages that a scheduler serves on a port, as
// one who may.
func schedulerPages(t *testing.T, config *rest.Config, port int) func(ctx context.Context, path string) (string, error) {
	t.Helper()
	admin, err := tls.X509KeyPair(config.CertData, config.KeyData)
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, path string) (string, error) {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{admin}}}
		defer transport.CloseIdleConnections()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("https://127.0.0.1:%d%s", port, path), nil)
		if err != nil {
			return "", err
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			return "", err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		if response.StatusCode != http.StatusOK {
			return "", fmt.Errorf("%s: %s", response.Status, body)
		}
		return string(body), err
	}
}

// The program as a cluster runs it: leader election, health, metrics, load from
// a service over HTTP, and an orderly end.
func TestScheduler(t *testing.T) {
	cp, config, client := startPlane(t, controlplane.Options{})
	for _, name := range []string{"hectic", "calm"} {
		createNode(t, client, name)
	}
	// Same requests; on calm the limits are higher, on hectic the load is.
	createPod(t, client, "a", "hectic", "", "4", "6")
	createPod(t, client, "b", "calm", "", "4", "8")
	watcher, asked := serveLoad(t, map[string]load.Node{
		"hectic": {CPU: load.Utilization{Mean: 0.8, StdDev: 0.05}, HasCPU: true},
		"calm":   {CPU: load.Utilization{Mean: 0.2, StdDev: 0.05}, HasCPU: true},
	})

	port := freePort(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	// Under the rights of a cluster's own scheduler, and no more.
	if err := cp.WriteKubeconfig(kubeconfig, "system:kube-scheduler"); err != nil {
		t.Fatal(err)
	}
	var log output
	cmd := exec.Command(scheduler, "--config="+write(t, fmt.Sprintf(legacyConfig, kubeconfig, watcher)),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })

	get := schedulerPages(t, config, port)
	eventually(t, "the scheduler is not ready", &log, func(ctx context.Context) (bool, error) {
		_, err := get(ctx, "/readyz")
		return err == nil, nil
	})
	if !strings.Contains(log.String(), "v1beta3, which Kubernetes no longer serves") {
		t.Errorf("no warning of the old version in the log:\n%s", &log)
	}
	eventually(t, "there is no leader", &log, func(ctx context.Context) (bool, error) {
		lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})

	eventually(t, "the load is not read", &log, func(context.Context) (bool, error) {
		return asked.Load() >= 2, nil // the reader asks again when it has dealt with the answer before
	})
	for name, tc := range map[string]struct{ schedulerName, want string }{
		"by-load": {"trimaran", "calm"}, "by-limits": {"limits", "hectic"},
	} {
		createPod(t, client, name, "", tc.schedulerName, "100m", "100m")
		eventually(t, name+" is not Running", &log, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase == v1.PodRunning && pod.Spec.NodeName != tc.want {
				t.Errorf("%s runs on %s, want %s", name, pod.Spec.NodeName, tc.want)
			}
			return err == nil && pod.Status.Phase == v1.PodRunning, err
		})
	}
	eventually(t, "health is not served", &log, func(ctx context.Context) (bool, error) {
		body, err := get(ctx, "/healthz")
		return body == "ok", err
	})
	eventually(t, "metrics of the load are not served", &log, func(ctx context.Context) (bool, error) {
		body, err := get(ctx, "/metrics")
		return err == nil && strings.Contains(body, `plimsoll_load_nodes{source="the load watcher at `+watcher+`/watcher"} 2`), nil
	})
	// On calm the limits are 8 and the pod's, on hectic 6 and the pod's, of 8.
	eventually(t, "metrics of the nodes are not as the pods", &log, func(ctx context.Context) (bool, error) {
		body, err := get(ctx, "/metrics")
		return err == nil && strings.Contains(body, `plimsoll_scheduler_node_limit_ratio_bucket{resource="cpu",le="1"} 1`) &&
			strings.Contains(body, `plimsoll_scheduler_node_limit_ratio_count{resource="cpu"} 2`) &&
			strings.Contains(body, `plimsoll_scheduler_node_risk_ratio_count{profile="trimaran"} 2`), nil
	})
	body, err := get(t.Context(), "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	expectMetrics(t, body, "scheduler", "load")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Errorf("does not end:\n%s", &log)
	}
}

// serveLoad is a load-watcher service; it returns its address, and how often it
// has been asked.
func serveLoad(t *testing.T, nodes map[string]load.Node) (string, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/watcher" {
			http.NotFound(w, r)
			return
		}
		asked.Add(1)
		_ = wire.Encode(w, load.Reading{Source: "test", Time: time.Now(), Window: 15 * time.Minute, Nodes: nodes})
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String(), asked
}

// Bad input is one line on standard error that says where and what is allowed,
// and exit code 2.
func TestSchedulerBadInput(t *testing.T) {
	args := func(plugin, args string) string {
		return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
			"- pluginConfig: [{name: " + plugin + ", args: {" + args + "}}]\n"
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tests := map[string]struct {
		config string
		flags  []string
		want   string
	}{
		"unknown field":     {args("LowRiskOverCommitment", "riskLimitWeigth: 1"), nil, `unknown field "riskLimitWeigth"`},
		"weight over 1":     {args("LowRiskOverCommitment", "riskLimitWeight: 1.5"), nil, "riskLimitWeight: Invalid value: 1.5: must be in [0, 1]"},
		"window 0":          {args("LowRiskOverCommitment", "smoothingWindowSize: 0"), nil, "smoothingWindowSize: Invalid value: 0: must be at least 1"},
		"provider":          {args("LowRiskOverCommitment", "metricProvider: {type: Datadog}"), nil, `metricProvider.type: Unsupported value: "Datadog": supported values: "Prometheus", "KubernetesMetricsServer"`},
		"resource name":     {args("NodeResourcesLimits", "resources: [{name: cpus}]"), nil, `resources[0].name: Invalid value: "cpus": must be cpu, memory`},
		"weight 0":          {args("NodeResourcesLimits", "resources: [{name: cpu, weight: 0}]"), nil, "resources[0].weight: Invalid value: 0: must be in [1, 2147483647]"},
		"weight negative":   {args("NodeResourcesAllocatable", "resources: [{name: cpu, weight: -1}]"), nil, "resources[0].weight: Invalid value: -1"},
		"weight huge":       {args("NodeResourcesAllocatable", "resources: [{name: cpu, weight: 9223372036854775807}]"), nil, "must be in [1, 2147483647]"},
		"duplicate":         {args("NodeResourcesAllocatable", "resources: [{name: cpu}, {name: cpu}]"), nil, `resources[1].name: Duplicate value: "cpu"`},
		"mode":              {args("NodeResourcesAllocatable", "mode: Best"), nil, `mode: Unsupported value: "Best": supported values: "Least", "Most"`},
		"not YAML":          {"a: [", nil, "yaml"},
		"no such file":      {"", []string{"--config=/nonexistent/scheduler.yaml"}, "open /nonexistent/scheduler.yaml: no such file or directory"},
		"unknown flag":      {"", []string{"--no-such-flag"}, "unknown flag: --no-such-flag"},
		"argument":          {"", []string{"now"}, `unknown command "now"`},
		"the port is taken": {"", []string{fmt.Sprintf("--secure-port=%d", taken.Addr().(*net.TCPAddr).Port), "--bind-address=127.0.0.1", "--master=http://127.0.0.1:1"}, "bind: address already in use"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			flags := tc.flags
			if tc.config != "" {
				flags = append(flags, "--config="+write(t, tc.config))
			}
			var stderr bytes.Buffer
			cmd := exec.CommandContext(t.Context(), scheduler, flags...)
			cmd.Stderr = &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != 2 {
				t.Fatalf("ended with %v, want exit code 2\n%s", err, &stderr)
			}
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "plimsoll-scheduler: ") || !strings.Contains(last, tc.want) {
				t.Errorf("said %q, want %q", last, tc.want)
			}
			if tc.config != "" && len(lines) > 1 {
				t.Errorf("said more than one line:\n%s", &stderr)
			}
		})
	}
}
