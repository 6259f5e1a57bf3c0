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
// What Score reads is in arrays in the order of the snapshot, which is the order in which nodes are
// scored: with thousands of nodes, Score waits for main memory most of the time, and the processor
// loads the next elements of an array in advance. The nodes of a table do not change.
type table struct {
	// positions is a hash table with linear probing, at most half full: the position of a node in the
	// arrays plus one, 0 if none. Its elements are small, so that it stays in the cache.
	positions []uint32
	// shift is the number of bits of a hash that are not used.
	shift uint

	nodes []fwk.NodeInfo
	sums  []atomic.Pointer[Sums]
	// arrays are the reserved arrays.
	arrays [][]block
}

// newTable returns a table for a number of nodes with a number of arrays.
func newTable(nodes, arrays int) *table {
	width := max(bits.Len(uint(2*nodes)), 1)
	t := &table{
		positions: make([]uint32, 1<<width), shift: uint(64 - width),
		nodes: make([]fwk.NodeInfo, 0, nodes), sums: make([]atomic.Pointer[Sums], nodes), arrays: make([][]block, arrays),
	}
	for i := range t.arrays {
		t.arrays[i] = make([]block, nodes)
	}
	return t
}

// hash returns the index at which the search for a node begins. A NodeInfo that is no pointer begins
// at index 0.
func (t *table) hash(node fwk.NodeInfo) uint64 {
	value := reflect.ValueOf(node)
	if value.Kind() != reflect.Pointer {
		return 0
	}
	// Multiplying by 2^64 divided by the golden ratio distributes addresses at equal distances evenly.
	return uint64(value.Pointer()) * 0x9e3779b97f4a7c15 >> t.shift
}

// find returns the position of a node, and whether the table has it.
func (t *table) find(node fwk.NodeInfo) (position int, found bool) {
	mask := uint64(len(t.positions) - 1)
	for i := t.hash(node) & mask; ; i = (i + 1) & mask {
		p := int(t.positions[i]) - 1
		if p < 0 {
			return 0, false
		}
		if t.nodes[p] == node {
			return p, true
		}
	}
}

// add adds a node unless the table has it, and returns its position.
func (t *table) add(node fwk.NodeInfo) int {
	if position, found := t.find(node); found {
		return position
	}
	mask := uint64(len(t.positions) - 1)
	i := t.hash(node) & mask
	for t.positions[i] != 0 {
		i = (i + 1) & mask
	}
	t.nodes = append(t.nodes, node)
	t.positions[i] = uint32(len(t.nodes))
	return len(t.nodes) - 1
}

// copy copies what another table has at a position.
func (t *table) copy(position int, from *table, fromPosition int) {
	t.sums[position].Store(from.sums[fromPosition].Load())
	for i := range min(len(t.arrays), len(from.arrays)) {
		t.arrays[i][position].copy(&from.arrays[i][fromPosition])
	}
}

// byName returns the positions by the name of the node that the sums were computed for.
func (t *table) byName() map[string]int {
	positions := make(map[string]int, len(t.nodes))
	for i := range t.nodes {
		if sums := t.sums[i].Load(); sums != nil {
			positions[sums.node.Name] = i
		}
	}
	return positions
}
