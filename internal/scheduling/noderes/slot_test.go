package noderes

import (
	"testing"

	fwk "k8s.io/kube-scheduler/framework"
)

// Values of different types in the slots of one node do not affect each other.
func TestSlots(t *testing.T) {
	node := nodeWith("node", podRequesting("a", 100))
	all, cache := &lister{nodes: []fwk.NodeInfo{node}}, NewCache()
	before := cache.Sums(node, all, false)
	number, text, third := NewSlot[int](cache), NewSlot[string](cache), NewSlot[int](cache)
	if number.Set(before, new(1)); number.Get(before) != nil {
		t.Error("sums computed before the slot was reserved have a value")
	}
	node.Generation++
	sums := cache.Sums(node, all, false)
	if number.Get(sums) != nil || text.Get(sums) != nil {
		t.Error("a new slot has a value")
	}
	number.Set(sums, new(7))
	text.Set(sums, new("seven"))
	third.Set(sums, new(3))
	number.Set(sums, new(8))
	if a, b, c := *number.Get(sums), *text.Get(sums), *third.Get(sums); a != 8 || b != "seven" || c != 3 {
		t.Errorf("got %d, %q, %d, want 8, \"seven\", 3", a, b, c)
	}
	if allocations := testing.AllocsPerRun(100, func() { text.Get(sums) }); allocations != 0 {
		t.Errorf("reading a slot: %v allocations", allocations)
	}
	// The values do not outlive the state of the node.
	node.AddPod(podRequesting("b", 50))
	if number.Get(cache.Sums(node, all, false)) != nil {
		t.Error("the value is still set after a pod was added")
	}
}

func TestSumsWithoutACacheHaveNoSlots(t *testing.T) {
	slot := NewSlot[int](NewCache())
	sums := NewSums(nodeWith("node"))
	if slot.Set(sums, new(1)); slot.Get(sums) != nil {
		t.Error("sums without a cache have a value")
	}
}
