package nodemetrics

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
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// known is what the informers of a scheduler know, without an API server.
type known struct {
	informers.SharedInformerFactory
	nodes, pods cache.Indexer
}

func newKnown() *known {
	factory := informers.NewSharedInformerFactory(nil, 0)
	return &known{factory, factory.Core().V1().Nodes().Informer().GetIndexer(), factory.Core().V1().Pods().Informer().GetIndexer()}
}

func (k *known) add(t testing.TB, nodes []*v1.Node, pods []*v1.Pod) {
	t.Helper()
	for _, node := range nodes {
		if err := k.nodes.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	for _, pod := range pods {
		pod.UID = types.UID(pod.Name)
		if err := k.pods.Add(pod); err != nil {
			t.Fatal(err)
		}
	}
}

// byPods judges a node by the number of its pods, a tenth for each.
type byPods struct{}

func (byPods) Risk(node fwk.NodeInfo, _ *noderes.Sums) float64 {
	return float64(len(node.GetPods())) / 10
}

// Three nodes, of 8 CPUs each:
//
//	a: limits 4 + 12 = 16 of 8: 2        2 pods
//	b: limit 3 of 8: 0.375, unbounded    1 pod and one that has ended
//	c: nothing: 0                        0 pods
func TestCollect(t *testing.T) {
	is := newKnown()
	ended, waiting := schedtest.CPU("4", "b", "8", "80"), schedtest.CPU("5", "", "8", "80")
	ended.Status.Phase = v1.PodSucceeded
	unlimited := schedtest.Pod("3", "b", schedtest.Amounts("cpu", "3"), nil)
	is.add(t,
		[]*v1.Node{schedtest.Node("a", "cpu", "8"), schedtest.Node("b", "cpu", "8"), schedtest.Node("c", "cpu", "8")},
		[]*v1.Pod{schedtest.CPU("1", "a", "2", "4"), schedtest.CPU("2", "a", "2", "12"), unlimited, ended, waiting})
	var c Collector
	if n := testutil.CollectAndCount(&c); n != 0 {
		t.Errorf("%d metrics of no scheduler", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Watch(ctx, is, "default-scheduler", nil)
	c.Watch(ctx, is, "default-scheduler", byPods{})
	expect := func(what, name, want string) {
		t.Helper()
		if err := testutil.CollectAndCompare(&c, strings.NewReader(want), name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	gauges := func(cpu, memory int) string {
		return fmt.Sprintf("# HELP plimsoll_scheduler_nodes_unbounded [ALPHA] Number of nodes with at least one pod without a limit.\n# TYPE plimsoll_scheduler_nodes_unbounded gauge\nplimsoll_scheduler_nodes_unbounded{resource=\"cpu\"} %d\nplimsoll_scheduler_nodes_unbounded{resource=\"memory\"} %d\n", cpu, memory)
	}
	// No pod declares memory: all may use any amount, on a and on b.
	expect("unbounded", "plimsoll_scheduler_nodes_unbounded", gauges(1, 2))
	limits, risks := histogramOf(t, &c, "plimsoll_scheduler_node_limit_ratio", "cpu"), histogramOf(t, &c, "plimsoll_scheduler_node_risk_ratio", "default-scheduler")
	if got, want := [...]any{limits.GetSampleCount(), limits.GetSampleSum(), within(limits, 0.25), within(limits, 0.5), within(limits, 1.5), within(limits, 2)},
		[...]any{uint64(3), 2.375, uint64(1), uint64(2), uint64(2), uint64(3)}; got != want {
		t.Errorf("limits: %v, want %v", got, want)
	}
	// 0.2, 0.1 and 0.
	if got, want := [...]uint64{risks.GetSampleCount(), within(risks, 0.1), within(risks, 0.2)}, [...]uint64{3, 2, 3}; got != want {
		t.Errorf("risks: %v, want %v", got, want)
	}
	// Of memory the nodes have none: that is no ratio.
	if n := histogramOf(t, &c, "plimsoll_scheduler_node_limit_ratio", "memory").GetSampleCount(); n != 0 {
		t.Errorf("%d nodes that have memory", n)
	}
	if err := is.pods.Delete(unlimited); err != nil {
		t.Fatal(err)
	}
	expect("after the pod without a limit has gone", "plimsoll_scheduler_nodes_unbounded", gauges(0, 1))
	// Another scheduler's nodes take the place of these, and end with it.
	other := newKnown()
	other.add(t, []*v1.Node{schedtest.Node("x", "cpu", "1")}, nil)
	ending, end := context.WithCancel(t.Context())
	c.Watch(ending, other, "default-scheduler", nil)
	if n := histogramOf(t, &c, "plimsoll_scheduler_node_limit_ratio", "cpu").GetSampleCount(); n != 1 {
		t.Errorf("%d nodes of the other scheduler", n)
	}
	end()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		return testutil.CollectAndCount(&c) == 0, nil
	})
	if err != nil {
		t.Error("shown after its end")
	}
}

// gather returns a family of metrics.
func gather(t testing.TB, c prometheus.Collector, name string) *dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// histogramOf returns that whose only label has a value.
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

// Whatever comes and goes between scrapes, they say what a collector says that
// sees the nodes for the first time.
func TestCollectForgetsNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		is := newKnown()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		var c Collector
		c.Watch(ctx, is, "p", byPods{})
		for range rapid.IntRange(1, 20).Draw(r, "steps") {
			node := fmt.Sprint("n", rapid.IntRange(0, 3).Draw(r, "node"))
			name := fmt.Sprint("p", rapid.IntRange(0, 9).Draw(r, "pod"))
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0:
				is.add(t, []*v1.Node{schedtest.Node(node, "cpu", fmt.Sprint(rapid.IntRange(0, 4).Draw(r, "cpu")), "memory", "1Gi")}, nil)
			case 1:
				_ = is.nodes.Delete(schedtest.Node(node))
			case 2:
				_ = is.pods.Delete(schedtest.CPU(name, "", "1", "1"))
			default:
				is.add(t, nil, []*v1.Pod{schedtest.CPU(name, node, fmt.Sprint(rapid.IntRange(0, 3).Draw(r, "request")), fmt.Sprint(rapid.IntRange(1, 9).Draw(r, "limit")))})
			}
			var anew Collector
			anew.Watch(ctx, is, "p", byPods{})
			for _, name := range []string{"plimsoll_scheduler_node_limit_ratio", "plimsoll_scheduler_nodes_unbounded", "plimsoll_scheduler_node_risk_ratio"} {
				if diff := cmp.Diff(gather(t, &anew, name).String(), gather(t, &c, name).String()); diff != "" {
					r.Fatalf("%s: %s", name, diff)
				}
			}
		}
	})
}

// BenchmarkCollect is the time of a scrape of 5,000 nodes with 30 pods each, of
// which nothing, or the pods of 100 nodes, have changed since the one before.
func BenchmarkCollect(b *testing.B) {
	for _, changed := range []int{0, 100} {
		b.Run(fmt.Sprintf("changed=%d", changed), func(b *testing.B) {
			is := newKnown()
			pod := func(i, j int) *v1.Pod { return schedtest.CPU(fmt.Sprint(i, "-", j), fmt.Sprint(i), "1", "2") }
			for i := range 5000 {
				pods := make([]*v1.Pod, 30)
				for j := range pods {
					pods[j] = pod(i, j)
				}
				is.add(b, []*v1.Node{schedtest.Node(fmt.Sprint(i), "cpu", "64", "memory", "256Gi")}, pods)
			}
			var c Collector
			c.Watch(b.Context(), is, "p", byPods{})
			testutil.CollectAndCount(&c)
			b.ReportAllocs()
			for b.Loop() {
				for i := range changed {
					is.add(b, nil, []*v1.Pod{pod(i, 0)})
				}
				testutil.CollectAndCount(&c)
			}
		})
	}
}
