// Package cache keeps what score plugins read of every node and of the pending pod, so that a score takes the same time whatever
// the number of pods: the sums of requests and limits, and what a plugin derives from them.
//
// Sums come from the NodeInfo that the scheduler passes, never from an informer, which may be ahead of or behind the pods that the
// scheduler has assumed. They are valid while the generation and the number of pods of the NodeInfo stay the same.
package cache

import (
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Cache keeps the sums of every node of one scheduler. All plugins of a scheduler share one. It is safe for concurrent use: reading
// takes no lock and allocates nothing; the first reader of a changed node computes its sums.
type Cache struct {
	sums perNode[NodeSums]

	mu sync.Mutex
	// derived are the functions that drop deleted nodes from what plugins derive from the sums.
	derived []func(fwk.SharedLister)
}

// New returns an empty cache.
func New() *Cache { return &Cache{} }

// Sums returns the sums over the pods of a node.
func (c *Cache) Sums(node fwk.NodeInfo, pending *Pending) *NodeSums {
	place := c.sums.place(node, pending.all)
	sums := place.Load()
	if sums != nil && sums.isCurrent(node) {
		return sums
	}
	sums = newSums(node, sums, pending.InGroup)
	place.Store(sums)
	return sums
}

// dropDeleted drops nodes that a snapshot lacks.
func (c *Cache) dropDeleted(all fwk.SharedLister) {
	c.sums.dropDeleted(all)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, drop := range c.derived {
		drop(all)
	}
}

// Derived keeps for every node what a plugin derives from its sums and from an input that is replaced as a whole, such as a reading
// of load. Score then only adds the pending pod.
type Derived[I, T any] struct {
	cache  *Cache
	derive func(*NodeSums, *I) T
	values perNode[derived[I, T]]
}

// derived is a value with what it was derived from.
type derived[I, T any] struct {
	state
	value T
	input *I
	sums  *NodeSums
}

// NewDerived returns an empty Derived. derive must be safe for concurrent use.
func NewDerived[I, T any](c *Cache, derive func(*NodeSums, *I) T) *Derived[I, T] {
	d := &Derived[I, T]{cache: c, derive: derive}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.derived = append(c.derived, d.values.dropDeleted)
	return d
}

// Of returns the value of a node, which must not be changed.
func (d *Derived[I, T]) Of(node fwk.NodeInfo, pending *Pending, input *I) *T {
	place := d.values.place(node, pending.all)
	v := place.Load()
	if v != nil && v.input == input && !v.tentative && v.isCurrent(node) {
		return &v.value
	}
	sums := d.cache.Sums(node, pending)
	if v == nil || v.input != input || v.sums != sums {
		v = &derived[I, T]{sums.state, d.derive(sums, input), input, sums}
		place.Store(v)
	}
	return &v.value
}

// perNode keeps a value of every node. The zero value is ready to use. Reading takes no lock; a new node copies the map.
//
// The scheduler keeps one NodeInfo per node as long as the node exists, and overwrites it in place. The map refers to the NodeInfo,
// so that no other one can have its address.
type perNode[T any] struct {
	nodes  atomic.Pointer[map[fwk.NodeInfo]*atomic.Pointer[T]]
	adding sync.Mutex
}

// place returns the place of the value of a node. If the node is new, the nodes of the snapshot replace the present ones, so that
// starting with n nodes copies the map once.
func (p *perNode[T]) place(node fwk.NodeInfo, all fwk.SharedLister) *atomic.Pointer[T] {
	if place, ok := p.load()[node]; ok {
		return place
	}
	p.adding.Lock()
	defer p.adding.Unlock()
	if place, ok := p.load()[node]; ok { // another goroutine has added it
		return place
	}
	return p.replace(all, node)[node]
}

func (p *perNode[T]) load() map[fwk.NodeInfo]*atomic.Pointer[T] {
	if nodes := p.nodes.Load(); nodes != nil {
		return *nodes
	}
	return nil
}

// dropDeleted drops nodes that a snapshot lacks. If there are none, it compares two lengths.
func (p *perNode[T]) dropDeleted(all fwk.SharedLister) {
	nodes, err := all.NodeInfos().List()
	if err != nil || len(nodes) >= len(p.load()) {
		return
	}
	p.adding.Lock()
	defer p.adding.Unlock()
	p.replace(all)
}

// replace replaces the nodes by the nodes of a snapshot and further nodes, which may be missing from the snapshot.
// Values are kept, also if a node has another NodeInfo: the scheduler works on copies of all nodes during the
// preemption of a group. The caller holds the lock.
func (p *perNode[T]) replace(all fwk.SharedLister, further ...fwk.NodeInfo) map[fwk.NodeInfo]*atomic.Pointer[T] {
	infos, err := all.NodeInfos().List()
	if err != nil {
		infos = nil // only the further nodes are added
	}
	byName := make(map[string]*atomic.Pointer[T], len(p.load()))
	for info, place := range p.load() {
		if node := info.Node(); node != nil { // the node of pods that are still there may be deleted
			byName[node.Name] = place
		}
	}
	next := make(map[fwk.NodeInfo]*atomic.Pointer[T], len(infos)+len(further))
	for _, info := range append(slices.Clip(infos), further...) {
		node := info.Node()
		if node == nil {
			continue
		}
		next[info] = byName[node.Name]
		if next[info] == nil {
			next[info] = &atomic.Pointer[T]{}
		}
	}
	p.nodes.Store(&next)
	return next
}
