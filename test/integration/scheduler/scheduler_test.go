package scheduler

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// legacyConfig is a typical configuration of existing users: a version that is no longer served, and the
// plugin enabled for score only with all other score plugins disabled.
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

// TestScheduler runs the program as in a cluster: with leader election, health, metrics, load from a
// service, and a clean exit.
func TestScheduler(t *testing.T) {
	cp, config, client := testcluster.StartControlPlane(t)
	for _, name := range []string{"hectic", "calm"} {
		testcluster.CreateNode(t, client, name)
	}
	// Same requests; calm has the higher limits, hectic the higher load.
	testcluster.CreatePod(t, client, "a", "hectic", "", "4", "6")
	testcluster.CreatePod(t, client, "b", "calm", "", "4", "8")
	watcher, requests := serveLoad(t, map[string]load.Node{
		"hectic": {CPU: load.Utilization{Mean: 0.8, StdDev: 0.05}, HasCPU: true},
		"calm":   {CPU: load.Utilization{Mean: 0.2, StdDev: 0.05}, HasCPU: true},
	})

	port := program.FreePort(t)
	// Only with the permissions of the default scheduler.
	kubeconfig := testcluster.KubeconfigOf(t, cp, "system:kube-scheduler")
	process := program.Start(t, program.Path(t, "plimsoll-scheduler"),
		"--config="+testcluster.WriteFile(t, fmt.Sprintf(legacyConfig, kubeconfig, watcher)), "--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port), "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig)
	get := testcluster.SchedulerPages(t, config, port)
	eventually.True(t, "the scheduler is not ready", process, func(ctx context.Context) (bool, error) {
		_, err := get(ctx, "/readyz")
		return err == nil, nil
	})
	if !strings.Contains(process.String(), "v1beta3 is not served by Kubernetes") {
		t.Errorf("the log has no warning about the legacy version:\n%s", process)
	}
	eventually.True(t, "no leader was elected", process, func(ctx context.Context) (bool, error) {
		lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-scheduler", metav1.GetOptions{})
		return err == nil && lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "", nil
	})

	eventually.True(t, "load is not read", process, func(context.Context) (bool, error) {
		return requests.Load() >= 2, nil // the second request shows that the first response was processed
	})
	for _, tc := range []struct{ name, schedulerName, want string }{
		{"by-load", "trimaran", "calm"}, {"by-limits", "limits", "hectic"},
	} {
		testcluster.CreatePod(t, client, tc.name, "", tc.schedulerName, "100m", "100m")
		eventually.True(t, tc.name+" is not Running", process, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods("default").Get(ctx, tc.name, metav1.GetOptions{})
			if err == nil && pod.Status.Phase == v1.PodRunning && pod.Spec.NodeName != tc.want {
				t.Errorf("%s runs on %s, want %s", tc.name, pod.Spec.NodeName, tc.want)
			}
			return err == nil && pod.Status.Phase == v1.PodRunning, err
		})
	}
	eventually.True(t, "health is not served", process, func(ctx context.Context) (bool, error) {
		body, err := get(ctx, "/healthz")
		return body == "ok", err
	})
	eventually.True(t, "metrics of the load are not served", process, func(ctx context.Context) (bool, error) {
		body, err := get(ctx, "/metrics")
		return err == nil && strings.Contains(body, `plimsoll_load_nodes{source="the load watcher at `+watcher+`/watcher"} 2`), nil
	})
	// The limits are 8.1 of 8 on one node and 6.1 of 8 on the other.
	eventually.True(t, "metrics of the nodes do not match the pods", process, func(ctx context.Context) (bool, error) {
		body, err := get(ctx, "/metrics")
		return err == nil && strings.Contains(body, `plimsoll_scheduler_node_limit_ratio_bucket{resource="cpu",le="1"} 1`) &&
			strings.Contains(body, `plimsoll_scheduler_node_limit_ratio_count{resource="cpu"} 2`) &&
			strings.Contains(body, `plimsoll_scheduler_node_risk_ratio_count{profile="trimaran"} 2`), nil
	})
	body, err := get(t.Context(), "/metrics")
	must.Succeed(t, err)
	testcluster.ExpectMetrics(t, body, "scheduler", "load")
	process.Stop(t)
}

// serveLoad starts a load-watcher service and returns its address and its number of requests.
func serveLoad(t *testing.T, nodes map[string]load.Node) (string, *atomic.Int64) {
	t.Helper()
	requests := &atomic.Int64{}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/watcher" {
			http.NotFound(w, r)
			return
		}
		requests.Add(1)
		_ = wire.Encode(w, load.Reading{Source: "test", Time: time.Now(), Window: 15 * time.Minute, Nodes: nodes})
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String(), requests
}

// serveVersion starts an API server that serves nothing but a version, and returns its address.
func serveVersion(t *testing.T, status int, version string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `{"gitVersion":%q}`, version)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestSchedulerInvalidInput checks that invalid input causes exit code 2 and one line on standard error,
// with the field or flag and the allowed values.
func TestSchedulerInvalidInput(t *testing.T) {
	t.Parallel()
	args := func(plugin, args string) string {
		return "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles:\n" +
			"- pluginConfig: [{name: " + plugin + ", args: {" + args + "}}]\n"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	defer listener.Close()
	for name, tc := range map[string]struct {
		config string
		flags  []string
		want   string
	}{
		"unknown field": {
			args("LowRiskOverCommitment", "riskLimitWeigth: 1"), nil,
			`unknown field "riskLimitWeigth"`,
		},
		"no such file": {
			"", []string{"--config=/nonexistent/scheduler.yaml"}, "open /nonexistent/scheduler.yaml: no such file or directory",
		},
		"argument": {"", []string{"now"}, `unknown command "now"`},
		"port in use": {
			"",
			[]string{
				fmt.Sprintf("--secure-port=%d", listener.Addr().(*net.TCPAddr).Port), "--bind-address=127.0.0.1",
				"--master=" + serveVersion(t, http.StatusOK, "v1.37.1"),
			},
			"bind: address already in use",
		},
		"bad configuration while the API server does not respond": {
			args("LowRiskOverCommitment", "riskLimitWeight: 1.5"),
			[]string{"--master=http://127.0.0.1:1"},
			"riskLimitWeight: Invalid value: 1.5: must be in [0, 1]",
		},
		"API server too old": {
			"",
			[]string{"--master=" + serveVersion(t, http.StatusOK, "v1.33.9")},
			"the API server has version v1.33.9: must be 1.34 to 1.38, which this scheduler supports",
		},
		"version is forbidden": {
			"", []string{"--master=" + serveVersion(t, http.StatusForbidden, "v1.36.1")}, "(permit it, or set --emulated-version)",
		},
		"feature gate that the emulated version does not have": {
			"",
			[]string{"--feature-gates=DRAWorkloadResourceClaims=true", "--master=" + serveVersion(t, http.StatusOK, "v1.34.12")},
			"with the features of Kubernetes 1.34, the version of the API server: cannot set feature gate DRAWorkloadResourceClaims to true, " +
				"feature is PreAlpha at emulated version 1.34",
		},
		"emulated version": {
			"", []string{"--emulated-version=1.33", "--master=http://127.0.0.1:1"}, "emulation version 1.33 is not between [1.34, 1.37.0]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			flags := tc.flags
			if tc.config != "" {
				flags = append(flags, "--config="+testcluster.WriteFile(t, tc.config))
			}
			_, stderr, exitCode := program.Run(t, program.Path(t, "plimsoll-scheduler"), flags...)
			if exitCode != 2 {
				t.Fatalf("exit code %d, want 2\n%s", exitCode, stderr)
			}
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "plimsoll-scheduler: ") || !strings.Contains(last, tc.want) {
				t.Errorf("last line %q, want %q", last, tc.want)
			}
			if tc.config != "" && len(lines) > 1 {
				t.Errorf("more than one line:\n%s", stderr)
			}
		})
	}
}
