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
	// addresses are those of the nodes.
	addresses []uintptr

	nodes []fwk.NodeInfo
}

// newIndex returns an index for a number of nodes.
func newIndex(nodes int) index {
	width := max(bits.Len(uint(2*nodes)), 1)
	return index{positions: make([]uint32, 1<<width), shift: uint(64 - width), addresses: make([]uintptr, 0, nodes)}
}

// reset makes the index one of other nodes, which must not be changed.
func (x *index) reset(nodes []fwk.NodeInfo) {
	if 2*len(nodes) > len(x.positions) {
		*x = newIndex(len(nodes))
	}
	clear(x.positions)
	x.addresses, x.nodes = x.addresses[:0], nodes
	for _, node := range nodes {
		x.insert(addressOf(node))
	}
}

// addressOf returns the address of a NodeInfo. The scheduler's are pointers.
func addressOf(node fwk.NodeInfo) uintptr { return reflect.ValueOf(node).Pointer() }

// hash returns where the search for an address begins. Multiplying by 2^64 divided by the golden ratio
// distributes addresses at equal distances evenly.
func (x *index) hash(address uintptr) uint64 { return uint64(address) * 0x9e3779b97f4a7c15 >> x.shift }

// find returns the position of a node, and whether the index has it.
func (x *index) find(node fwk.NodeInfo) (position int, found bool) {
	return x.findAddress(addressOf(node))
}

func (x *index) findAddress(address uintptr) (position int, found bool) {
	mask := uint64(len(x.positions) - 1)
	for i := x.hash(address) & mask; ; i = (i + 1) & mask {
		p := int(x.positions[i]) - 1
		if p < 0 {
			return 0, false
		}
		if x.addresses[p] == address {
			return p, true
		}
	}
}

// add adds a node unless the index has it, and returns its position.
func (x *index) add(node fwk.NodeInfo) int {
	address := addressOf(node)
	if position, found := x.findAddress(address); found {
		return position
	}
	x.nodes = append(x.nodes, node)
	x.insert(address)
	return len(x.nodes) - 1
}

// insert inserts an address behind the others. If the index has it already, find returns the first position.
func (x *index) insert(address uintptr) {
	mask := uint64(len(x.positions) - 1)
	i := x.hash(address) & mask
	for x.positions[i] != 0 {
		i = (i + 1) & mask
	}
	x.addresses = append(x.addresses, address)
	x.positions[i] = uint32(len(x.addresses))
}

// runs finds nodes that come in several runs, each in the order of the index: the goroutines that filter nodes take
// a run each, and their results mix.
type runs struct {
	// next are the positions after the last one of each run, oldest is the run that the next new one replaces.
	next   [4]int
	oldest int
}

// find is index.findAddress, faster for the next node of a run.
func (r *runs) find(x *index, address uintptr) (position int, found bool) {
	for i, next := range r.next {
		if next < len(x.addresses) && x.addresses[next] == address {
			r.next[i]++
			return next, true
		}
	}
	position, found = x.findAddress(address)
	r.next[r.oldest] = position + 1
	r.oldest = (r.oldest + 1) % len(r.next)
	return position, found
}
