package noderes

import (
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Cache keeps the sums of every node of one scheduler, so that a plugin reads
// them in constant time however many pods a node has. All plugins of a
// scheduler may share one; it is safe for concurrent use. Reading takes no lock
// and allocates nothing; what has changed on a node is added up by the first
// who asks.
//
// Sums come from the NodeInfo at hand and never from an informer: an informer
// leads or lags the pods that the scheduler has assumed.
type Cache struct {
	// slots has one entry per node. The map is replaced, never changed.
	slots atomic.Pointer[map[string]*atomic.Pointer[Sums]]
	// replacing serialises those who replace the map.
	replacing sync.Mutex
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{}
	c.slots.Store(&map[string]*atomic.Pointer[Sums]{})
	return c
}

// Sums returns the sums over the pods of the node. all is the snapshot that
// the node is from; the cache learns from it which nodes there are. inGroup
// says that the scheduler is trying out a group of pods.
func (c *Cache) Sums(node fwk.NodeInfo, all fwk.SharedLister, inGroup bool) *Sums {
	slot, ok := (*c.slots.Load())[node.Node().Name]
	if !ok {
		slot = c.addNodes(node, all)
	}
	sums := slot.Load()
	if sums != nil && sums.describes(node) {
		return sums
	}
	sums = newSums(node, sums, inGroup)
	slot.Store(sums)
	return sums
}

// forget drops the sums of nodes that are gone, if there are any. It costs
// next to nothing where there are none.
func (c *Cache) forget(all fwk.SharedLister) {
	nodes, err := all.NodeInfos().List()
	if err != nil || len(nodes) >= len(*c.slots.Load()) {
		return
	}
	c.replace(nodes)
}

// addNodes makes room for all nodes of the snapshot at once, so that a start
// with n nodes does not cost n copies of the map.
func (c *Cache) addNodes(node fwk.NodeInfo, all fwk.SharedLister) *atomic.Pointer[Sums] {
	nodes, err := all.NodeInfos().List()
	if err != nil {
		nodes = nil // there is still the node at hand
	}
	slots := c.replace(append(slices.Clip(nodes), node))
	return slots[node.Node().Name]
}

// replace puts a map in place that has just these nodes, keeping what is
// known of them.
func (c *Cache) replace(nodes []fwk.NodeInfo) map[string]*atomic.Pointer[Sums] {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	old := *c.slots.Load()
	slots := make(map[string]*atomic.Pointer[Sums], len(nodes))
	// New slots stand side by side: those of 5,000 nodes stay in a processor's
	// cache, where they would not if each were alone.
	block := make([]atomic.Pointer[Sums], len(nodes))
	for i, node := range nodes {
		if node.Node() == nil {
			continue // pods are known on it, the node itself is not
		}
		name := node.Node().Name
		if slot, ok := old[name]; ok {
			slots[name] = slot
		} else {
			slots[name] = &block[i]
		}
	}
	c.slots.Store(&slots)
	return slots
}

// Len returns the number of nodes in the cache.
func (c *Cache) Len() int { return len(*c.slots.Load()) }
