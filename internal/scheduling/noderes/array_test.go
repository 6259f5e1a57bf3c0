package noderes

import (
	"slices"
	"sync"
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
)

// filled returns values that are all equal to one.
func filled(value uint64) []uint64 {
	return slices.Repeat([]uint64{value}, 13)
}

func TestArray(t *testing.T) {
	cache, all := NewCache(), numbered(3)
	first, second := NewArray(cache, 13), NewArray(cache, 1)
	node := all.nodes[1]
	load := func(a Array, node fwk.NodeInfo) (uint64, bool) {
		values := make([]uint64, a.Width)
		ok := a.Load(cache.Place(node, all), node, values)
		return values[a.Width-1], ok
	}
	expect := func(what string, a Array, node fwk.NodeInfo, want uint64, wantOK bool) {
		t.Helper()
		if got, ok := load(a, node); ok != wantOK || ok && got != want {
			t.Errorf("%s: %d (found: %t), want %d (%t)", what, got, ok, want, wantOK)
		}
	}
	store := func(a Array, inGroup bool, value uint64) {
		a.Store(cache.Place(node, all), cache.Sums(node, all, inGroup), filled(value)[:a.Width])
	}
	expect("empty", first, node, 0, false)
	store(first, false, 7)
	expect("stored", first, node, 7, true)
	expect("another array", second, node, 0, false)
	expect("another node", first, all.nodes[0], 0, false)
	// Nodes are added: the values stay.
	all.nodes = append(all.nodes, nodeWith("new"))
	expect("new node", first, all.nodes[3], 0, false)
	expect("after nodes were added", first, node, 7, true)
	// The node changes.
	info := node.(interface{ AddPodInfo(fwk.PodInfo) })
	info.AddPodInfo(nodeWith("", podRequesting("a", 5)).Pods[0])
	expect("after a pod was added", first, node, 0, false)
	store(first, true, 8)
	expect("values of a group of pods", first, node, 0, false)
	// An array that is reserved after the nodes were added.
	third := NewArray(cache, 1)
	store(third, false, 9)
	expect("reserved too late", third, node, 0, false)
}

// Readers see the values of one writer, never a mixture.
func TestArrayConcurrently(t *testing.T) {
	cache, all := NewCache(), numbered(1)
	array, node := NewArray(cache, 13), all.nodes[0]
	place, sums := cache.Place(node, all), cache.Sums(node, all, false)
	var running sync.WaitGroup
	for writer := range 3 {
		running.Go(func() {
			for i := range 3000 {
				array.Store(place, sums, filled(uint64(writer*10_000+i)))
			}
		})
		running.Go(func() {
			for range 3000 {
				values := make([]uint64, 13)
				if array.Load(place, node, values) && !slices.Equal(values, filled(values[0])) {
					t.Errorf("a mixture: %v", values)
					return
				}
			}
		})
	}
	running.Wait()
}
