package lowriskovercommitment

import (
	"fmt"
	"slices"
	"testing"
	"time"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
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
	store := load.NewStore(time.Hour, nil)
	state := shared.NewWithLoad(func(time.Duration) (*load.Store, error) { return store, nil }, nil)
	s, err := schedtest.New(t.Context(), frameworkruntime.Registry{Name: state.Share(New)}, schedtest.Plugin{Name: Name}, cluster)
	must.Succeed(t, err)
	return &measuredCluster{s.Plugin.(*plugin), store, s.Nodes}
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
	pending := resources.NewPod(schedtest.CPU("pending", "", "1", "3"))
	pod := amountsOf(&pending)
	for i, node := range c.infos {
		result := c.model.node(cache.NewSums(node), c.load.Fresh())
		scores[i] = c.model.score(&result, &pod)
	}
	return scores
}

// Nodes that were scored get the same scores as from scratch after a new reading, and after their pods have changed.
func TestScoresFollowReadingsAndPods(t *testing.T) {
	c := newMeasuredCluster(t, 40)
	for i := range 3 {
		c.put(t, i)
		if got, want := c.scores(t), c.want(); !slices.Equal(got, want) {
			t.Errorf("reading %d: scores %v, want %v", i, got, want)
		}
	}
	c.infos[3].(*framework.NodeInfo).AddPod(schedtest.CPU("new", c.infos[3].Node().Name, "4", "8"))
	if got, want := c.scores(t), c.want(); !slices.Equal(got, want) {
		t.Errorf("after a pod was added: scores %v, want %v", got, want)
	}
}
