package slack

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// demand is a number of equal placeholders to be placed on nodes.
type demand struct {
	sizeGroup
	// Allowed reports whether the placeholders may be on a node; nil allows the nodes of the pool.
	Allowed func(node string) bool
	// Assigned, if it is not nil, is called with the node of each placeholder of the demand. Nodes may
	// then become not allowed, for this demand and for later ones, and never become allowed.
	Assigned func(node string)
	// Devices are the amounts of the devices of the pool that one placeholder requests.
	Devices deviceAmounts
	// Group, if it is not nil, has the placeholders of one group of a workload. Count groups are placed: all placeholders
	// of a group or none. The other fields are then not used.
	Group []demand
}

// noDemand is the demand after the last one.
var noDemand demand

// freeCapacity is the capacity left on a node.
type freeCapacity struct {
	name string
	// InPool, Usable and Booting are copied from the node.
	InPool, Usable, Booting bool
	// Free is the free capacity, Slots the number of pods that can be added.
	Free  resources.Amounts
	Slots int64
	// Devices are the free amounts of the devices of the pool.
	Devices deviceAmounts
}

// placeAll returns how many placeholders of the demands fit the nodes at the same time. Demands are
// placed in order. The number for a single demand is exact. Each earlier demand is placed where it
// costs the last demand the least, which is not always optimal.
func placeAll(nodes []freeCapacity, demands []demand) (placed int64) {
	nodes = slices.Clone(nodes)
	for i, demand := range demands {
		last := &demands[len(demands)-1]
		if i+1 == len(demands) {
			last = &noDemand
		}
		if demand.Group != nil {
			placed += placeGroups(nodes, demand)
			continue
		}
		placed += place(candidates(nodes, demand), demand, last)
	}
	return placed
}

// placeGroups places whole groups and returns how many placeholders were placed. Each placeholder is on the first node that it
// fits, those with the highest requests first: the number is not always the highest that is possible.
func placeGroups(nodes []freeCapacity, groups demand) (placed int64) {
	group := slices.Clone(groups.Group)
	slices.SortStableFunc(group, func(a, b demand) int {
		return cmp.Or(slices.Compare(b.Devices[:], a.Devices[:]), slices.Compare(b.Size[:], a.Size[:]))
	})
	left := make([][]*freeCapacity, len(group)) // a node that a placeholder does not fit will not fit a later one
	for i := range group {
		left[i] = candidates(nodes, group[i])
	}
	type change struct {
		node   *freeCapacity
		before freeCapacity
	}
	var changes []change // by the placeholders of the current group
	for range groups.Count {
		changes = changes[:0]
		for i := range group {
			for range group[i].Count {
				node := firstFit(&left[i], &group[i])
				if node == nil {
					for _, c := range slices.Backward(changes) {
						*c.node = c.before
					}
					return placed
				}
				changes = append(changes, change{node, *node})
				node.assign(&group[i], 1)
				if group[i].Assigned != nil {
					group[i].Assigned(node.name)
				}
			}
		}
		placed += int64(len(changes))
	}
	return placed
}

// firstFit removes nodes that a placeholder does not fit from the beginning of a list, and returns the first node, nil if none
// is left.
func firstFit(nodes *[]*freeCapacity, d *demand) *freeCapacity {
	for len(*nodes) > 0 {
		if node := (*nodes)[0]; node.count(d) > 0 && (d.Allowed == nil || d.Allowed(node.name)) {
			return node
		}
		*nodes = (*nodes)[1:]
	}
	return nil
}

// place places a demand and returns how many placeholders were placed: first where placeholders of
// the size last lose no capacity, then where they lose the least.
func place(candidates []*freeCapacity, demand demand, last *demand) (placed int64) {
	if demand.Assigned != nil {
		return placeOneByOne(candidates, demand, last)
	}
	for _, node := range candidates {
		for placed < demand.Count && node.count(&demand) > 0 && node.loss(&demand, last) == 0 {
			n := int64(1)
			if last.Size.IsZero() {
				n = min(node.count(&demand), demand.Count-placed)
			}
			node.assign(&demand, n)
			placed += n
		}
	}
	for placed < demand.Count {
		var best *freeCapacity
		leastLoss := int64(math.MaxInt64)
		for _, node := range candidates {
			if loss := node.loss(&demand, last); node.count(&demand) > 0 && loss < leastLoss {
				best, leastLoss = node, loss
			}
		}
		if best == nil {
			return placed
		}
		n := int64(1)
		if demand.Count > 2 {
			// Fill the node: one placeholder at a time would cost placeholders x nodes.
			n = min(best.count(&demand), demand.Count-placed)
		}
		best.assign(&demand, n)
		placed += n
	}
	return placed
}

// placeOneByOne places a demand whose allowed nodes change with each placeholder, in two passes: first
// where placeholders of the size last lose no capacity.
func placeOneByOne(candidates []*freeCapacity, demand demand, last *demand) (placed int64) {
	for _, anyLoss := range []bool{false, true} {
		for _, node := range candidates {
			for placed < demand.Count && node.count(&demand) > 0 &&
				(anyLoss || node.loss(&demand, last) == 0) && demand.Allowed(node.name) {
				node.assign(&demand, 1)
				demand.Assigned(node.name)
				placed++
			}
		}
	}
	return placed
}

// candidates returns the nodes that a placeholder of a demand may be on and fits.
func candidates(nodes []freeCapacity, demand demand) []*freeCapacity {
	out := make([]*freeCapacity, 0, len(nodes))
	for i := range nodes {
		node := &nodes[i]
		if !node.Usable || node.Booting || node.count(&demand) == 0 {
			continue
		}
		if demand.Allowed == nil && node.InPool || demand.Allowed != nil && demand.Allowed(node.name) {
			out = append(out, node)
		}
	}
	return out
}

// Assign assigns one placeholder to the node and reports whether it fits.
func (c *freeCapacity) Assign(size resources.Amounts) bool {
	d := demand{sizeGroup: sizeGroup{Size: size}}
	if !c.Usable || c.count(&d) == 0 {
		return false
	}
	c.assign(&d, 1)
	return true
}

// count returns how many placeholders of a demand fit.
func (c *freeCapacity) count(d *demand) int64 {
	n := max(0, c.Slots)
	for r := range d.Size {
		if d.Size[r] > 0 {
			n = min(n, c.Free[r]/d.Size[r])
		}
	}
	if d.Devices == (deviceAmounts{}) {
		return n
	}
	for i, amount := range d.Devices {
		if amount > 0 {
			n = min(n, c.Devices[i]/amount)
		}
	}
	return n
}

// assign subtracts n placeholders of a demand.
func (c *freeCapacity) assign(d *demand, n int64) {
	c.Free = c.Free.Subtract(d.Size.Multiply(n))
	c.Slots -= n
	for i, amount := range d.Devices {
		c.Devices[i] -= amount * n
	}
}

// loss returns how many fewer placeholders of another demand fit after one of a demand is assigned.
func (c *freeCapacity) loss(d, other *demand) int64 {
	if other.Size.IsZero() {
		return 0
	}
	after := *c
	after.assign(d, 1)
	return c.count(other) - after.count(other)
}
