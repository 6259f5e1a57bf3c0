package noderes

import (
	"fmt"
	"math/bits"
	"reflect"
	"runtime"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// addresses counts the objects that have the address of an object that was freed.
type addresses struct {
	seen   map[uintptr]bool
	reused int
}

func (a *addresses) add(object any) {
	if a.seen == nil {
		a.seen = map[uintptr]bool{}
	}
	address := reflect.ValueOf(object).Pointer()
	if a.seen[address] {
		a.reused++
	}
	a.seen[address] = true
}

// A node is deleted, and another one is added whose NodeInfo has the address of one that was freed, the same
// generation and as many pods.
func TestAddressOfANodeIsReused(t *testing.T) {
	cache, all := NewCache(), &lister{nodes: make([]fwk.NodeInfo, 1)}
	var seen addresses
	for i := range 300 {
		node := nodeWith(fmt.Sprint("node-", i), podRequesting("p", int64(i)))
		node.Generation = 1
		seen.add(node)
		all.nodes[0] = node
		if got := cache.Sums(node, all, false).Get(resources.CPUResource).Request; got != int64(i) {
			t.Fatalf("node %d: %d", i, got)
		}
		runtime.GC()
	}
	if seen.reused == 0 {
		t.Error("no address was reused: the test does not cover the case")
	}
}

// The state of a finished cycle is freed, and that of a later cycle has its address.
func TestAddressOfACycleStateIsReused(t *testing.T) {
	cache, all := NewCache(), &lister{}
	var seen addresses
	for i := range 300 {
		state := framework.NewCycleState()
		seen.add(state)
		for range 2 {
			if got := cache.Pending(state, podRequesting("p", int64(i)), all).Get(resources.CPUResource).Request; got != int64(i) {
				t.Fatalf("cycle %d: %d", i, got)
			}
		}
		runtime.GC()
	}
	if seen.reused == 0 {
		t.Error("no address was reused: the test does not cover the case")
	}
}

// Each of several cycles at the same time has its own data, also without PreScore.
func TestCyclesConcurrently(t *testing.T) {
	place := NewCycle[int]("key")
	var running sync.WaitGroup
	for i := range 4 {
		state := framework.NewCycleState()
		for range 4 {
			running.Go(func() {
				for range 2000 {
					switch got := place.Get(state); {
					case got == nil:
						place.Set(state, new(i))
					case *got != i:
						t.Errorf("%d, want %d", *got, i)
						return
					}
				}
			})
		}
	}
	running.Wait()
}

func TestCycleIgnoresOtherData(t *testing.T) {
	state := framework.NewCycleState()
	numbers, texts := NewCycle[int]("key"), NewCycle[string]("key")
	numbers.Set(state, new(1))
	if texts.Get(state) != nil {
		t.Error("data of another type are returned")
	}
}

// During the preemption of a group, the scheduler works on copies of all nodes, with other addresses. The sums
// of nodes that did not change are not computed again.
func TestSumsOfCopiedNodes(t *testing.T) {
	pods, nodes := []*v1.Pod{}, []*v1.Node{}
	for i := range 20 {
		pod := podRequesting(fmt.Sprint("pod-", i), int64(i))
		pod.Spec.NodeName = fmt.Sprint("node-", i)
		node := &v1.Node{}
		node.Name = pod.Spec.NodeName
		pods, nodes = append(pods, pod), append(nodes, node)
	}
	snapshot, cache := schedulercache.NewSnapshot(pods, nodes), NewCache()
	read := func() map[string]*Sums {
		sums := map[string]*Sums{}
		infos, _ := snapshot.List()
		for _, info := range infos {
			sums[info.Node().Name] = cache.Sums(info, snapshot, false)
		}
		return sums
	}
	before := read()
	if err := snapshot.StartMutations(); err != nil {
		t.Fatal(err)
	}
	during := read()
	if err := snapshot.EndMutations(); err != nil {
		t.Fatal(err)
	}
	for name, after := range read() {
		if before[name] != during[name] || before[name] != after {
			t.Errorf("%s: the sums were computed again", name)
		}
	}
	if cache.Len() != len(nodes) {
		t.Errorf("%d nodes in the cache, want %d", cache.Len(), len(nodes))
	}
}

// A table finds exactly the nodes that were added.
func TestTable(t *testing.T) {
	infos := make([]fwk.NodeInfo, 200)
	for i := range infos {
		infos[i] = framework.NewNodeInfo()
	}
	rapid.Check(t, func(t *rapid.T) {
		added := rapid.SliceOfN(rapid.SampledFrom(infos), 0, 300).Draw(t, "added")
		table, want := newTable(len(added), nil), map[fwk.NodeInfo]int{}
		for _, node := range added {
			position := table.add(node)
			if previous, ok := want[node]; ok && previous != position {
				t.Fatal("a node that was added twice has two positions")
			}
			want[node] = position
		}
		for _, node := range infos {
			got, found := table.find(node)
			if position, ok := want[node]; found != ok || got != position {
				t.Fatalf("position %d (found: %t), want %d (%t)", got, found, position, ok)
			}
		}
		if len(table.nodes) != len(want) {
			t.Fatalf("%d nodes, want %d", len(table.nodes), len(want))
		}
		if 2*len(added) > len(table.positions) || bits.OnesCount(uint(len(table.positions))) != 1 {
			t.Fatalf("%d positions for %d nodes", len(table.positions), len(added))
		}
	})
}

// What every score reads of the sums is in two cache lines. Blocks with the values of a plugin fill whole lines.
func TestSizes(t *testing.T) {
	sums := reflect.TypeFor[Sums]()
	last, _ := sums.FieldByName("memory")
	if end := last.Offset + last.Type.Size(); end > 128 || sums.Size() != 256 {
		t.Errorf("a score reads %d of %d bytes, want 128 of 256", end, sums.Size())
	}
	for width, want := range map[int]int{0: 8, 4: 8, 5: 16, 12: 16, 13: 24} { // 4 words of header, 8 in a line
		const nodes = 5000
		b := newBlocks(nodes, width)
		if len(b.at(nodes-1)) != want || len(b.words) != nodes*want || reflect.ValueOf(b.words).Pointer()%64 != 0 {
			t.Errorf("width %d: blocks of %d words, want %d", width, b.length, want)
		}
	}
}

// Nodes are found whatever the order in which they come: in one run, in several that mix, in none.
func TestRuns(t *testing.T) {
	infos := make([]fwk.NodeInfo, 100)
	for i := range infos {
		infos[i] = framework.NewNodeInfo()
	}
	x := newIndex(0)
	x.reset(infos[:90])
	rapid.Check(t, func(t *rapid.T) {
		streams := rapid.SliceOfN(rapid.IntRange(0, len(infos)-1), 1, 6).Draw(t, "first nodes of the runs")
		var runs runs
		for step := range 60 {
			i := rapid.IntRange(0, len(streams)-1).Draw(t, "run")
			at := streams[i]
			streams[i] = (at + 1) % len(infos)
			got, found := runs.find(&x, addressOf(infos[at]))
			if want := at < 90; found != want || found && got != at {
				t.Fatalf("step %d: node %d at position %d (found: %t)", step, at, got, found)
			}
		}
	})
}
