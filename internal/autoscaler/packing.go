// Package autoscaler is the model of a cluster autoscaler: how it packs pods onto nodes, which nodes it adds for pending pods, and which it
// removes.
package autoscaler

import (
	"context"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Item is a pod or placeholder that needs a node.
type Item struct {
	// Requests of the pod, including one pod slot.
	Requests resources.Amounts
	// Class is equal for pods that the probe treats alike regardless of the pods on a node. It is 0
	// for a pod that depends on other pods.
	Class int
	// Placeholder pods are placed last.
	Placeholder bool
}

// Probe checks constraints other than amounts, such as affinity and taints. Pods and nodes are the
// indexes of the current call.
type Probe interface {
	// Fits reports whether a pod may run on a node that has enough free resources, with
	// the pods that are assigned to it.
	Fits(ctx context.Context, pod, node int) bool
	// Assign and Unassign add a pod to a node and remove it.
	Assign(ctx context.Context, pod, node int)
	Unassign(ctx context.Context, pod, node int)
	// AddNode adds a node of a group with the next index, RemoveLastNode removes the
	// last node.
	AddNode(group int)
	RemoveLastNode(ctx context.Context)
}

// NoConstraints is a Probe that permits all nodes.
type NoConstraints struct{}

// Fits implements Probe.
func (NoConstraints) Fits(context.Context, int, int) bool { return true }

// Assign implements Probe.
func (NoConstraints) Assign(context.Context, int, int) {}

// Unassign implements Probe.
func (NoConstraints) Unassign(context.Context, int, int) {}

// AddNode implements Probe.
func (NoConstraints) AddNode(int) {}

// RemoveLastNode implements Probe.
func (NoConstraints) RemoveLastNode(context.Context) {}

// packing assigns pods to nodes, first fit.
type packing struct {
	capacity
	probe Probe
	pods  []Item
	// start is the first node to consider for the next pod equal to an item: the nodes before
	// it did not fit the previous one, and have no more free now.
	start       map[Item]int
	assignments []assignment
}

// assignment is a pod assigned to a node.
type assignment struct{ pod, node int }

func newPacking(pods []Item, probe Probe) *packing {
	return &packing{probe: probe, pods: pods, start: map[Item]int{}}
}

// place assigns a pod to the first node at or after an index that it fits on, and
// reports whether there is one.
func (p *packing) place(ctx context.Context, pod, from int) bool {
	item := p.pods[pod]
	if item.Class != 0 {
		from = max(from, p.start[item])
	}
	node := p.first(item.Requests, from, func(node int) bool { return p.probe.Fits(ctx, pod, node) })
	if item.Class != 0 {
		p.start[item] = node
	}
	if node == p.nodes {
		return false
	}
	p.assign(ctx, pod, node)
	return true
}

// assign assigns a pod to a node.
func (p *packing) assign(ctx context.Context, pod, node int) {
	p.set(node, p.free(node).Minus(p.pods[pod].Requests))
	p.probe.Assign(ctx, pod, node)
	p.assignments = append(p.assignments, assignment{pod, node})
}

// undo reverts all assignments after the given number.
func (p *packing) undo(ctx context.Context, keep int) {
	for len(p.assignments) > keep {
		last := p.assignments[len(p.assignments)-1]
		p.assignments = p.assignments[:len(p.assignments)-1]
		p.probe.Unassign(ctx, last.pod, last.node)
		p.set(last.node, p.free(last.node).Add(p.pods[last.pod].Requests))
	}
	clear(p.start)
}

// Place assigns pods in their order to nodes with the given free amounts. It returns
// the node of each pod, -1 for a pod that does not fit.
func Place(ctx context.Context, pods []Item, free []resources.Amounts, probe Probe) []int {
	p := newPacking(pods, probe)
	p.capacity = newCapacity(free)
	nodes := make([]int, len(pods))
	for i := range pods {
		nodes[i] = -1
		if p.place(ctx, i, 0) {
			nodes[i] = p.assignments[len(p.assignments)-1].node
		}
	}
	return nodes
}

// capacity finds the first node with enough free resources without a scan of all nodes. It is a
// binary tree: leaves have the free amounts of nodes, inner vertices the maximum of each resource
// below them.
type capacity struct {
	leaves int // a power of two
	nodes  int
	tree   []resources.Amounts // the root is at 1, leaf i at leaves + i
}

// newCapacity returns the capacity of nodes with the given free amounts.
func newCapacity(free []resources.Amounts) capacity {
	c := capacity{leaves: 1, nodes: len(free)}
	for c.leaves < len(free) {
		c.leaves *= 2
	}
	c.tree = make([]resources.Amounts, 2*c.leaves)
	copy(c.tree[c.leaves:], free)
	for i := c.leaves - 1; i >= 1; i-- {
		c.tree[i] = c.tree[2*i].Max(c.tree[2*i+1])
	}
	return c
}

// add adds a node with the next index.
func (c *capacity) add(free resources.Amounts) {
	if c.nodes == c.leaves {
		nodes := c.nodes
		*c = newCapacity(append(c.tree[c.leaves:], make([]resources.Amounts, max(1, c.leaves))...))
		c.nodes = nodes
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
