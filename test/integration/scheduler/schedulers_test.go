package scheduler

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/command"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSchedulersInOneProcess checks that a scheduler can be started in a process after another one has
// ended, with metrics of its own load, and that a second one at the same time is refused.
func TestSchedulersInOneProcess(t *testing.T) {
	cp, _, client := testcluster.StartControlPlane(t)
	testcluster.CreateNode(t, client, "node")
	watcher, _ := serveLoad(t, map[string]load.Node{"node": {CPU: load.Utilization{Mean: 0.5}, HasCPU: true}})
	newOptions := func() *options.Options {
		opts := options.NewOptions()
		opts.ConfigFile = testcluster.WriteFile(t, fmt.Sprintf(strings.Replace(legacyConfig, "leaderElect: true", "leaderElect: false", 1),
			testcluster.KubeconfigOf(t, cp, "system:kube-scheduler"), watcher))
		opts.SecureServing.BindPort = 0
		return opts
	}
	metrics := func() string {
		response := httptest.NewRecorder()
		legacyregistry.Handler().ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
		return response.Body.String()
	}
	sample := "plimsoll_load_nodes{source=\"the load watcher at " + watcher + "/watcher\"} "
	for _, name := range []string{"first", "second"} {
		ctx, stop := context.WithCancel(t.Context())
		started, ended := make(chan struct{}), make(chan error, 1)
		go func() { ended <- command.Run(ctx, newOptions(), func(*scheduler.Scheduler) { close(started) }) }()
		select {
		case <-started:
		case err := <-ended:
			stop()
			t.Fatalf("the %s scheduler did not start: %v", name, err)
		}
		testcluster.CreatePod(t, client, name, "", "trimaran", "100m", "100m")
		eventually.True(t, "the pod of the "+name+" scheduler is not placed", nil, func(ctx context.Context) (bool, error) {
			pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
			return err == nil && pod.Status.Phase == v1.PodRunning, err
		})
		eventually.True(t, "the metrics do not show the load of the "+name+" scheduler", nil, func(context.Context) (bool, error) {
			return strings.Contains(metrics(), sample+"1\n"), nil
		})
		var refused *command.StartError
		if err := command.Run(ctx, newOptions(), nil); !errors.As(err, &refused) ||
			!strings.Contains(err.Error(), "another kube-scheduler runs") {
			t.Errorf("a scheduler in addition to the %s one: %v, want it to be refused", name, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the %s scheduler: %v", name, err)
		}
		eventually.True(t, "the metrics show the load of the "+name+" scheduler after its end", nil, func(context.Context) (bool, error) {
			return !strings.Contains(metrics(), sample), nil
		})
	}
}
