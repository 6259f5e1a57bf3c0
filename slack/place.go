package slack

import (
	"cmp"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// demand is a number of equal placeholders to be placed on nodes. The size of each includes one pod.
type demand struct {
	Placeholders
	// Allowed reports whether the placeholders may be on a node.
	Allowed func(*nodeCapacity) bool
	// Assigned, if it is not nil, is called with the node of each placeholder of the demand. Nodes may
	// then become not allowed, for this demand and for later ones, and never become allowed.
	Assigned func(*nodeCapacity)
}

// nodeCapacity is the capacity left on a node.
type nodeCapacity struct {
	node *v1.Node
	// InPool reports whether the node is in the pool. Usable and Booting are copied from the ledger.
	InPool, Usable, Booting bool
	// Free is the free capacity, with devices and the number of pods that can be added.
	Free resources.Amounts
}

// placeAll returns how many placeholders of the demands fit the nodes at the same time. Demands are
// placed in order. The number for a single demand is exact. Each earlier demand is placed where it
// costs the last demand the least, which is not always optimal.
func placeAll(nodes []nodeCapacity, demands []demand) (placed int64) {
	nodes = slices.Clone(nodes)
	for i := range demands {
		placed += place(candidates(nodes, &demands[i]), &demands[i], &demands[len(demands)-1])
	}
	return placed
}

// place places a demand and returns how many placeholders were placed: first where they cost the last demand nothing, then where
// they cost it the least.
func place(candidates []*nodeCapacity, d, last *demand) (placed int64) {
	for _, node := range candidates {
		for placed < d.Count && node.permits(d) && node.loss(d, last) == 0 {
			node.assign(d)
			placed++
		}
	}
	if placed == d.Count {
		return placed
	}
	slices.SortStableFunc(candidates, func(a, b *nodeCapacity) int { return cmp.Compare(a.loss(d, last), b.loss(d, last)) })
	for _, node := range candidates {
		for placed < d.Count && node.permits(d) {
			node.assign(d)
			placed++
		}
	}
	return placed
}

// candidates returns the nodes that a placeholder of a demand may be on and fits.
func candidates(nodes []nodeCapacity, d *demand) []*nodeCapacity {
	out := make([]*nodeCapacity, 0, len(nodes))
	for i := range nodes {
		if node := &nodes[i]; node.Usable && !node.Booting && node.count(d) > 0 && d.Allowed(node) {
			out = append(out, node)
		}
	}
	return out
}

// permits reports whether another placeholder of a demand may be on the node, which is one of its candidates.
func (c *nodeCapacity) permits(d *demand) bool {
	return c.count(d) > 0 && (d.Assigned == nil || d.Allowed(c))
}

// count returns how many placeholders of a demand fit.
func (c *nodeCapacity) count(d *demand) int64 { return d.Requests.Copies(c.Free) }

// assign assigns a placeholder of a demand to the node.
func (c *nodeCapacity) assign(d *demand) {
	c.Free = c.Free.Minus(d.Requests)
	if d.Assigned != nil {
		d.Assigned(c)
	}
}

// loss returns how many fewer placeholders of another demand fit after one of a demand is assigned.
func (c *nodeCapacity) loss(d, other *demand) int64 {
	if other == d {
		return 0
	}
	return c.count(other) - other.Requests.Copies(c.Free.Minus(d.Requests))
}
