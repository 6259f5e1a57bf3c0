package noderes

import "sync/atomic"

// table has what the cache keeps of each node. It is in arrays in the order of the snapshot, which is the order
// in which nodes are scored: with thousands of nodes, Score waits for main memory most of the time, and the
// processor loads the next elements of an array in advance. The nodes of a table do not change.
type table struct {
	index

	sums []atomic.Pointer[Sums]
	// arrays are the reserved arrays.
	arrays []blocks
}

// newTable returns a table for a number of nodes with arrays of these widths.
func newTable(nodes int, arrayWidths []int) *table {
	t := &table{index: newIndex(nodes), sums: make([]atomic.Pointer[Sums], nodes), arrays: make([]blocks, len(arrayWidths))}
	for i, width := range arrayWidths {
		t.arrays[i] = newBlocks(nodes, width)
	}
	return t
}

// copy copies what another table has at a position.
func (t *table) copy(position int, from *table, fromPosition int) {
	t.sums[position].Store(from.sums[fromPosition].Load())
	for i := range min(len(t.arrays), len(from.arrays)) {
		t.arrays[i].at(position).copy(from.arrays[i].at(fromPosition))
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
