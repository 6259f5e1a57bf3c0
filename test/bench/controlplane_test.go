package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/command"
	"github.com/plimsoll-k8s/plimsoll/test/support/measure"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func TestMain(m *testing.M) {
	controlplane.RunIfChild()
	os.Exit(m.Run())
}

// configuration is the configuration of the scheduler.
const configuration = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 10000, burst: 10000, contentType: application/vnd.kubernetes.protobuf}
profiles:
- schedulerName: default
- schedulerName: all
  plugins:
    multiPoint:
      enabled:
      - {name: NodeResourcesAllocatable}
      - {name: NodeResourcesLimits}
      - {name: LowRiskOverCommitment}
      - {name: PredictedUtilization}
- schedulerName: predicted
  plugins:
    multiPoint:
      enabled: [{name: PredictedUtilization, weight: 3}]
    score:
      disabled: [{name: NodeResourcesFit}, {name: NodeResourcesBalancedAllocation}]
  pluginConfig:
  - name: PredictedUtilization
    args: {termWeights: {utilization: 5, leastAllocated: 1, balancedAllocation: 1}}
- schedulerName: limits
  plugins:
    multiPoint:
      enabled: [{name: NodeResourcesLimits}]
    score:
      disabled: [{name: NodeResourcesFit}]
- schedulerName: low-risk
  plugins:
    multiPoint:
      enabled: [{name: LowRiskOverCommitment, weight: 2}]
- schedulerName: batch
  plugins:
    multiPoint:
      enabled: [{name: NodeResourcesLimits}]
    score:
      disabled: [{name: NodeResourcesFit}]
  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: []}
`

// BenchmarkControlPlane schedules 12,000 pods on 5,000 nodes with the real API server and scheduler, including queue, batching and
// binding: with each profile in turn, in five rounds. It reports the median of the ratios to the default profile of the same round; the
// log has their range. The pods of each run exist before the scheduler starts, in groups of 50 equal pods, as Deployments have. A run is
// timed from its first binding to its last.
func BenchmarkControlPlane(b *testing.B) {
	const nodes, podsPerRun, rounds = 5000, 400, 5
	profiles := []string{"default", "predicted", "limits", "low-risk", "all", "batch"}
	runs := slices.Repeat(profiles, rounds)
	for b.Loop() {
		began := time.Now()
		cp, err := controlplane.Start(b.Context(), controlplane.Options{})
		must.Succeed(b, err)
		b.ReportMetric(time.Since(began).Seconds(), "s-to-ready")
		config, err := cp.Config("bench", "system:masters")
		must.Succeed(b, err)
		config.ContentType = "application/vnd.kubernetes.protobuf"
		client, err := kubernetes.NewForConfig(config)
		must.Succeed(b, err)
		kubeconfig := filepath.Join(b.TempDir(), "kubeconfig")
		must.Succeed(b, cp.WriteKubeconfig(kubeconfig, "system:kube-scheduler", "system:masters"))
		began = time.Now()
		inParallel(b, nodes, func(i int) error {
			_, err := client.CoreV1().Nodes().Create(b.Context(), newNode(i), metav1.CreateOptions{})
			return err
		})
		b.ReportMetric(nodes/time.Since(began).Seconds(), "nodes-created/s")

		took, created := map[string][]time.Duration{}, time.Duration(0)
		for run, profile := range runs {
			began = time.Now()
			inParallel(b, podsPerRun, func(i int) error {
				pod := newPod(i/50, "")
				pod.Name = fmt.Sprintf("run-%d-pod-%05d", run, i)
				pod.UID, pod.Spec.SchedulerName = "", profile
				_, err := client.CoreV1().Pods("default").Create(b.Context(), pod, metav1.CreateOptions{})
				return err
			})
			created += time.Since(began)
			took[profile] = append(took[profile], scheduleAll(b, client, kubeconfig, podsPerRun*run, podsPerRun))
		}
		b.ReportMetric(float64(len(runs)*podsPerRun)/created.Seconds(), "pods-created/s")
		for _, profile := range profiles {
			var rates, ratios []float64
			for round, duration := range took[profile] {
				rates = append(rates, podsPerRun/duration.Seconds())
				ratios = append(ratios, took["default"][round].Seconds()/duration.Seconds())
			}
			b.ReportMetric(newEstimate(rates).median, "pods/s-"+profile)
			b.Logf("%s relative to default: %v", profile, newEstimate(ratios))
		}
		b.ReportMetric(float64(measure.PeakMemory(cp.ProcessID()))/(1<<20), "MiB-peak-servers")
		cp.Stop()
	}
	b.ReportMetric(0, "ns/op")
}

// bindings counts bound pods and records the times of the first and the last of a run.
type bindings struct {
	mu           sync.Mutex
	bound        map[string]bool
	before, want int
	first, last  time.Time
	done         chan struct{}
}

// see counts a pod if it is bound.
func (c *bindings) see(obj any) {
	pod := obj.(*v1.Pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	if pod.Spec.NodeName == "" || c.bound[pod.Name] {
		return
	}
	c.bound[pod.Name] = true
	switch len(c.bound) {
	case c.before + 1:
		c.first = time.Now()
	case c.want:
		c.last = time.Now()
		close(c.done)
	}
}

// scheduleAll runs a scheduler until a number of further pods are bound, and returns the time from its first
// binding to its last.
func scheduleAll(b *testing.B, client kubernetes.Interface, kubeconfig string, before, pods int) time.Duration {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	count := &bindings{bound: map[string]bool{}, before: before, want: before + pods, done: make(chan struct{})}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", "default", fields.Everything()),
		ObjectType:    &v1.Pod{},
		Handler:       cache.ResourceEventHandlerFuncs{AddFunc: count.see, UpdateFunc: func(_, obj any) { count.see(obj) }},
	})
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		b.Fatal("listing pods failed")
	}
	file := filepath.Join(b.TempDir(), "scheduler.yaml")
	must.Succeed(b, os.WriteFile(file, fmt.Appendf(nil, configuration, kubeconfig), 0o600))
	opts := options.NewOptions()
	opts.ConfigFile, opts.SecureServing.BindPort = file, 0
	ended := make(chan error, 1)
	go func() { ended <- command.Run(ctx, opts, nil) }()
	select {
	case <-count.done:
	case err := <-ended:
		b.Fatalf("the scheduler exited: %v", err)
	}
	cancel()
	<-ended
	configz.Delete("componentconfig") // registered once per process
	return count.last.Sub(count.first)
}

// inParallel calls do for the numbers from 0 to n-1 with 16 goroutines.
func inParallel(b *testing.B, n int, do func(int) error) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return do(i) })
	}
	must.Succeed(b, group.Wait())
}
