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
	// nodes has one entry per node of the snapshot. It is replaced if nodes are added or deleted.
	nodes atomic.Pointer[table]
	// replacing serializes the replacement of the table.
	replacing sync.Mutex
	// slotCount is the number of reserved slots.
	slotCount atomic.Int32
	// pending are the amounts of the pending pod.
	pending Cycle[Pending]
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{pending: NewCycle[Pending](pendingKey)}
	c.nodes.Store(newTable(0))
	return c
}

// Sums returns the sums over the pods of a node. all is the snapshot that contains the node; nodes
// that are new in it are added to the cache. inGroup is set while the scheduler evaluates a group of
// pods.
func (c *Cache) Sums(node fwk.NodeInfo, all fwk.SharedLister, inGroup bool) *Sums {
	entry := c.nodes.Load().find(node)
	if entry == nil {
		entry = c.addNodes(node, all)
	}
	sums := entry.sums.Load()
	if sums != nil && sums.isCurrent(node) {
		return sums
	}
	sums = newSums(node, sums, inGroup, int(c.slotCount.Load()))
	entry.sums.Store(sums)
	return sums
}

// All calls visit with the newest sums of every node whose sums have been read. Unlike the NodeInfos
// of the scheduler, sums may be read at any time by any goroutine.
func (c *Cache) All(visit func(*Sums)) {
	entries := c.nodes.Load().entries
	for i := range entries {
		if sums := entries[i].sums.Load(); sums != nil {
			visit(sums)
		}
	}
}

// dropDeletedNodes drops the sums of nodes that are missing from the snapshot. If no node is missing,
// it costs a comparison.
func (c *Cache) dropDeletedNodes(all fwk.SharedLister) {
	nodes, err := all.NodeInfos().List()
	if err != nil || len(nodes) >= c.Len() {
		return
	}
	c.replacing.Lock()
	defer c.replacing.Unlock()
	c.replace(nodes)
}

// addNodes adds all nodes of the snapshot at once, so that starting with n nodes does not copy the
// table n times. It returns the entry of the node.
func (c *Cache) addNodes(node fwk.NodeInfo, all fwk.SharedLister) *entry {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	if entry := c.nodes.Load().find(node); entry != nil {
		return entry // added by another goroutine
	}
	nodes, err := all.NodeInfos().List()
	if err != nil {
		nodes = nil // add only the given node
	}
	return c.replace(append(slices.Clip(nodes), node)).find(node)
}

// replace replaces the table by one with exactly these nodes. Existing sums are kept. The caller holds
// the lock.
func (c *Cache) replace(nodes []fwk.NodeInfo) *table {
	old, next := c.nodes.Load(), newTable(len(nodes))
	// byName are the previous sums by node name, for a node that has a NodeInfo at another address.
	var byName map[string]*Sums
	for _, node := range nodes {
		if node.Node() == nil {
			continue // the node was deleted, its pods were not
		}
		added := next.add(node)
		if previous := old.find(node); previous != nil {
			added.sums.Store(previous.sums.Load())
			continue
		}
		if byName == nil {
			byName = old.sumsByName()
		}
		added.sums.Store(byName[node.Node().Name])
	}
	c.nodes.Store(next)
	return next
}

// Len returns the number of nodes in the cache.
func (c *Cache) Len() int { return c.nodes.Load().count }
