package noderes

import (
	"math/bits"
	"reflect"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// table finds the sums of a node by the address of its NodeInfo. The scheduler keeps one NodeInfo per
// node as long as the node exists, and overwrites it in place when the node changes. The table refers
// to the NodeInfo, so that no other object can have its address: an address that is found is that
// of the same node.
//
// It is a hash table with linear probing, at most half full. Its nodes do not change, only their sums
// do. Unlike a map with the names of nodes as keys, it is read in one cache line, without reading the
// name: with thousands of nodes, Score waits for main memory most of the time.
type table struct {
	entries []entry
	// shift is the number of bits of a hash that are not used.
	shift uint
	count int
}

// entry is one node of a table.
type entry struct {
	node fwk.NodeInfo
	sums atomic.Pointer[Sums]
	_    uint64 // an entry is half a cache line
}

// newTable returns a table for a number of nodes.
func newTable(nodes int) *table {
	width := max(bits.Len(uint(2*nodes)), 1)
	return &table{entries: make([]entry, 1<<width), shift: uint(64 - width)}
}

// slot returns the index at which the search for a node begins. A NodeInfo that is no pointer begins
// at index 0.
func (t *table) slot(node fwk.NodeInfo) uint64 {
	value := reflect.ValueOf(node)
	if value.Kind() != reflect.Pointer {
		return 0
	}
	// Multiplying by 2^64 divided by the golden ratio distributes addresses at equal distances evenly.
	return uint64(value.Pointer()) * 0x9e3779b97f4a7c15 >> t.shift
}

// find returns the entry of a node, nil if the table has none.
func (t *table) find(node fwk.NodeInfo) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := t.slot(node) & mask; ; i = (i + 1) & mask {
		switch e := &t.entries[i]; e.node {
		case node:
			return e
		case nil:
			return nil
		}
	}
}

// add returns the entry of a node, which it adds if the table has none.
func (t *table) add(node fwk.NodeInfo) *entry {
	mask := uint64(len(t.entries) - 1)
	for i := t.slot(node) & mask; ; i = (i + 1) & mask {
		switch e := &t.entries[i]; e.node {
		case node:
			return e
		case nil:
			e.node = node
			t.count++
			return e
		}
	}
}

// sumsByName returns the sums by the name of the node that they were computed for.
func (t *table) sumsByName() map[string]*Sums {
	byName := make(map[string]*Sums, t.count)
	for i := range t.entries {
		if sums := t.entries[i].sums.Load(); sums != nil {
			byName[sums.node.Name] = sums
		}
	}
	return byName
}
