package noderes

import (
	"math/bits"
	"reflect"

	fwk "k8s.io/kube-scheduler/framework"
)

// index finds the position of a node by the address of its NodeInfo. The scheduler keeps one NodeInfo per
// node as long as the node exists, and overwrites it in place when the node changes. The index refers
// to the NodeInfo, so that no other object can have its address: an address that is found is that
// of the same node.
type index struct {
	// positions is a hash table with linear probing, at most half full: the position of a node
	// plus one, 0 if none. Its elements are small, so that it stays in the cache.
	positions []uint32
	// shift is the number of bits of a hash that are not used.
	shift uint

	nodes []fwk.NodeInfo
}

// newIndex returns an index for a number of nodes.
func newIndex(nodes int) index {
	width := max(bits.Len(uint(2*nodes)), 1)
	return index{positions: make([]uint32, 1<<width), shift: uint(64 - width), nodes: make([]fwk.NodeInfo, 0, nodes)}
}

// hash returns the index at which the search for a node begins. A NodeInfo that is no pointer begins
// at index 0.
func (x *index) hash(node fwk.NodeInfo) uint64 {
	value := reflect.ValueOf(node)
	if value.Kind() != reflect.Pointer {
		return 0
	}
	// Multiplying by 2^64 divided by the golden ratio distributes addresses at equal distances evenly.
	return uint64(value.Pointer()) * 0x9e3779b97f4a7c15 >> x.shift
}

// find returns the position of a node, and whether the index has it.
func (x *index) find(node fwk.NodeInfo) (position int, found bool) {
	mask := uint64(len(x.positions) - 1)
	for i := x.hash(node) & mask; ; i = (i + 1) & mask {
		p := int(x.positions[i]) - 1
		if p < 0 {
			return 0, false
		}
		if x.nodes[p] == node {
			return p, true
		}
	}
}

// findNear is find for a node that is probably at a position.
func (x *index) findNear(node fwk.NodeInfo, position int) (int, bool) {
	if position < len(x.nodes) && x.nodes[position] == node {
		return position, true
	}
	return x.find(node)
}

// add adds a node unless the index has it, and returns its position.
func (x *index) add(node fwk.NodeInfo) int {
	if position, found := x.find(node); found {
		return position
	}
	mask := uint64(len(x.positions) - 1)
	i := x.hash(node) & mask
	for x.positions[i] != 0 {
		i = (i + 1) & mask
	}
	x.nodes = append(x.nodes, node)
	x.positions[i] = uint32(len(x.nodes))
	return len(x.nodes) - 1
}
