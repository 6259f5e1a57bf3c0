package noderes

import (
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Prepared keeps, for every node, values that a plugin derives from the node, its pods and an input that
// is replaced as a whole, such as a reading of load. The goroutine that has the next input derives the values
// of all nodes before scheduling cycles use it. It is safe for concurrent use.
//
// The values of even and of odd numbers of inputs are in two arrays, so that those for the next input
// are stored while cycles still read the others.
type Prepared[T any] struct {
	cache  *Cache
	arrays [2]Array
	// newest is the input of the newest cycle.
	newest atomic.Pointer[Input[T]]
	// cycles is the number of cycles since the last input was announced.
	cycles atomic.Int64

	mu sync.Mutex
	// announced is the newest input, which cycles may not use yet.
	announced Input[T]
}

// Input is an input with its number, which identifies it in the values of nodes.
type Input[T any] struct {
	// Value is nil if there is no input.
	Value  *T
	number uint64
}

// NewPrepared reserves the arrays in a cache, with a number of values per node. A plugin calls it in its
// constructor, see NewArray.
func NewPrepared[T any](c *Cache, width int) *Prepared[T] {
	return &Prepared[T]{cache: c, arrays: [2]Array{NewArray(c, width), NewArray(c, width)}}
}

// Input returns the numbered input of a new cycle. It takes a lock only for the first cycle with another input.
func (p *Prepared[T]) Input(value *T) Input[T] {
	p.cycles.Add(1)
	if newest := p.newest.Load(); newest != nil && newest.Value == value {
		return *newest
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := p.newestOrNone()
	next := p.announced
	switch {
	case newest.number > 0 && newest.Value == value:
		return newest
	case next.number <= newest.number || next.Value != value:
		next = Input[T]{value, max(newest.number, p.announced.number) + 1}
	}
	p.newest.Store(&next)
	return next
}

// announce returns the number of an input that cycles will use. It belongs to the array that the newest
// cycle does not use.
func (p *Prepared[T]) announce(value *T) Input[T] {
	p.mu.Lock()
	defer p.mu.Unlock()
	newest := p.newestOrNone()
	number := max(newest.number, p.announced.number) + 1
	if number%2 == newest.number%2 {
		number++
	}
	p.announced = Input[T]{value, number}
	return p.announced
}

func (p *Prepared[T]) newestOrNone() Input[T] {
	if newest := p.newest.Load(); newest != nil {
		return *newest
	}
	return Input[T]{}
}

// nodesPerCycle is the number of nodes that are prepared per cycle at most. A cycle evaluates up to
// that many nodes after the input was replaced; without cycles there is nothing to prepare for.
const nodesPerCycle = 100

// Prepare derives the values of all nodes from an input that cycles do not use yet. derive must not read
// a NodeInfo; it reports whether there are values for a node. Score evaluates the other nodes, and those whose
// pods change meanwhile. With few cycles, which evaluate the nodes that they need, Prepare does nothing.
func (p *Prepared[T]) Prepare(value *T, derive func(*Sums, []uint64) bool) {
	input := p.announce(value)
	if p.cycles.Swap(0)*nodesPerCycle < int64(p.cache.Len()) {
		return
	}
	values := make([]uint64, p.arrays[0].Width)
	p.cache.All(func(place Place, sums *Sums) {
		if derive(sums, values) {
			p.Store(place, sums, input, values)
		}
	})
}

// Load copies the first values of a node, and reports whether there are any for its present state and the input.
// The place must be that of the node.
func (p *Prepared[T]) Load(place Place, node fwk.NodeInfo, input Input[T], values []uint64) bool {
	return p.arrays[input.number%2].load(place, node, input.number, values)
}

// Store stores the values of the node for which the sums were computed, see Array.Store.
func (p *Prepared[T]) Store(place Place, sums *Sums, input Input[T], values []uint64) {
	p.arrays[input.number%2].store(place, sums, input.number, values)
}
