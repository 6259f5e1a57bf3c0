package noderes

import (
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Values are what a plugin keeps of one node in an Array. Floating-point numbers are stored as their
// bits.
type Values [13]uint64

// Array keeps values of one plugin for every node, derived from the node and its pods: next to each
// other in memory and in the order of the nodes, so that Score waits for memory as little as
// possible. A value is valid until the node or its pods change. Reading takes no lock.
type Array struct{ index int }

// NewArray reserves an array in a cache. A plugin reserves its arrays in its constructor: the nodes
// that the cache already has get no values until nodes are added or deleted.
func NewArray(c *Cache) Array { return Array{int(c.arrayCount.Add(1)) - 1} }

// Load copies the values of a node, and reports whether there are any for its present state. The
// place must be that of the node.
func (a Array) Load(p Place, node fwk.NodeInfo, values *Values) bool {
	return a.index < len(p.table.arrays) && p.table.arrays[a.index][p.position].load(node, values)
}

// Store stores the values of the node for which the sums were computed. Values of a node with the
// pods of a group that is being evaluated are not stored. The place must be that of the node.
func (a Array) Store(p Place, sums *Sums, values *Values) {
	if a.index < len(p.table.arrays) && !sums.tentative {
		p.table.arrays[a.index][p.position].store(sums.generation, int64(sums.count), values)
	}
}

// block is the values of one node, in two cache lines. It is a sequence lock: readers compare the
// version before and after, writers that meet another writer give up.
type block struct {
	// version is 0 without values, and odd while values are written.
	version atomic.Uint64
	// generation and count identify the state of the node, see Sums.isCurrent.
	generation, count atomic.Int64
	values            [len(Values{})]atomic.Uint64
}

func (b *block) load(node fwk.NodeInfo, values *Values) bool {
	version := b.version.Load()
	if version == 0 || version%2 == 1 ||
		b.generation.Load() != node.GetGeneration() || b.count.Load() != int64(len(node.GetPods())) {
		return false
	}
	for i := range values {
		values[i] = b.values[i].Load()
	}
	return b.version.Load() == version
}

func (b *block) store(generation, count int64, values *Values) {
	version := b.version.Load()
	if version%2 == 1 || !b.version.CompareAndSwap(version, version+1) {
		return
	}
	b.generation.Store(generation)
	b.count.Store(count)
	for i := range values {
		b.values[i].Store(values[i])
	}
	b.version.Store(version + 2)
}

// copy copies another block, to one that no goroutine reads yet. A block that is being written is not copied.
func (b *block) copy(from *block) {
	version := from.version.Load()
	if version == 0 || version%2 == 1 {
		return
	}
	var values Values
	generation, count := from.generation.Load(), from.count.Load()
	for i := range values {
		values[i] = from.values[i].Load()
	}
	if from.version.Load() == version {
		b.store(generation, count, &values)
	}
}
