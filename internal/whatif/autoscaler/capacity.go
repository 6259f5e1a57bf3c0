package autoscaler

import "github.com/plimsoll-k8s/plimsoll/internal/resources"

// capacity finds the first node with enough free resources without a scan of all nodes. It is a
// binary tree: leaves have the free amounts of nodes, inner vertices the maximum of each resource
// below them.
type capacity struct {
	leaves int // a power of two
	nodes  int
	tree   []resources.Amounts // the root is at 1, leaf i at leaves + i
}

// add adds a node with the next index.
func (c *capacity) add(free resources.Amounts) {
	if c.nodes == c.leaves {
		grown := capacity{leaves: max(1, 2*c.leaves), nodes: c.nodes}
		grown.tree = make([]resources.Amounts, 2*grown.leaves)
		copy(grown.tree[grown.leaves:], c.tree[c.leaves:])
		for i := grown.leaves - 1; i >= 1; i-- {
			grown.tree[i] = grown.tree[2*i].Max(grown.tree[2*i+1])
		}
		*c = grown
	}
	c.nodes++
	c.set(c.nodes-1, free)
}

// removeLast removes the last node.
func (c *capacity) removeLast() {
	c.set(c.nodes-1, resources.Amounts{})
	c.nodes--
}

// free returns the free amounts of a node.
func (c *capacity) free(node int) resources.Amounts { return c.tree[c.leaves+node] }

// set sets the free amounts of a node.
func (c *capacity) set(node int, free resources.Amounts) {
	i := c.leaves + node
	c.tree[i] = free
	for i >>= 1; i >= 1; i >>= 1 {
		c.tree[i] = c.tree[2*i].Max(c.tree[2*i+1])
	}
}

// first returns the first node at or after an index that has the requests free and for which fits
// returns true, or the number of nodes if there is none. Every pod requests a pod slot. A removed
// node has no pod slots and is never returned.
func (c *capacity) first(requests resources.Amounts, from int, fits func(node int) bool) int {
	if found := c.search(1, 0, c.leaves, requests, from, fits); found >= 0 {
		return found
	}
	return c.nodes
}

// search searches below a vertex of the tree; its leaves begin at start. It returns -1 if there is
// no such node.
func (c *capacity) search(vertex, start, leaves int, requests resources.Amounts, from int, fits func(int) bool) int {
	if start >= c.nodes || start+leaves <= from || !requests.FitsIn(c.tree[vertex]) {
		return -1
	}
	if leaves == 1 {
		if fits(start) {
			return start
		}
		return -1
	}
	half := leaves / 2
	if found := c.search(2*vertex, start, half, requests, from, fits); found >= 0 {
		return found
	}
	return c.search(2*vertex+1, start+half, half, requests, from, fits)
}
