package scheduler

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// faultyConfig configures a scheduler that reads load from a faulty Prometheus server.
const faultyConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q}
profiles:
- schedulerName: %s
  plugins:
    score: {disabled: [{name: '*'}], enabled: [{name: LowRiskOverCommitment}]}
  pluginConfig:
  - name: LowRiskOverCommitment
    args:
      pollInterval: 200ms
      maxLoadAge: 10s
      countRecentPods: false
      metricProvider: {type: Prometheus, address: %q, nodeLabel: node}
`

// queryResult returns the response to any query: one sample per node.
func queryResult(at time.Time, values map[string]string) string {
	var result []string
	for node, value := range values {
		result = append(result, fmt.Sprintf(`{"metric":{"node":%q},"value":[%.3f,%q]}`, node, float64(at.UnixMilli())/1000, value))
	}
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(result, ",") + `]}}`
}

// TestSchedulerWithFaultyLoadSource checks that with faults of its load source the scheduler
// starts and schedules as fast as without one, by limits only, and logs the fault. Node modest
// scores higher by limits, node eager by load. The tests of the packages below load have all faults.
func TestSchedulerWithFaultyLoadSource(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	kubeconfig := testcluster.KubeconfigOf(t, cp, "system:kube-scheduler")
	testcluster.CreateNode(t, client, "eager")
	testcluster.CreateNode(t, client, "modest")
	// Of 8 CPUs, limits are 12 on eager and 6 on modest.
	testcluster.CreatePod(t, client, "a", "eager", "", "4", "12")
	testcluster.CreatePod(t, client, "b", "modest", "", "4", "6")

	// respond returns the given means and small standard deviations, with a clock that is ahead.
	respond := func(ahead time.Duration, means map[string]string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			values := means
			if strings.Contains(r.FormValue("query"), "stddev_over_time") {
				values = map[string]string{"eager": "0.01", "modest": "0.01"}
			}
			fmt.Fprint(w, queryResult(time.Now().Add(ahead), values))
		}
	}
	means := map[string]string{"eager": "0.01", "modest": "0.99"}
	healthy := respond(0, means)
	var reads atomic.Int64
	tests := []struct {
		name    string
		handler http.HandlerFunc // nil: no server listens
		want    string           // node
		log     string
	}{
		{"healthy", healthy, "eager", "Reading load"},
		{"down-at-start", nil, "modest", "connection refused"},
		{"down-later", func(w http.ResponseWriter, r *http.Request) {
			if reads.Add(1) > 20 {
				panic(http.ErrAbortHandler)
			}
			healthy(w, r)
		}, "modest", "No fresh load"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, "modest", ""},
		{"one-invalid-value", respond(0, map[string]string{"eager": "0.01", "modest": "NaN"}), "modest", "Reading load"},
		{"clock-ahead", respond(10*time.Minute, means), "modest", "ahead of the local clock"},
	}
	var healthyDuration time.Duration
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			address := "http://127.0.0.1:1"
			if tc.handler != nil {
				address = serveFault(t, tc.handler)
			}
			config := fmt.Sprintf(faultyConfig, kubeconfig, tc.name, address)
			duration, process := schedule(t, client, tc.name, config, tc.want, tc.log)
			if healthyDuration == 0 {
				healthyDuration = duration
			}
			t.Logf("scheduled %.1f s after the start", duration.Seconds())
			// The start takes a few seconds, and varies on a busy machine.
			if duration > 2*healthyDuration+5*time.Second {
				t.Errorf("scheduled %s after the start, want at most 5s more than twice without a fault, %s\n%s", duration, healthyDuration,
					process)
			}
		})
	}
}

// serveFault starts a server whose handler may leave requests unread and unanswered. It closes open
// connections when the test ends.
func serveFault(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// schedule starts a scheduler, waits until it has logged a text, creates a pod and checks its node. It
// returns the time from the start until a pod that existed before was bound.
func schedule(t *testing.T, client kubernetes.Interface, name, config, want, log string) (time.Duration, fmt.Stringer) {
	t.Helper()
	testcluster.CreatePod(t, client, "first-"+name, "", name, "10m", "10m")
	began := time.Now()
	process := program.Start(t, program.Path(t, "plimsoll-scheduler"), "--config="+testcluster.WriteFile(t, config), "--secure-port=0")
	defer process.Kill()
	bound := func(name string) (node string) {
		eventually.True(t, name+" is not scheduled", process, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
			if err == nil {
				node = pod.Spec.NodeName
			}
			return node != "", err
		})
		return node
	}
	bound("first-" + name)
	duration := time.Since(began)
	eventually.True(t, fmt.Sprintf("%q was not logged", log), process,
		func(context.Context) (bool, error) {
			return strings.Contains(process.String(), log), nil
		})
	testcluster.CreatePod(t, client, "second-"+name, "", name, "10m", "10m")
	if node := bound("second-" + name); node != want {
		t.Errorf("the pod is bound to %s, want %s\n%s", node, want, process)
	}
	for _, pod := range []string{"first-" + name, "second-" + name} {
		if err := client.CoreV1().Pods(v1.NamespaceDefault).Delete(t.Context(), pod,
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
			t.Error(err)
		}
	}
	return duration, process
}
