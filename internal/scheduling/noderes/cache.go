package noderes

import (
	"slices"
	"sync"
	"sync/atomic"

	fwk "k8s.io/kube-scheduler/framework"
)

// Cache keeps the sums of every node of one scheduler, so that a plugin reads them in constant time
// whatever the number of pods. All plugins of a scheduler may share one. It is safe for concurrent
// use, except that PreScore is called by one scheduling cycle after the other: reading takes no lock and allocates
// nothing; the sums of a changed node are computed by its first reader.
//
// Sums are computed from the NodeInfo passed by the caller and never from an informer, which may be
// ahead of or behind the pods that the scheduler has assumed.
type Cache struct {
	// nodes has one entry per node of the snapshot. It is replaced if nodes are added or deleted.
	nodes atomic.Pointer[table]
	// replacing serializes the replacement of the table.
	replacing sync.Mutex
	// arrayWidths are the numbers of values per node of the reserved arrays. replacing guards them.
	arrayWidths []int
	// slotCount is the number of reserved slots.
	slotCount atomic.Int32
	// pending are the amounts of the pending pod.
	pending Cycle[Pending]
	// candidates are the nodes that the newest cycle scores, candidatesState is its state.
	candidates      candidates
	candidatesState fwk.CycleState
}

// NewCache returns an empty cache.
func NewCache() *Cache {
	c := &Cache{pending: NewCycle[Pending](pendingKey), candidates: candidates{index: newIndex(0)}}
	c.nodes.Store(newTable(0, nil))
	return c
}

// Place is the place of a node in a cache. It is valid during one call of Score.
type Place struct {
	table    *table
	position int
}

// Place returns the place of a node. all is the snapshot that contains the node; nodes that are new
// in it are added to the cache.
func (c *Cache) Place(node fwk.NodeInfo, all fwk.SharedLister) Place {
	nodes := c.nodes.Load()
	if position, found := nodes.find(node); found {
		return Place{nodes, position}
	}
	nodes = c.addNodes([]fwk.NodeInfo{node}, all)
	position, _ := nodes.find(node)
	return Place{nodes, position}
}

// Sums returns the sums over the pods of a node. all is the snapshot that contains the node; nodes
// that are new in it are added to the cache. inGroup is set while the scheduler evaluates a group of
// pods.
func (c *Cache) Sums(node fwk.NodeInfo, all fwk.SharedLister, inGroup bool) *Sums {
	return c.SumsAt(c.Place(node, all), node, inGroup)
}

// SumsAt is Sums for a node whose place is known.
func (c *Cache) SumsAt(p Place, node fwk.NodeInfo, inGroup bool) *Sums {
	place := &p.table.sums[p.position]
	sums := place.Load()
	if sums != nil && sums.isCurrent(node) {
		return sums
	}
	sums = newSums(node, sums, inGroup, int(c.slotCount.Load()))
	place.Store(sums)
	return sums
}

// All calls visit with the place and the newest sums of every node whose sums have been read. Unlike the
// NodeInfos of the scheduler, sums may be read at any time by any goroutine.
func (c *Cache) All(visit func(Place, *Sums)) {
	nodes := c.nodes.Load()
	for i := range nodes.nodes {
		if sums := nodes.sums[i].Load(); sums != nil {
			visit(Place{nodes, i}, sums)
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
// table n times, and the given nodes, which may be missing from the snapshot. It returns the table.
func (c *Cache) addNodes(added []fwk.NodeInfo, all fwk.SharedLister) *table {
	c.replacing.Lock()
	defer c.replacing.Unlock()
	current := c.nodes.Load()
	isMissing := func(node fwk.NodeInfo) bool {
		_, found := current.find(node)
		return !found
	}
	if !slices.ContainsFunc(added, isMissing) { // another goroutine has added them
		return current
	}
	nodes, err := all.NodeInfos().List()
	if err != nil {
		nodes = nil // add only the given nodes
	}
	return c.replace(append(slices.Clip(nodes), added...))
}

// replace replaces the table by one with exactly these nodes. Existing sums are kept. The caller holds
// the lock.
func (c *Cache) replace(nodes []fwk.NodeInfo) *table {
	old, next := c.nodes.Load(), newTable(len(nodes), c.arrayWidths)
	// byName finds the sums of a node that has a NodeInfo at another address.
	var byName map[string]int
	for _, node := range nodes {
		if node.Node() == nil {
			continue // the node was deleted, its pods were not
		}
		previous, found := old.find(node)
		if !found {
			if byName == nil {
				byName = old.byName()
			}
			previous, found = byName[node.Node().Name]
		}
		if position := next.add(node); found {
			next.copy(position, old, previous)
		}
	}
	c.nodes.Store(next)
	return next
}

// Len returns the number of nodes in the cache.
func (c *Cache) Len() int { return len(c.nodes.Load().nodes) }
