package noderes

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// lister is a snapshot that only lists its nodes.
type lister struct {
	fwk.SharedLister
	fwk.NodeInfoLister
	nodes []fwk.NodeInfo
	err   error
}

func (l *lister) NodeInfos() fwk.NodeInfoLister { return l }
func (l *lister) List() ([]fwk.NodeInfo, error) { return l.nodes, l.err }

func nodeWith(name string, pods ...*v1.Pod) *framework.NodeInfo {
	info := framework.NewNodeInfo(pods...)
	info.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return info
}

// podRequesting is a pod of one container that requests millicores.
func podRequesting(name string, cpu int64) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}},
	}
}

// numbered returns n nodes with one pod each; that of node i requests i.
func numbered(n int) *lister {
	l := &lister{}
	for i := range n {
		l.nodes = append(l.nodes, nodeWith(fmt.Sprint("node-", i), podRequesting(fmt.Sprint("pod-", i), int64(i))))
	}
	return l
}

func (c *Cache) names() []string {
	var names []string
	for name := range *c.nodes.Load() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestCacheKnowsTheNodesThereAre(t *testing.T) {
	all := numbered(3)
	cache := NewCache()
	newCycle := func(nodes ...fwk.NodeInfo) *lister {
		l := &lister{nodes: nodes}
		cache.Pending(framework.NewCycleState(), &v1.Pod{}, l)
		return l
	}
	known := func(want ...string) {
		t.Helper()
		if got := cache.names(); !slices.Equal(got, want) || cache.Len() != len(want) {
			t.Errorf("nodes %v, want %v", got, want)
		}
	}
	newCycle(all.nodes...)
	known()
	// The first node asked for makes room for all of them.
	cache.Sums(all.nodes[1], all, false)
	known("node-0", "node-1", "node-2")
	// A node is gone: the next cycle forgets it, what is known of others stays.
	kept := cache.Sums(all.nodes[0], all, false)
	two := newCycle(all.nodes[0], all.nodes[2])
	known("node-0", "node-2")
	if cache.Sums(all.nodes[0], two, false) != kept {
		t.Error("sums of a node that stayed were added up again")
	}
	// One goes and one comes: there are never more than in the snapshot.
	swapped := newCycle(all.nodes[0], all.nodes[1])
	cache.Sums(all.nodes[1], swapped, false)
	known("node-0", "node-1")
	// Pods of a node that is not known as one are no reason to stumble.
	cache.Sums(all.nodes[2], &lister{nodes: []fwk.NodeInfo{framework.NewNodeInfo(), all.nodes[2]}}, false)
	known("node-2")
	// Nor is a snapshot that cannot be listed, nor one without the node at hand.
	failing := &lister{err: errors.New("no list")}
	cache.Pending(framework.NewCycleState(), &v1.Pod{}, failing)
	known("node-2")
	if got := cache.Sums(all.nodes[1], failing, false).Get(CPU).Request; got != 1 {
		t.Errorf("without a list: %d, want 1", got)
	}
	if got := cache.Sums(all.nodes[2], &lister{}, false).Get(CPU).Request; got != 2 {
		t.Errorf("with an empty list: %d, want 2", got)
	}
}

// Sums that were handed out do not change, whatever becomes of the node.
func TestSumsHandedOutStay(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, NewCache()
	before := cache.Sums(node, all, false)
	node.AddPod(podRequesting("b", 50))
	if after := cache.Sums(node, all, false).Get(CPU).Request; after != 150 {
		t.Errorf("after: %d, want 150", after)
	}
	if got := before.Get(CPU).Request; got != 100 {
		t.Errorf("before: %d, want 100", got)
	}
}

// The scheduler overwrites a NodeInfo with another: the same pointer, perhaps
// the same number of pods.
func TestCacheOfANodeOverwrittenInPlace(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100), podRequesting("last", 1))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, NewCache()
	cache.Sums(node, all, false)
	last := node.Pods[1].GetPod()
	*node = *nodeWith("node", podRequesting("b", 700), last)
	if got := cache.Sums(node, all, false).Get(CPU).Request; got != 701 {
		t.Errorf("%d, want 701", got)
	}
}

// Sums stay right while nodes come and go under those who read them.
func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	all := numbered(64)
	half := &lister{nodes: all.nodes[:32]}
	cache := NewCache()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 50 {
				cache.Pending(framework.NewCycleState(), &v1.Pod{}, half)
				cache.Pending(framework.NewCycleState(), &v1.Pod{}, all)
			}
		})
	}
	for range 8 {
		running.Go(func() {
			for range 50 {
				for i, node := range all.nodes {
					if got := cache.Sums(node, all, i%2 == 0).Get(CPU).Request; got != int64(i) {
						t.Errorf("node %d: %d", i, got)
					}
				}
			}
		})
	}
	running.Wait()
	cache.Pending(framework.NewCycleState(), &v1.Pod{}, half)
	if got := cache.Len(); got != 32 {
		t.Errorf("%d nodes in the cache, want 32", got)
	}
}

func TestReadingTheCacheAllocatesNothing(t *testing.T) {
	all := numbered(100)
	cache := NewCache()
	for _, inGroup := range []bool{false, true} {
		allocations := testing.AllocsPerRun(100, func() {
			for _, node := range all.nodes {
				cache.Sums(node, all, inGroup).Get(Memory)
			}
		})
		if allocations != 0 {
			t.Errorf("in a group %t: %v allocations for 100 nodes", inGroup, allocations)
		}
	}
}

func BenchmarkSums(b *testing.B) {
	var pods []*v1.Pod
	for i := range 100 {
		pods = append(pods, podRequesting(fmt.Sprint("pod-", i), int64(i)))
	}
	node := nodeWith("node", pods...)
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, NewCache()
	for name, inGroup := range map[string]bool{"unchanged": false, "unchanged, in a group": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				cache.Sums(node, all, inGroup)
			}
		})
	}
	b.Run("a new generation of a hundred pods", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			node.Generation++
			cache.Sums(node, all, false)
		}
	})
}
