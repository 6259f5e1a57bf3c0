package noderes

import (
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Array keeps values of one plugin for every node, derived from the node and its pods: next to each
// other in memory and in the order of the nodes, so that Score waits for memory as little as
// possible. A value is valid until the node or its pods change. Reading takes no lock. Floating-point numbers
// are stored as their bits.
type Array struct {
	index int
	// Width is the number of values per node.
	Width int
}

// NewArray reserves an array in a cache, with a number of values per node. A plugin reserves its arrays in its
// constructor: the nodes that the cache already has get no values until nodes are added or deleted.
func NewArray(c *Cache, width int) Array {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	c.arrayWidths = append(c.arrayWidths, width)
	return Array{len(c.arrayWidths) - 1, width}
}

// Load copies the first values of a node, and reports whether there are any for its present state. The
// place must be that of the node.
func (a Array) Load(p Place, node fwk.NodeInfo, values []uint64) bool {
	return a.load(p, node, 0, values)
}

// Store stores the values of the node for which the sums were computed. Values of a node with the
// pods of a group that is being evaluated are not stored. The place must be that of the node.
func (a Array) Store(p Place, sums *Sums, values []uint64) {
	a.store(p, sums, 0, values)
}

// load is Load for the values that were derived from the input with a number.
func (a Array) load(p Place, node fwk.NodeInfo, input uint64, values []uint64) bool {
	return a.index < len(p.table.arrays) && p.table.arrays[a.index].at(p.position).load(node, input, values)
}

// store is Store for the values that were derived from the input with a number.
func (a Array) store(p Place, sums *Sums, input uint64, values []uint64) {
	if a.index < len(p.table.arrays) && !sums.tentative {
		p.table.arrays[a.index].at(p.position).store(sums.generation, int64(sums.count), input, values)
	}
}

// blocks are the blocks of all nodes. The first block begins a cache line, and so do all others.
type blocks struct {
	words []atomic.Uint64
	// length is the number of words of a block.
	length int
}

// lineLength is the number of words in a cache line.
const lineLength = 8

func newBlocks(nodes, width int) blocks {
	length := (blockHeader + width + lineLength - 1) / lineLength * lineLength
	return blocks{make([]atomic.Uint64, nodes*length), length}
}

// at returns the block of the node at a position.
func (b *blocks) at(position int) block {
	return b.words[position*b.length:][:b.length]
}

// block is the values of one node behind a header. It is a sequence lock: readers compare the version before and
// after, writers that meet another writer give up.
type block []atomic.Uint64

// The header of a block.
const (
	// blockVersion is 0 without values, and odd while values are written.
	blockVersion = iota
	// blockGeneration and blockCount identify the state of the node, see Sums.isCurrent.
	blockGeneration
	blockCount
	// blockInput is the number of the input that the values were derived from.
	blockInput
	blockHeader
)

func (b block) load(node fwk.NodeInfo, input uint64, values []uint64) bool {
	version := b[blockVersion].Load()
	if version == 0 || version%2 == 1 || b[blockInput].Load() != input ||
		int64(b[blockGeneration].Load()) != node.GetGeneration() || int(b[blockCount].Load()) != len(node.GetPods()) {
		return false
	}
	b.copyValues(values)
	return b[blockVersion].Load() == version
}

func (b block) copyValues(values []uint64) {
	stored := b[blockHeader:][:len(values)]
	for i := range stored {
		values[i] = stored[i].Load()
	}
}

func (b block) store(generation, count int64, input uint64, values []uint64) {
	version := b[blockVersion].Load()
	if version%2 == 1 || !b[blockVersion].CompareAndSwap(version, version+1) {
		return
	}
	b[blockGeneration].Store(uint64(generation))
	b[blockCount].Store(uint64(count))
	b[blockInput].Store(input)
	for i, value := range values {
		b[blockHeader+i].Store(value)
	}
	b[blockVersion].Store(version + 2)
}

// copy copies another block, to one that no goroutine reads yet. A block that is being written is not copied.
func (b block) copy(from block) {
	version := from[blockVersion].Load()
	if version == 0 || version%2 == 1 {
		return
	}
	values := make([]uint64, len(from)-blockHeader)
	generation, count, input := from[blockGeneration].Load(), from[blockCount].Load(), from[blockInput].Load()
	from.copyValues(values)
	if from[blockVersion].Load() == version {
		b.store(int64(generation), int64(count), input, values)
	}
}
