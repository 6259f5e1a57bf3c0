package plugins

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// bench is a plugin with nodes to score.
type bench struct {
	plugin fwk.ScorePlugin
	nodes  []fwk.NodeInfo
	pod    *v1.Pod
	state  fwk.CycleState
}

// newBench returns a bench of measured nodes with a number of pods each. Limits are less than the
// allocatable amounts, so that a node needs four evaluations of a beta distribution.
func newBench(tb testing.TB, name string, nodes, podsPerNode int) *bench {
	tb.Helper()
	var cluster schedtest.Cluster
	measured := map[string]load.Node{}
	for i := range nodes {
		node := fmt.Sprintf("node-%04d", i)
		cluster.Nodes = append(cluster.Nodes, schedtest.Node(node, "cpu", "256", "memory", "1Ti"))
		u := load.Utilization{Mean: 0.1 + 0.001*float64(i%300), StdDev: 0.02}
		measured[node] = load.Node{CPU: u, HasCPU: true, Memory: u, HasMemory: true}
		for j := range podsPerNode {
			cluster.Pods = append(cluster.Pods, schedtest.Pod(fmt.Sprint(node, "-", j), node,
				schedtest.Amounts("cpu", "250m", "memory", "1Gi"), schedtest.Amounts("cpu", "1", "memory", "2Gi")))
		}
	}
	store := load.NewStore(time.Hour, nil)
	must.Succeed(tb, store.Put(load.Reading{Time: time.Now(), Nodes: measured}))
	registry := RegistryWithLoad(func(time.Duration) (*load.Store, error) { return store, nil }, nil)
	s, err := schedtest.New(tb.Context(), registry, schedtest.Plugin{Name: name}, cluster)
	must.Succeed(tb, err)
	b := &bench{s.Plugin.(fwk.ScorePlugin), s.Nodes, schedtest.CPU("p", "", "1", "2"), framework.NewCycleState()}
	for i := range b.nodes {
		b.score(tb, i)
	}
	return b
}

func (b *bench) score(tb testing.TB, i int) {
	if _, status := b.plugin.Score(tb.Context(), b.state, b.pod, b.nodes[i%len(b.nodes)]); !status.IsSuccess() {
		tb.Fatal(status.AsError())
	}
}

// cycles scores all nodes in turn as the scheduler does: 500 per cycle, in PreScore and then in Score. between is called before each.
func (b *bench) cycles(tb testing.TB, between func()) {
	for nodes := range slices.Chunk(b.nodes, 500) {
		between()
		state := framework.NewCycleState()
		if p, ok := b.plugin.(fwk.PreScorePlugin); ok {
			if status := p.PreScore(tb.Context(), state, b.pod, nodes); !status.IsSuccess() {
				tb.Fatal(status.AsError())
			}
		}
		for _, node := range nodes {
			if _, status := b.plugin.Score(tb.Context(), state, b.pod, node); !status.IsSuccess() {
				tb.Fatal(status.AsError())
			}
		}
	}
}

// BenchmarkScore measures the score of one node with few and with many pods, of 5,000 nodes in turn,
// which exceed the cache of the processor, of a node that changed since its last score, and of all nodes in cycles with
// PreScore, as in a scheduler, none of which is in the cache of the processor.
func BenchmarkScore(b *testing.B) {
	for _, plugin := range All {
		name := plugin.Name
		for _, size := range []struct{ nodes, pods int }{{1, 10}, {1, 110}, {1, 250}, {5000, 30}} {
			b.Run(fmt.Sprintf("%s/nodes=%d/pods=%d", name, size.nodes, size.pods), func(b *testing.B) {
				bench := newBench(b, name, size.nodes, size.pods)
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					bench.score(b, i)
				}
			})
		}
		b.Run(name+"/just changed/pods=110", func(b *testing.B) {
			bench := newBench(b, name, 1, 110)
			info := bench.nodes[0].(*framework.NodeInfo)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				info.Generation++
				bench.score(b, i)
			}
		})
		b.Run(name+"/cycles/nodes=5000/pods=30", func(b *testing.B) {
			bench := newBench(b, name, 5000, 30)
			// What the scheduler reads between two scores of a node replaces it in the cache of the processor.
			other := make([]byte, 64<<20)
			bench.cycles(b, func() {})
			for b.Loop() {
				bench.cycles(b, func() {
					b.StopTimer()
					for i := 0; i < len(other); i += 64 {
						other[i]++
					}
					b.StartTimer()
				})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(bench.nodes)), "ns/score")
		})
	}
}

func TestScoreAllocations(t *testing.T) {
	for _, plugin := range All {
		name := plugin.Name
		bench := newBench(t, name, 3, 20)
		i := 0
		score := func() { bench.score(t, i); i++ }
		if got := testing.AllocsPerRun(300, score); got != 0 {
			t.Errorf("%s: %v allocations", name, got)
		}
		p, ok := bench.plugin.(fwk.PreScorePlugin)
		if !ok {
			continue
		}
		if status := p.PreScore(t.Context(), bench.state, bench.pod, bench.nodes); !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		if got := testing.AllocsPerRun(300, score); got != 0 {
			t.Errorf("%s: %v allocations after PreScore", name, got)
		}
	}
}
