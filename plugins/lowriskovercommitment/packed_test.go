package lowriskovercommitment

import (
	"fmt"
	"sync"
	"testing"
	"time"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/schedtest"
)

// measuredCluster is a plugin with its nodes and its store of load.
type measuredCluster struct {
	*plugin
	store *load.Store
	all   fwk.SharedLister
	infos []fwk.NodeInfo
}

// newMeasuredCluster returns a plugin with nodes of one pod each. Node 0 has a pod without requests, so that
// its load risk depends on the pending pod.
func newMeasuredCluster(t *testing.T, nodes int) *measuredCluster {
	t.Helper()
	var cluster schedtest.Cluster
	for i := range nodes {
		name := fmt.Sprint("node-", i)
		cluster.Nodes = append(cluster.Nodes, schedtest.Node(name, "cpu", "8", "memory", "32Gi"))
		cluster.Pods = append(cluster.Pods, schedtest.CPU(fmt.Sprint("pod-", i), name, fmt.Sprint(i%5), fmt.Sprint(i%7+2)))
	}
	f, snapshot, err := schedtest.New(t.Context(), withLoad(nil, 0), schedtest.Plugin{Name: Name}, cluster)
	if err != nil {
		t.Fatal(err)
	}
	c := &measuredCluster{store: load.NewStore(time.Hour, nil), all: f.SnapshotSharedLister()}
	created, err := New(t.Context(), nil, f)
	if err != nil {
		t.Fatal(err)
	}
	c.plugin = created.(*plugin)
	c.load = c.store
	c.store.Observe(c.prepare)
	if c.infos, err = snapshot.List(); err != nil {
		t.Fatal(err)
	}
	return c
}

// put stores a reading.
func (c *measuredCluster) put(t *testing.T, i int) {
	reading := load.Reading{Time: time.Now(), Window: time.Minute, Nodes: map[string]load.Node{}}
	for n, node := range c.infos {
		reading.Nodes[node.Node().Name] = schedtest.CPULoad(0.05+0.9*float64((n+7*i)%11)/11, 0.05)
	}
	if err := c.store.Put(reading); err != nil {
		t.Error(err)
	}
}

// scores returns the scores of all nodes in a new cycle.
func (c *measuredCluster) scores(t *testing.T) []int64 {
	state, pod := framework.NewCycleState(), schedtest.CPU("pending", "", "1", "3")
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

// want returns the scores by evaluating every node from scratch.
func (c *measuredCluster) want() []int64 {
	scores := make([]int64, len(c.infos))
	pending := &noderes.Pending{Pod: resources.NewPod(schedtest.CPU("pending", "", "1", "3"))}
	for i, node := range c.infos {
		result := c.evaluate(node.Node(), noderes.NewSums(node), c.load.Fresh())
		cycle := newCycleData(pending, noderes.Input[load.Snapshot]{})
		scores[i] = risk.Score(c.risk(&result, &cycle))
	}
	return scores
}

// countPrepared returns the number of nodes that are evaluated for the newest reading.
func (c *measuredCluster) countPrepared() (count int) {
	input := c.prepared.Input(c.load.Fresh())
	for _, node := range c.infos {
		var values packedValues
		if c.prepared.Load(c.sums.Place(node, c.all), node, input, values[:]) {
			count++
		}
	}
	return count
}

// Nodes are evaluated before the first cycle that uses a reading, and get the same scores as from scratch.
func TestReadingsArePrepared(t *testing.T) {
	c := newMeasuredCluster(t, 40)
	nodesWithRequests := 40 - 40/5
	for i := range 6 {
		c.put(t, i)
		if got := c.countPrepared(); i > 0 && got != nodesWithRequests {
			t.Errorf("reading %d: %d nodes are prepared, want %d", i, got, nodesWithRequests)
		}
		if got, want := c.scores(t), c.want(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("reading %d: scores %v, want %v", i, got, want)
		}
	}
	// Nothing has been scheduled since the previous reading: the first reading prepares for the next cycle, the
	// second does not.
	c.put(t, 6)
	c.put(t, 7)
	if got := c.countPrepared(); got != 0 {
		t.Errorf("%d nodes are prepared without cycles", got)
	}
	if got, want := c.scores(t), c.want(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("scores %v, want %v", got, want)
	}
	// A node changes after it was prepared.
	c.put(t, 8)
	c.infos[3].(*framework.NodeInfo).AddPod(schedtest.CPU("new", c.infos[3].Node().Name, "4", "8"))
	if got, want := c.scores(t), c.want(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after a pod was added: scores %v, want %v", got, want)
	}
}

// Readings arrive while nodes are scored in parallel.
func TestReadingsArriveWhileScoring(t *testing.T) {
	c := newMeasuredCluster(t, 40)
	var running sync.WaitGroup
	done := make(chan struct{})
	running.Go(func() {
		defer close(done)
		for i := range 50 {
			c.put(t, i)
		}
	})
	for range 3 {
		running.Go(func() {
			for {
				c.scores(t)
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	running.Wait()
	if got, want := c.scores(t), c.want(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("scores %v, want %v", got, want)
	}
}
