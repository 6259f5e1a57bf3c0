package autoscale

import (
	"cmp"
	"slices"
)

// Group is a number of equal nodes that an autoscaler makes more or fewer of.
type Group struct {
	// Has is what a new node has for pods, beside its daemons.
	Has Amounts
	// More is how many more nodes it may get.
	More int
	// Cost of a node per hour, at least 0.
	Cost float64
}

// Fate is what becomes of a pod that waits.
type Fate uint8

// The fates.
const (
	// Booting: it fits a node that is booting.
	Booting Fate = iota + 1
	// Ordered: a new node is made for it.
	Ordered
	// Full: it would fit a new node, of groups that may get no more.
	Full
	// Unfit: it fits no node of any group.
	Unfit
)

// Growth is what an autoscaler adds.
type Growth struct {
	// Nodes is how many there are to be added, of each group.
	Nodes []int
	// Fates of the pods.
	Fates []Fate
}

// Added reports whether anything is added.
func (g Growth) Added() bool { return slices.ContainsFunc(g.Nodes, func(n int) bool { return n > 0 }) }

// Grow returns how many nodes pods need that wait, beside the nodes that are
// booting, of which the groups are given. The site has no nodes before, and the ones
// it is told of stay open. Large pods go first, as in Cluster Autoscaler's estimate,
// placeholders after all others; each goes on the first node with room.
//
// Of several groups that one is taken whose new nodes cost the least for what they
// solve:
//
//	price = nodes x cost / sum over the resources of (requests of the pods that they
//	        take / requests of all pods that wait)
//
// Of equal ones it is the one with fewer nodes, and then the first. What is left is
// tried again, until no group takes any more of it.
func Grow(pods []Pod, booting []int, groups []Group, site Site) Growth {
	g := &growing{
		packing: newPacking(pods, site), groups: groups, unfit: make([]map[kind]bool, len(groups)),
		Growth: Growth{Nodes: make([]int, len(groups)), Fates: make([]Fate, len(pods))},
	}
	for i := range g.unfit {
		g.unfit[i] = map[kind]bool{}
	}
	for _, group := range booting {
		g.open(group)
	}
	var left []int
	for _, pod := range g.order() {
		if g.place(pod, 0) {
			g.Fates[pod] = Booting
		} else {
			left = append(left, pod)
		}
	}
	for len(left) > 0 {
		group := g.cheapest(left)
		if group < 0 {
			break
		}
		left = g.fill(group, left)
	}
	for _, pod := range left {
		g.Fates[pod] = Unfit
		for group := range groups {
			if g.open(group); g.fits(pod, group) {
				g.Fates[pod] = Full
			}
			g.close()
		}
	}
	return g.Growth
}

// growing is a Growth in the making.
type growing struct {
	*packing
	Growth
	groups []Group
	// unfit are the kinds of pods that fit no empty node of a group.
	unfit []map[kind]bool
}

// order returns the pods, the large ones first and placeholders after all others.
// How large a pod is goes by the largest node of any group.
func (g *growing) order() []int {
	var largest Amounts
	for i := range g.groups {
		largest = largest.most(g.groups[i].Has)
	}
	order, sizes := make([]int, len(g.pods)), make([]float64, len(g.pods))
	for i := range order {
		order[i], sizes[i] = i, g.pods[i].Needs.part(largest)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if g.pods[a].Placeholder != g.pods[b].Placeholder {
			if g.pods[b].Placeholder {
				return -1
			}
			return 1
		}
		return cmp.Compare(sizes[b], sizes[a])
	})
	return order
}

// open makes a node of a group.
func (g *growing) open(group int) {
	g.add(g.groups[group].Has)
	g.site.Open(group)
}

// close takes the last node away.
func (g *growing) close() {
	g.pop()
	g.site.Close()
	clear(g.from) // the next node has the same number
}

// fits reports whether a pod fits the last node, which is one of a group and empty.
func (g *growing) fits(pod, group int) bool {
	of := kind{g.pods[pod].Needs, g.pods[pod].Class}
	if of.class != 0 && g.unfit[group][of] {
		return false
	}
	fits := of.needs.FitsIn(g.groups[group].Has) && g.site.Admits(pod, g.nodes-1)
	if !fits && of.class != 0 {
		g.unfit[group][of] = true
	}
	return fits
}

// try puts pods on new nodes of a group, as many as it may get, and returns those
// that are left.
func (g *growing) try(group int, pods []int) (left []int) {
	first, more := g.nodes, g.groups[group].More-g.Nodes[group]
	for _, pod := range pods {
		of := kind{g.pods[pod].Needs, g.pods[pod].Class}
		switch {
		case of.class != 0 && g.unfit[group][of] || !of.needs.FitsIn(g.groups[group].Has):
		case g.place(pod, first):
			continue
		case g.nodes-first < more:
			if g.open(group); g.fits(pod, group) {
				g.put(pod, g.nodes-1)
				continue
			}
			g.close()
		}
		left = append(left, pod)
	}
	return left
}

// cheapest returns the group whose new nodes cost the least for what they solve, -1
// if none solves anything.
func (g *growing) cheapest(pods []int) int {
	var all Amounts
	for _, pod := range pods {
		all = all.Plus(g.pods[pod].Needs)
	}
	best, price, nodes := -1, 0.0, 0
	for group := range g.groups {
		done, before := len(g.done), g.nodes
		if g.groups[group].More <= g.Nodes[group] {
			continue
		}
		g.try(group, pods)
		var solved Amounts
		for _, put := range g.done[done:] {
			solved = solved.Plus(g.pods[put.pod].Needs)
		}
		opened := g.nodes - before
		g.undo(done)
		for g.nodes > before {
			g.close()
		}
		if opened == 0 {
			continue
		}
		var part float64
		for r := range all {
			if all[r] > 0 {
				part += float64(solved[r]) / float64(all[r])
			}
		}
		is := float64(opened) * g.groups[group].Cost / part
		if best < 0 || is < price || is == price && opened < nodes {
			best, price, nodes = group, is, opened
		}
	}
	return best
}

// fill puts pods on new nodes of a group for good, and returns those that are left.
func (g *growing) fill(group int, pods []int) []int {
	before, done := g.nodes, len(g.done)
	left := g.try(group, pods)
	g.Nodes[group] += g.nodes - before
	for _, put := range g.done[done:] {
		g.Fates[put.pod] = Ordered
	}
	return left
}
