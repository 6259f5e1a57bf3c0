package noderes

import (
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Cache keeps the sums of every node of one scheduler, so that a plugin reads them in constant time
// whatever the number of pods. All plugins of a scheduler may share one. It is safe for concurrent
// use: reading takes no lock and allocates nothing; the sums of a changed node are computed by its
// first reader.
//
// Sums are computed from the NodeInfo passed by the caller and never from an informer, which may be
// ahead of or behind the pods that the scheduler has assumed.
type Cache struct {
	// nodes has one entry per node. The map is replaced, never changed.
	nodes atomic.Pointer[map[string]*atomic.Pointer[Sums]]
	// replacing serializes the replacement of the map.
	replacing sync.Mutex
	// slotCount is the number of reserved slots.
	slotCount atomic.Int32
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{}
	c.nodes.Store(&map[string]*atomic.Pointer[Sums]{})
	return c
}

// Sums returns the sums over the pods of a node. all is the snapshot that contains the node; nodes
// that are new in it are added to the cache. inGroup is set while the scheduler evaluates a group of
// pods.
func (c *Cache) Sums(node fwk.NodeInfo, all fwk.SharedLister, inGroup bool) *Sums {
	entry, ok := (*c.nodes.Load())[node.Node().Name]
	if !ok {
		entry = c.addNodes(node, all)
	}
	sums := entry.Load()
	if sums != nil && sums.isCurrent(node) {
		return sums
	}
	sums = newSums(node, sums, inGroup, int(c.slotCount.Load()))
	entry.Store(sums)
	return sums
}

// dropDeletedNodes drops the sums of nodes that are missing from the snapshot. If no node is missing,
// it costs a comparison.
func (c *Cache) dropDeletedNodes(all fwk.SharedLister) {
	nodes, err := all.NodeInfos().List()
	if err != nil || len(nodes) >= len(*c.nodes.Load()) {
		return
	}
	c.replace(nodes)
}

// addNodes adds all nodes of the snapshot at once, so that starting with n nodes does not copy the
// map n times. It returns the entry of the node.
func (c *Cache) addNodes(node fwk.NodeInfo, all fwk.SharedLister) *atomic.Pointer[Sums] {
	nodes, err := all.NodeInfos().List()
	if err != nil {
		nodes = nil // add only the given node
	}
	entries := c.replace(append(slices.Clip(nodes), node))
	return entries[node.Node().Name]
}

// replace replaces the map by one with exactly these nodes. Existing entries are kept.
func (c *Cache) replace(nodes []fwk.NodeInfo) map[string]*atomic.Pointer[Sums] {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	old := *c.nodes.Load()
	entries := make(map[string]*atomic.Pointer[Sums], len(nodes))
	// Allocate new entries in one block: those of 5,000 nodes then stay in the cache of the processor.
	block := make([]atomic.Pointer[Sums], len(nodes))
	for i, node := range nodes {
		if node.Node() == nil {
			continue // the node was deleted, its pods were not
		}
		name := node.Node().Name
		if entry, ok := old[name]; ok {
			entries[name] = entry
		} else {
			entries[name] = &block[i]
		}
	}
	c.nodes.Store(&entries)
	return entries
}

// Len returns the number of nodes in the cache.
func (c *Cache) Len() int { return len(*c.nodes.Load()) }
