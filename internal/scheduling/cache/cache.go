// Package cache keeps what score plugins read of every node and of the pending pod, so that a score does not visit the pods of
// a node: the sums of requests and limits, and what a plugin derives from them.
//
// Sums come from the NodeInfo that the scheduler passes, never from an informer, which may be ahead of or behind the pods that the
// scheduler has assumed. They are valid while the generation and the number of pods of the NodeInfo stay the same.
package cache

import (
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Cache keeps the sums of every node of one scheduler, and what plugins derive from them. All plugins of a scheduler share one.
// It is safe for concurrent use: reading takes no lock and allocates nothing; the first reader of a changed node computes its sums.
//
// The scheduler keeps one NodeInfo per node as long as the node exists, and overwrites it in place. The map refers to the
// NodeInfo, so that no other one can have its address. A new node copies the map. All NodeInfos of a scheduler have the type
// framework.NodeInfo; a map of interfaces takes 20 ns more for each score.
type Cache struct {
	nodes atomic.Pointer[map[*framework.NodeInfo]*entry]
	// mu is held while nodes is replaced.
	mu sync.Mutex
	// derived is the number of Derived of the cache.
	derived int
}

// entry is what the cache keeps of one node.
type entry struct {
	sums atomic.Pointer[NodeSums]
	// first has the value of the first Derived of the cache, and further one value for each of the others: a profile has one or two, and
	// an array beside the entry is one more read from memory for each node.
	first   atomic.Value
	further []atomic.Value
}

// value returns the value of a Derived.
func (e *entry) value(number int) *atomic.Value {
	if number == 0 {
		return &e.first
	}
	return &e.further[number-1]
}

// New returns an empty cache.
func New() *Cache { return &Cache{} }

// Sums returns the sums over the pods of a node.
func (c *Cache) Sums(node fwk.NodeInfo, pending *Pending) *NodeSums {
	return c.entry(node, pending).current(node, pending)
}

// current returns the sums over the pods of the node of an entry.
func (e *entry) current(node fwk.NodeInfo, pending *Pending) *NodeSums {
	sums := e.sums.Load()
	if sums != nil && sums.isCurrent(node) {
		return sums
	}
	sums = newSums(node, sums, pending.InGroup)
	e.sums.Store(sums)
	return sums
}

// Derived keeps for every node what a plugin derives from its sums and from an input that is replaced as a whole, such as a reading
// of load. Score then only adds the pending pod.
type Derived[I, T any] struct {
	cache  *Cache
	number int
	derive func(*NodeSums, *I) T
}

// derived is a value with what it was derived from.
type derived[I, T any] struct {
	state
	input *I
	sums  *NodeSums
	value T
}

// NewDerived returns an empty Derived. derive must be safe for concurrent use. Sums that are already in the cache are computed again.
func NewDerived[I, T any](c *Cache, derive func(*NodeSums, *I) T) *Derived[I, T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.derived++
	c.nodes.Store(nil) // its entries have no place for the new values
	return &Derived[I, T]{cache: c, number: c.derived - 1, derive: derive}
}

// NodeValue returns the value of a node, which must not be changed.
func (d *Derived[I, T]) NodeValue(node fwk.NodeInfo, pending *Pending, input *I) *T {
	e := d.cache.entry(node, pending)
	v, _ := e.value(d.number).Load().(*derived[I, T])
	if v != nil && v.input == input && !v.tentative && v.isCurrent(node) {
		return &v.value
	}
	sums := e.current(node, pending)
	if v == nil || v.input != input || v.sums != sums {
		v = &derived[I, T]{sums.state, input, sums, d.derive(sums, input)}
		e.value(d.number).Store(v)
	}
	return &v.value
}

// entry returns the entry of a node. If the node is new, the nodes of the snapshot replace the present ones, so that
// starting with n nodes copies the map once.
func (c *Cache) entry(node fwk.NodeInfo, pending *Pending) *entry {
	info := node.(*framework.NodeInfo)
	if e, ok := c.load()[info]; ok {
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.load()[info]; ok { // another goroutine has added it
		return e
	}
	return c.replace(pending.all, info)[info]
}

func (c *Cache) load() map[*framework.NodeInfo]*entry {
	if nodes := c.nodes.Load(); nodes != nil {
		return *nodes
	}
	return nil
}

// dropDeleted drops nodes that a snapshot lacks. If there are none, it compares two lengths.
func (c *Cache) dropDeleted(all fwk.SharedLister) {
	nodes, err := all.NodeInfos().List()
	if err != nil || len(nodes) >= len(c.load()) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replace(all)
}

// replace replaces the nodes by the nodes of a snapshot and further nodes, which may be missing from the snapshot.
// Entries are kept, also if a node has another NodeInfo: the scheduler works on copies of all nodes during the
// preemption of a group. The caller holds the lock.
func (c *Cache) replace(all fwk.SharedLister, further ...fwk.NodeInfo) map[*framework.NodeInfo]*entry {
	infos, err := all.NodeInfos().List()
	if err != nil {
		infos = nil // only the further nodes are added
	}
	byName := make(map[string]*entry, len(c.load()))
	for info, e := range c.load() {
		if node := info.Node(); node != nil { // the node of pods that are still there may be deleted
			byName[node.Name] = e
		}
	}
	next := make(map[*framework.NodeInfo]*entry, len(infos)+len(further))
	for _, info := range append(slices.Clip(infos), further...) {
		node := info.Node()
		if node == nil {
			continue
		}
		e := byName[node.Name]
		if e == nil {
			e = &entry{further: make([]atomic.Value, max(c.derived-1, 0))}
		}
		next[info.(*framework.NodeInfo)] = e
	}
	c.nodes.Store(&next)
	return next
}
