package shared

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// fakeInformers are informers with given objects, without an API server.
type fakeInformers struct {
	informers.SharedInformerFactory
	nodes, pods toolscache.Indexer
}

func newFakeInformers() *fakeInformers {
	factory := informers.NewSharedInformerFactory(nil, 0)
	return &fakeInformers{factory, factory.Core().V1().Nodes().Informer().GetIndexer(), factory.Core().V1().Pods().Informer().GetIndexer()}
}

func (f *fakeInformers) add(t testing.TB, nodes []*v1.Node, pods []*v1.Pod) {
	t.Helper()
	for _, node := range nodes {
		must.Succeed(t, f.nodes.Add(node))
	}
	for _, pod := range pods {
		pod.UID = types.UID(pod.Name)
		must.Succeed(t, f.pods.Add(pod))
	}
}

// podCountRisk evaluates a node to a tenth of its number of pods.
type podCountRisk struct{}

func (podCountRisk) Risk(sums *cache.NodeSums) float64 {
	return float64(sums.Len()) / 10
}

// Three nodes, of 8 CPUs each:
//
//	a: limits 4 + 12 = 16 of 8: 2        2 pods
//	b: limit 3 of 8: 0.375, unbounded    1 pod and a finished one
//	c: no limits: 0                      0 pods
func TestCollect(t *testing.T) {
	informers := newFakeInformers()
	finished, pending := schedtest.CPU("4", "b", "8", "80"), schedtest.CPU("5", "", "8", "80")
	finished.Status.Phase = v1.PodSucceeded
	unlimited := schedtest.Pod("3", "b", schedtest.Amounts("cpu", "3"), nil)
	informers.add(t,
		[]*v1.Node{schedtest.Node("a", "cpu", "8"), schedtest.Node("b", "cpu", "8"), schedtest.Node("c", "cpu", "8")},
		[]*v1.Pod{schedtest.CPU("1", "a", "2", "4"), schedtest.CPU("2", "a", "2", "12"), unlimited, finished, pending})
	var c Collector
	if n := testutil.CollectAndCount(&c); n != 0 {
		t.Errorf("%d metrics without a scheduler", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Watch(ctx, informers, "default-scheduler", nil)
	c.Watch(ctx, informers, "default-scheduler", podCountRisk{})
	expect := func(step, name, want string) {
		t.Helper()
		if err := testutil.CollectAndCompare(&c, strings.NewReader(want), name); err != nil {
			t.Errorf("%s: %v", step, err)
		}
	}
	gauges := func(cpu, memory int) string {
		return fmt.Sprintf(`# HELP plimsoll_scheduler_nodes_unbounded [ALPHA] Number of nodes with at least one pod without a limit.
# TYPE plimsoll_scheduler_nodes_unbounded gauge
plimsoll_scheduler_nodes_unbounded{resource="cpu"} %d
plimsoll_scheduler_nodes_unbounded{resource="memory"} %d
`, cpu, memory)
	}
	// No pod has a memory limit, on a and on b.
	expect("unbounded", "plimsoll_scheduler_nodes_unbounded", gauges(1, 2))
	limits := histogramOf(t, &c, "plimsoll_scheduler_node_limit_ratio", "cpu")
	risks := histogramOf(t, &c, "plimsoll_scheduler_node_risk_ratio", "default-scheduler")
	if got, want := [...]any{
		limits.GetSampleCount(), limits.GetSampleSum(), within(limits, 0.25), within(limits, 0.5), within(limits, 1.5),
		within(limits, 2),
	},
		[...]any{uint64(3), 2.375, uint64(1), uint64(2), uint64(2), uint64(3)}; got != want {
		t.Errorf("limits: %v, want %v", got, want)
	}
	// 0.2, 0.1 and 0.
	if got, want := [...]uint64{risks.GetSampleCount(), within(risks, 0.1), within(risks, 0.2)}, [...]uint64{3, 2, 3}; got != want {
		t.Errorf("risks: %v, want %v", got, want)
	}
	// The nodes have no memory, so there is no ratio.
	if n := histogramOf(t, &c, "plimsoll_scheduler_node_limit_ratio", "memory").GetSampleCount(); n != 0 {
		t.Errorf("%d nodes with memory", n)
	}
	must.Succeed(t, informers.pods.Delete(unlimited))
	expect("after the pod without a limit was deleted", "plimsoll_scheduler_nodes_unbounded", gauges(0, 1))
	// The nodes of another scheduler replace these, until it stops.
	other := newFakeInformers()
	other.add(t, []*v1.Node{schedtest.Node("x", "cpu", "1")}, nil)
	ending, end := context.WithCancel(t.Context())
	c.Watch(ending, other, "default-scheduler", nil)
	if n := histogramOf(t, &c, "plimsoll_scheduler_node_limit_ratio", "cpu").GetSampleCount(); n != 1 {
		t.Errorf("%d nodes of the other scheduler", n)
	}
	end()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return testutil.CollectAndCount(&c) == 0, nil
	})
	if err != nil {
		t.Error("metrics are still exposed after the scheduler stopped")
	}
}

// gather returns a metric family.
func gather(t testing.TB, c prometheus.Collector, name string) *dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	must.Succeed(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// histogramOf returns the histogram whose only label has the given value.
func histogramOf(t testing.TB, c prometheus.Collector, name, label string) *dto.Histogram {
	t.Helper()
	for _, metric := range gather(t, c, name).Metric {
		if metric.Label[0].GetValue() == label {
			return metric.Histogram
		}
	}
	t.Fatalf("no %s of %s", name, label)
	return nil
}

func within(h *dto.Histogram, bound float64) uint64 {
	for _, bucket := range h.Bucket {
		if bucket.GetUpperBound() == bound {
			return bucket.GetCumulativeCount()
		}
	}
	return 0
}

// After any changes between scrapes, a collector exposes the same values as a new collector.
func TestCollectAfterChanges(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		informers := newFakeInformers()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var c Collector
		c.Watch(ctx, informers, "p", podCountRisk{})
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			node := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(r, "node"))
			name := fmt.Sprint("p", rapid.IntRange(0, 9).Draw(r, "pod"))
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0:
				informers.add(
					t, []*v1.Node{schedtest.Node(node, "cpu", fmt.Sprint(rapid.IntRange(0, 4).Draw(r, "cpu")), "memory", "1Gi")}, nil,
				)
			case 1:
				_ = informers.nodes.Delete(schedtest.Node(node))
			case 2:
				_ = informers.pods.Delete(schedtest.CPU(name, "", "1", "1"))
			default:
				informers.add(t, nil, []*v1.Pod{schedtest.CPU(name, node, fmt.Sprint(rapid.IntRange(0, 3).Draw(r, "request")),
					fmt.Sprint(rapid.IntRange(1, 9).Draw(r, "limit")))})
			}
			var fresh Collector
			fresh.Watch(ctx, informers, "p", podCountRisk{})
			for _, name := range []string{
				"plimsoll_scheduler_node_limit_ratio", "plimsoll_scheduler_nodes_unbounded",
				"plimsoll_scheduler_node_risk_ratio",
			} {
				if diff := cmp.Diff(gather(t, &fresh, name).String(), gather(t, &c, name).String()); diff != "" {
					r.Fatalf("%s: %s", name, diff)
				}
			}
		}
	})
}
