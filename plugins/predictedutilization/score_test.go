package predictedutilization

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// measuredCluster is a plugin with its nodes and its store of load.
type measuredCluster struct {
	*plugin
	store *load.Store
	infos []fwk.NodeInfo
}

// newMeasuredCluster returns a plugin with 40 nodes of three pods each, of 15 workloads. Two nodes also have a pod of each of
// 40 further workloads.
func newMeasuredCluster(t *testing.T) *measuredCluster {
	t.Helper()
	var cluster schedtest.Cluster
	for i := range 40 {
		name := fmt.Sprint("node-", i)
		cluster.Nodes = append(cluster.Nodes, schedtest.Node(name, "cpu", "16", "memory", "64Gi"))
		for j := range 3 {
			pod := schedtest.CPU(fmt.Sprint("pod-", i, "-", j), name, fmt.Sprint((i+j)%4), fmt.Sprint(i%7+4))
			cluster.Pods = append(cluster.Pods, of(fmt.Sprint("app-", (3*i+7*j)%15), pod))
		}
		for j := range 40 * (i / 38) {
			cluster.Pods = append(cluster.Pods,
				of(fmt.Sprint("small-", j), schedtest.CPU(fmt.Sprint("small-", i, "-", j), name, "10m", "20m")))
		}
	}
	store := load.NewStore(100*time.Hour, func() time.Time { return start })
	state := shared.NewWithLoad(func(time.Duration) (*load.Store, error) { return store, nil }, nil)
	s, err := schedtest.New(t.Context(), frameworkruntime.Registry{Name: state.Share(New)}, schedtest.Plugin{Name: Name}, cluster)
	must.Succeed(t, err)
	return &measuredCluster{s.Plugin.(*plugin), store, s.Nodes}
}

// start is the time of the clock of the store.
var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// put stores reading i, at most 60.
func (c *measuredCluster) put(t *testing.T, i int) {
	reading := load.Reading{Time: start.Add(time.Duration(i-60) * time.Minute), Window: time.Minute, Nodes: map[string]load.Node{}}
	for n, node := range c.infos {
		reading.Nodes[node.Node().Name] = schedtest.CPULoad(0.05+0.9*float64((n+7*i)%11)/11, 0.05)
	}
	if err := c.store.Put(reading); err != nil {
		t.Error(err)
	}
}

// pending returns a pod of a workload that has pods on some nodes or on none.
func pending(i int) *v1.Pod {
	workload := fmt.Sprint("app-", i%20)
	if i%5 == 4 {
		workload = fmt.Sprint("small-", i)
	}
	return of(workload, schedtest.CPU("pending", "", "1", "3"))
}

// scores returns the scores of all nodes in a new cycle.
func (c *measuredCluster) scores(t *testing.T, pod *v1.Pod) []int64 {
	state := framework.NewCycleState()
	scores := make([]int64, len(c.infos))
	for i, node := range c.infos {
		score, status := c.Score(t.Context(), state, pod, node)
		if !status.IsSuccess() {
			t.Fatal(status.AsError())
		}
		scores[i] = score
	}
	return scores
}

// want returns the scores by predicting every node from scratch.
func (c *measuredCluster) want(pod *v1.Pod) []int64 {
	scores := make([]int64, len(c.infos))
	cycle := newCycleData(&cache.Pending{Pod: resources.NewPod(pod)}, c.Data(framework.NewCycleState(), pod).model)
	for i, node := range c.infos {
		use := predictNode(cache.NewSums(node), cycle.model)
		scores[i] = c.weights.rawScore(c.terms(&cycle, &use))
	}
	return scores
}

// compare checks the scores of pods of several workloads.
func (c *measuredCluster) compare(t *testing.T, when string) {
	t.Helper()
	for i := range 20 {
		if got, want := c.scores(t, pending(i)), c.want(pending(i)); !slices.Equal(got, want) {
			t.Fatalf("%s, workload %d: scores %v, want %v", when, i, got, want)
		}
	}
}

// TestScoreFallsWithLoad checks that the score of a node is the lower the higher its predicted peak is, also above its allocatable amount,
// in both modes, and that peaks that are not numbers are the worst.
func TestScoreFallsWithLoad(t *testing.T) {
	cycle := &cycleData{model: predict.NewModel()}
	for _, target := range []float64{0, 0.75} {
		pl, last := &plugin{deviations: 1, target: target, weights: termWeights{utilization: 5}}, int64(math.MaxInt64)
		for _, mean := range []float64{750, 751, 990, 1000, 1001, 1050, 2000, 2001, 30_000, math.NaN()} {
			node := &nodeUse{allocatableCPU: 1000, allocatableMemory: 1000}
			node.Sums[predict.CPU] = predict.Sum{Mean: mean, Limit: math.Inf(1)}
			got := pl.weights.rawScore(pl.terms(cycle, node))
			if got >= last {
				t.Errorf("target %v, mean %v of 1000: score %d, want less than %d", target, mean, got, last)
			}
			last = got
		}
	}
}

// TestFullNodes has three nodes whose pods request less the busier the node is, and use more than the node has: the least busy node has the
// highest score.
func TestFullNodes(t *testing.T) {
	five, one := int64(5), int64(1)
	args := &config.PredictedUtilizationArgs{
		TermWeights: config.TermWeights{Utilization: &five, LeastAllocated: &one, BalancedAllocation: &one},
	}
	var cluster schedtest.Cluster
	measured := map[string]load.Node{}
	for i, name := range []string{"a", "b", "c"} {
		cluster.Nodes = append(cluster.Nodes, schedtest.Node(name, "cpu", "4", "memory", "16Gi"))
		cluster.Pods = append(cluster.Pods, of(name, schedtest.CPU("on-"+name, name, fmt.Sprint(3-i), "")))
		measured[name] = schedtest.CPULoad(0.9+0.05*float64(i), 0.3)
	}
	scores, err := schedtest.Run(t, withLoad(measured), schedtest.Plugin{Name: Name, Args: args}, cluster,
		of("new", schedtest.CPU("p", "", "2", "")))
	must.Succeed(t, err)
	if scores["a"].Normalized != 100 || scores["b"].Normalized > 99 || scores["c"].Normalized >= scores["b"].Normalized {
		t.Errorf("scores %v, want a before b before c", scores)
	}
}

// TestNormalize checks that scores are in [0, 100] and in the order of raw scores, that only the best nodes have 100, and that each point
// less costs 7/3.
func TestNormalize(t *testing.T) {
	for _, tc := range []struct{ raw, want []int64 }{
		{[]int64{53_500}, []int64{100}},
		{[]int64{-9_000_000_000_000, 20_000}, []int64{0, 100}},
		// Differences of 0.001 points: 100 - 0.002, rounded down. 3 points: 100 - 7. 15 points: 100 - 35.
		{[]int64{50_000, 49_999, 50_000, 47_000, 35_000, 7_000}, []int64{100, 99, 100, 93, 65, 0}},
	} {
		var nodes fwk.NodeScoreList
		for _, raw := range tc.raw {
			nodes = append(nodes, fwk.NodeScore{Score: raw})
		}
		normalize(nodes)
		for i, node := range nodes {
			if node.Score != tc.want[i] {
				t.Errorf("raw scores %v: node %d has %d, want %d", tc.raw, i, node.Score, tc.want[i])
			}
		}
	}
}

// TestScoresFollowModelsAndPods checks that nodes that were scored get the same scores as from scratch with a new model, and after
// their pods have changed: for pods whose workload is on a node or not.
func TestScoresFollowModelsAndPods(t *testing.T) {
	c := newMeasuredCluster(t)
	c.compare(t, "without load")
	for i := range 3 {
		c.put(t, i)
		c.compare(t, fmt.Sprint("reading ", i))
	}
	c.infos[3].(*framework.NodeInfo).AddPod(of("app-1", schedtest.CPU("new", c.infos[3].Node().Name, "4", "8")))
	c.compare(t, "after a pod was added")
}

// TestModelsArriveWhileScoring has readings arrive while nodes are scored in parallel.
func TestModelsArriveWhileScoring(t *testing.T) {
	c := newMeasuredCluster(t)
	var running sync.WaitGroup
	done := make(chan struct{})
	running.Go(func() {
		defer close(done)
		for i := range 50 {
			c.put(t, i)
		}
	})
	for worker := range 3 {
		running.Go(func() {
			for i := worker; ; i++ {
				c.scores(t, pending(i))
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	running.Wait()
	c.compare(t, "afterwards")
}

// In mode Pack with target 0.75, the score rises from 50 to 100 at the target, and falls from 50 above, to 0 for a full node.
func TestPack(t *testing.T) {
	pl := &plugin{target: 0.75}
	for u, want := range map[float64]float64{
		0:     50,
		0.375: 75, // 50 + 50 x 0.375 / 0.75
		0.75:  100,
		0.875: 25, // 50 x (1 - 0.875) / (1 - 0.75)
		1:     0,
		1.5:   -100,
	} {
		if got := pl.utilizationTerm(u); got != want {
			t.Errorf("utilization %v: %v, want %v", u, got, want)
		}
	}
}
