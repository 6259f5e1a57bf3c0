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

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// lister is a snapshot that can only list its nodes.
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

// podRequesting returns a pod with one container that requests CPU in millicores.
func podRequesting(name string, cpu int64) *v1.Pod {
	requests := v1.ResourceList{v1.ResourceCPU: *resource.NewMilliQuantity(cpu, resource.DecimalSI)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}},
	}
}

// numbered returns n nodes with one pod each; the pod of node i requests i millicores.
func numbered(n int) *lister {
	l := &lister{}
	for i := range n {
		l.nodes = append(l.nodes, nodeWith(fmt.Sprint("node-", i), podRequesting(fmt.Sprint("pod-", i), int64(i))))
	}
	return l
}

func (c *Cache) names() []string {
	var names []string
	for _, node := range c.nodes.Load().nodes {
		names = append(names, node.Node().Name)
	}
	slices.Sort(names)
	return names
}

func TestCacheHasTheNodesOfTheSnapshot(t *testing.T) {
	all := numbered(3)
	cache := NewCache()
	newCycle := func(nodes ...fwk.NodeInfo) *lister {
		l := &lister{nodes: nodes}
		cache.Pending(framework.NewCycleState(), &v1.Pod{}, l)
		return l
	}
	expect := func(want ...string) {
		t.Helper()
		if got := cache.names(); !slices.Equal(got, want) || cache.Len() != len(want) {
			t.Errorf("nodes %v, want %v", got, want)
		}
	}
	newCycle(all.nodes...)
	expect()
	// The first node adds all nodes of the snapshot.
	cache.Sums(all.nodes[1], all, false)
	expect("node-0", "node-1", "node-2")
	// A node was deleted: the next cycle drops it and keeps the sums of the others.
	kept := cache.Sums(all.nodes[0], all, false)
	two := newCycle(all.nodes[0], all.nodes[2])
	expect("node-0", "node-2")
	if cache.Sums(all.nodes[0], two, false) != kept {
		t.Error("sums of an unchanged node were computed again")
	}
	// One node was deleted and one added: the cache never has more nodes than the snapshot.
	swapped := newCycle(all.nodes[0], all.nodes[1])
	cache.Sums(all.nodes[1], swapped, false)
	expect("node-0", "node-1")
	// A NodeInfo without a node, which still has pods, is skipped.
	cache.Sums(all.nodes[2], &lister{nodes: []fwk.NodeInfo{framework.NewNodeInfo(), all.nodes[2]}}, false)
	expect("node-2")
	// A snapshot that cannot be listed, or lacks the given node, is no error.
	failing := &lister{err: errors.New("no list")}
	cache.Pending(framework.NewCycleState(), &v1.Pod{}, failing)
	expect("node-2")
	if got := cache.Sums(all.nodes[1], failing, false).Get(resources.CPUResource).Request; got != 1 {
		t.Errorf("snapshot without a list: %d, want 1", got)
	}
	if got := cache.Sums(all.nodes[2], &lister{}, false).Get(resources.CPUResource).Request; got != 2 {
		t.Errorf("snapshot with an empty list: %d, want 2", got)
	}
}

// Returned sums do not change when the node changes.
func TestReturnedSumsAreImmutable(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, NewCache()
	before := cache.Sums(node, all, false)
	node.AddPod(podRequesting("b", 50))
	if after := cache.Sums(node, all, false).Get(resources.CPUResource).Request; after != 150 {
		t.Errorf("after: %d, want 150", after)
	}
	if got := before.Get(resources.CPUResource).Request; got != 100 {
		t.Errorf("before: %d, want 100", got)
	}
}

// The scheduler overwrites a NodeInfo in place: same pointer, possibly the same number of pods.
func TestNodeOverwrittenInPlace(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100), podRequesting("last", 1))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, NewCache()
	cache.Sums(node, all, false)
	last := node.Pods[1].GetPod()
	*node = *nodeWith("node", podRequesting("b", 700), last)
	if got := cache.Sums(node, all, false).Get(resources.CPUResource).Request; got != 701 {
		t.Errorf("%d, want 701", got)
	}
}

// Sums are correct while nodes are added and deleted concurrently.
func TestCacheConcurrently(t *testing.T) {
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
					if got := cache.Sums(node, all, i%2 == 0).Get(resources.CPUResource).Request; got != int64(i) {
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

func TestCacheAllocations(t *testing.T) {
	all := numbered(100)
	cache := NewCache()
	for _, inGroup := range []bool{false, true} {
		allocations := testing.AllocsPerRun(100, func() {
			for _, node := range all.nodes {
				cache.Sums(node, all, inGroup).Get(resources.MemoryResource)
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
	b.Run("new generation with 100 pods", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			node.Generation++
			cache.Sums(node, all, false)
		}
	})
}
