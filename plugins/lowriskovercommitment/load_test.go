package lowriskovercommitment

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

var oneNode = schedtest.Cluster{
	Nodes: []*v1.Node{schedtest.Node("a", "cpu", "8", "memory", "32Gi")},
	Pods:  []*v1.Pod{schedtest.CPU("1", "a", "4", "12")},
}

// message returns a load message: node a uses half of its CPU.
func message(t *testing.T) []byte {
	t.Helper()
	var buffer bytes.Buffer
	must.Succeed(t, wire.Encode(&buffer, load.Reading{Time: time.Now(), Nodes: map[string]load.Node{"a": schedtest.CPULoad(0.5, 0.1)}}))
	return buffer.Bytes()
}

// awaitScore starts a scheduler and scores node a until it gets the wanted score.
func awaitScore(t *testing.T, ctx context.Context, registry frameworkruntime.Registry, args *config.LowRiskOverCommitmentArgs, want int64) {
	t.Helper()
	s, err := schedtest.New(ctx, registry, schedtest.Plugin{Name: Name, Args: args}, oneNode)
	must.Succeed(t, err)
	var got int64
	err = wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		scores, status := s.RunScorePlugins(ctx, framework.NewCycleState(), schedtest.CPU("p", "", "1", "2"), s.Nodes)
		if !status.IsSuccess() {
			return false, status.AsError()
		}
		got = scores[0].TotalScore
		return got == want, nil
	})
	if err != nil {
		t.Errorf("score %d, want %d: %v", got, want, err)
	}
}

// Two profiles with the same load-watcher service share one store.
func TestLoadFromService(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path != "/watcher" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(message(t))
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	args := &config.LowRiskOverCommitmentArgs{
		WatcherAddress: server.URL, PollInterval: &metav1.Duration{Duration: time.Hour}, MaxLoadAge: &metav1.Duration{Duration: time.Hour},
	}
	registry := frameworkruntime.Registry{Name: shared.New().Share(New)}
	// Limit risk 0.67, load risk 0.5: see TestScore.
	awaitScore(t, ctx, registry, args, 42)
	awaitScore(t, ctx, registry, args, 42)
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests for two profiles, want 1", got)
	}
	cancel()
}

func TestLoadFromFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load.json")
	must.Succeed(t, os.WriteFile(file, message(t), 0o600))
	args := &config.LowRiskOverCommitmentArgs{MetricProvider: metricprovider.Config{Type: metricprovider.File, Address: file}}
	awaitScore(t, t.Context(), frameworkruntime.Registry{Name: New}, args, 42)
}
