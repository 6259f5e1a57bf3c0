package plugins

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
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

var oneNode = schedtest.Cluster{Nodes: []*v1.Node{schedtest.Node("a", "cpu", "8", "memory", "32Gi")}, Pods: []*v1.Pod{schedtest.CPU("1", "a", "4", "12")}}

// now returns a message that says that node a is half busy.
func now(t *testing.T) []byte {
	t.Helper()
	var message bytes.Buffer
	if err := wire.Encode(&message, load.Reading{Time: time.Now(), Nodes: map[string]load.Node{"a": cpuLoad(0.5, 0.1)}}); err != nil {
		t.Fatal(err)
	}
	return message.Bytes()
}

// awaitScore scores node a until the score is as wanted.
func awaitScore(t *testing.T, ctx context.Context, registry func() (framework.Framework, fwk.NodeInfo), want int64) {
	t.Helper()
	f, info := registry()
	var got int64
	err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		scores, status := f.RunScorePlugins(ctx, framework.NewCycleState(), schedtest.CPU("p", "", "1", "2"), []fwk.NodeInfo{info})
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

// Load arrives from a service; two profiles that name it alike share one
// reader, which ends with the scheduler.
func TestLoadFromAService(t *testing.T) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		if r.URL.Path != "/watcher" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(now(t))
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	args := &config.LowRiskOverCommitmentArgs{
		WatcherAddress: server.URL, PollInterval: &metav1.Duration{Duration: time.Hour}, MaxLoadAge: &metav1.Duration{Duration: time.Hour},
	}
	registry := Registry()
	profile := func() (framework.Framework, fwk.NodeInfo) {
		f, snapshot, err := schedtest.New(ctx, registry, schedtest.Plugin{Name: "LowRiskOverCommitment", Args: args}, oneNode)
		if err != nil {
			t.Fatal(err)
		}
		info, err := snapshot.Get("a")
		if err != nil {
			t.Fatal(err)
		}
		return f, info
	}
	// Limit risk 0.67, load risk 0.5: see TestLowRiskOverCommitment.
	awaitScore(t, ctx, profile, 42)
	awaitScore(t, ctx, profile, 42)
	if got := requests.Load(); got != 1 {
		t.Errorf("%d requests for two profiles, want 1", got)
	}
	cancel()
}

func TestLoadFromAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "load.json")
	if err := os.WriteFile(file, now(t), 0o600); err != nil {
		t.Fatal(err)
	}
	args := &config.LowRiskOverCommitmentArgs{MetricProvider: metricprovider.Config{Type: metricprovider.File, Address: file}}
	awaitScore(t, t.Context(), func() (framework.Framework, fwk.NodeInfo) {
		f, snapshot, err := schedtest.New(t.Context(), Registry(), schedtest.Plugin{Name: "LowRiskOverCommitment", Args: args}, oneNode)
		if err != nil {
			t.Fatal(err)
		}
		info, err := snapshot.Get("a")
		if err != nil {
			t.Fatal(err)
		}
		return f, info
	}, 42)
}

// The scheduler batches equal pods only if every plugin of a profile signs
// them.
func TestPodsAreSigned(t *testing.T) {
	for _, name := range Names {
		f, _, err := schedtest.New(t.Context(), Registry(), schedtest.Plugin{Name: name}, oneNode)
		if err != nil {
			t.Fatal(err)
		}
		signature := func(pod *v1.Pod) string { return string(f.SignPod(t.Context(), pod)) }
		same, twin, other := schedtest.CPU("1", "", "1", "2"), schedtest.CPU("2", "", "1", "2"), schedtest.CPU("3", "", "1", "3")
		if signature(same) == "" || signature(same) != signature(twin) {
			t.Errorf("%s: signatures of equal pods are %q and %q", name, signature(same), signature(twin))
		}
		// NodeResourcesAllocatable does not look at the pod.
		if differs := signature(same) != signature(other); differs == (name == "NodeResourcesAllocatable") {
			t.Errorf("%s: pods with other limits: signatures differ: %v", name, differs)
		}
	}
}
