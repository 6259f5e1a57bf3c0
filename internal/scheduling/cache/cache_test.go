package cache

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
	"k8s.io/klog/v2"
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

// in returns a cycle over a snapshot.
func in(all fwk.SharedLister) *Pending { return &Pending{all: all} }

// names returns the names of the nodes in the cache.
func (c *Cache) names() []string {
	var names []string
	for info := range c.load() {
		names = append(names, info.Node().Name)
	}
	slices.Sort(names)
	return names
}

func TestCacheHasTheNodesOfTheSnapshot(t *testing.T) {
	all := numbered(3)
	cache := New()
	newCycle := func(nodes ...fwk.NodeInfo) *lister {
		l := &lister{nodes: nodes}
		cache.dropDeleted(l)
		return l
	}
	expect := func(want ...string) {
		t.Helper()
		if got := cache.names(); !slices.Equal(got, want) {
			t.Errorf("nodes %v, want %v", got, want)
		}
	}
	newCycle(all.nodes...)
	expect()
	// The first node adds all nodes of the snapshot.
	cache.Sums(all.nodes[1], in(all))
	expect("node-0", "node-1", "node-2")
	// A node was deleted: the next cycle drops it and keeps the sums of the others.
	kept := cache.Sums(all.nodes[0], in(all))
	two := newCycle(all.nodes[0], all.nodes[2])
	expect("node-0", "node-2")
	if cache.Sums(all.nodes[0], in(two)) != kept {
		t.Error("sums of an unchanged node were computed again")
	}
	// One node was deleted and one added: the cache never has more nodes than the snapshot.
	swapped := newCycle(all.nodes[0], all.nodes[1])
	cache.Sums(all.nodes[1], in(swapped))
	expect("node-0", "node-1")
	// A NodeInfo without a node, which still has pods, is skipped.
	cache.Sums(all.nodes[2], in(&lister{nodes: []fwk.NodeInfo{framework.NewNodeInfo(), all.nodes[2]}}))
	expect("node-2")
	// A snapshot that cannot be listed, or lacks the given node, is no error.
	failing := &lister{err: errors.New("no list")}
	cache.dropDeleted(failing)
	expect("node-2")
	if got := cache.Sums(all.nodes[1], in(failing)).Get(resources.CPUResource).Request; got != 1 {
		t.Errorf("snapshot without a list: %d, want 1", got)
	}
	if got := cache.Sums(all.nodes[2], in(&lister{})).Get(resources.CPUResource).Request; got != 2 {
		t.Errorf("snapshot with an empty list: %d, want 2", got)
	}
}

// Returned sums do not change when the node changes.
func TestReturnedSumsAreImmutable(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, New()
	before := cache.Sums(node, in(all))
	node.AddPod(podRequesting("b", 50))
	if after := cache.Sums(node, in(all)).Get(resources.CPUResource).Request; after != 150 {
		t.Errorf("after: %d, want 150", after)
	}
	if got := before.Get(resources.CPUResource).Request; got != 100 {
		t.Errorf("before: %d, want 100", got)
	}
}

// The scheduler overwrites a NodeInfo in place: same pointer, possibly the same number of pods.
func TestNodeOverwrittenInPlace(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100), podRequesting("last", 1))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, New()
	cache.Sums(node, in(all))
	last := node.Pods[1].GetPod()
	*node = *nodeWith("node", podRequesting("b", 700), last)
	if got := cache.Sums(node, in(all)).Get(resources.CPUResource).Request; got != 701 {
		t.Errorf("%d, want 701", got)
	}
}

// Sums are correct while nodes are added and deleted concurrently.
func TestCacheConcurrently(t *testing.T) {
	all := numbered(64)
	half := &lister{nodes: all.nodes[:32]}
	cache := New()
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for range 50 {
				cache.dropDeleted(half)
				cache.dropDeleted(all)
			}
		})
	}
	for range 8 {
		running.Go(func() {
			for range 50 {
				for i, node := range all.nodes {
					if got := cache.Sums(node, &Pending{InGroup: i%2 == 0, all: all}).Get(resources.CPUResource).Request; got != int64(i) {
						t.Errorf("node %d: %d", i, got)
					}
				}
			}
		})
	}
	running.Wait()
	cache.dropDeleted(half)
	if got := len(cache.names()); got != 32 {
		t.Errorf("%d nodes in the cache, want 32", got)
	}
}

func TestCacheAllocations(t *testing.T) {
	all := numbered(100)
	cache := New()
	for _, inGroup := range []bool{false, true} {
		pending := &Pending{InGroup: inGroup, all: all}
		allocations := testing.AllocsPerRun(100, func() {
			for _, node := range all.nodes {
				cache.Sums(node, pending).Get(resources.MemoryResource)
			}
		})
		if allocations != 0 {
			t.Errorf("in a group %t: %v allocations for 100 nodes", inGroup, allocations)
		}
	}
}

// A derived value is computed again for another input, and for other pods, also of a group; otherwise once.
func TestDerived(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, New()
	computed := 0
	derived := NewDerived(cache, func(sums *NodeSums, factor *int64) int64 {
		computed++
		return *factor * sums.Get(resources.CPUResource).Request
	})
	one, two := int64(1), int64(2)
	for i, step := range []struct {
		change         func()
		input          *int64
		inGroup        bool
		want, computed int64
	}{
		{func() {}, &one, false, 100, 1},
		{func() {}, &one, false, 100, 1},
		{func() {}, &two, false, 200, 2},
		{func() { node.AddPod(podRequesting("b", 50)) }, &two, false, 300, 3},
		// The scheduler evaluates a group: other pods, the same generation. 2 x (100 + 50 + 7)
		{func() { assume(node, podRequesting("c", 7)) }, &two, true, 314, 4},
		{func() {}, &two, true, 314, 4},
		{func() { forget(node); assume(node, podRequesting("d", 8)) }, &two, true, 316, 5},
		{func() { forget(node) }, &two, true, 300, 6},
	} {
		step.change()
		got := *derived.NodeValue(node, &Pending{InGroup: step.inGroup, all: all}, step.input)
		if got != step.want || int64(computed) != step.computed {
			t.Errorf("step %d: %d, computed %d times, want %d, %d", i, got, computed, step.want, step.computed)
		}
	}
	// Another plugin may be created later.
	pods := NewDerived(cache, func(sums *NodeSums, _ *int64) int { return sums.Len() })
	if got := *pods.NodeValue(node, in(all), nil); got != 2 {
		t.Errorf("%d pods, want 2", got)
	}
	if got := *derived.NodeValue(node, in(all), &two); got != 300 {
		t.Errorf("%d with another plugin, want 300", got)
	}
	cache.dropDeleted(&lister{})
	if got := len(cache.load()); got != 0 {
		t.Errorf("%d values of deleted nodes", got)
	}
}

// assume adds a pod of a group: the generation stays the same. forget removes the last pod in the same way.
func assume(node *framework.NodeInfo, pod *v1.Pod) {
	generation := node.Generation
	node.AddPod(pod)
	node.Generation = generation
}

func forget(node *framework.NodeInfo) {
	generation := node.Generation
	if err := node.RemovePod(klog.Background(), node.Pods[len(node.Pods)-1].GetPod()); err != nil {
		panic(err)
	}
	node.Generation = generation
}
