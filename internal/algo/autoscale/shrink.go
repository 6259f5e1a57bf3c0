package autoscale

import (
	"cmp"
	"slices"
)

// Node is one that pods run on.
type Node struct {
	Name string
	// Group of the node, -1 if it is no group's: such a node stays.
	Group int
	// Free is what nothing on the node has requested; a node that takes no pods has
	// none.
	Free Amounts
	// Utilization of the node.
	Utilization float64
	// Pods and placeholders that would have to be put elsewhere, the daemons not
	// among them.
	Pods []int
	// Fixed: something on the node does not want to be moved.
	Fixed bool
}

// The most nodes that go at a time, and how many of these may have pods: Cluster
// Autoscaler's defaults, max-scale-down-parallelism and max-drain-parallelism.
const (
	maxGone    = 10
	maxDrained = 1
)

// Shrinker takes nodes away that nobody has needed for a while. The zero value has
// seen nothing yet.
type Shrinker struct {
	// since is from when on each node has not been needed, in seconds.
	since map[string]int64
}

// Shrink says what a Shrinker goes by.
type Shrink struct {
	Nodes []Node
	Pods  []Pod
	// Spare is how many nodes a group may lose.
	Spare []int
	// Threshold is the utilization under which a node may not be needed, Idle for how
	// many seconds it must not have been.
	Threshold float64
	Idle      int64
	// Hold: nothing goes now, though time is counted.
	Hold bool
}

// Next returns the nodes that go at a second. A node is not needed if it is one of
// a group, its utilization is under the threshold, and all that is on it fits on
// other nodes: on those that are needed, and together with what comes from the other
// nodes that are not. Nodes from which fewer pods have to move come first. The site
// has the nodes given, with their pods, and is as it was when Next returns.
func (s *Shrinker) Next(now int64, in Shrink, site Site) []int {
	unneeded := in.unneeded(site)
	since := make(map[string]int64, len(unneeded))
	var gone []int
	drained := 0
	for _, node := range unneeded {
		name := in.Nodes[node].Name
		from, known := s.since[name]
		if !known {
			from = now
		}
		since[name] = from
		moves := in.moves(node) > 0
		if now-from < in.Idle || in.Hold || len(gone) == maxGone || moves && drained == maxDrained {
			continue
		}
		if moves {
			drained++
		}
		gone = append(gone, node)
		delete(since, name)
	}
	s.since = since
	return gone
}

// moves is how many pods would have to move from a node, placeholders not among
// them.
func (in *Shrink) moves(node int) (moves int) {
	for _, pod := range in.Nodes[node].Pods {
		if !in.Pods[pod].Placeholder {
			moves++
		}
	}
	return moves
}

// unneeded returns the nodes that nobody needs, in the order in which they are to
// go.
func (in *Shrink) unneeded(site Site) []int {
	var candidates []int
	for i := range in.Nodes {
		if n := &in.Nodes[i]; n.Group >= 0 && !n.Fixed && in.Spare[n.Group] > 0 && n.Utilization < in.Threshold {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) == 0 {
		return nil
	}
	slices.SortStableFunc(candidates, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.moves(a), in.moves(b)), cmp.Compare(in.Nodes[a].Utilization, in.Nodes[b].Utilization))
	})
	p := newPacking(in.Pods, site)
	for i := range in.Nodes {
		p.add(in.Nodes[i].Free)
	}
	spare, took := slices.Clone(in.Spare), make([]bool, len(in.Nodes))
	var unneeded []int
	for _, node := range candidates {
		done := len(p.done)
		if spare[in.Nodes[node].Group] == 0 || took[node] || !in.empty(p, node) {
			continue
		}
		spare[in.Nodes[node].Group]--
		unneeded = append(unneeded, node)
		for _, put := range p.done[done:] {
			took[put.node] = true // it is needed by what would come there
		}
	}
	// Last in, first out: the site is as it was.
	p.undo(0)
	for _, node := range slices.Backward(unneeded) {
		in.restore(site, node)
	}
	return unneeded
}

// empty puts what is on a node elsewhere, if all of it fits.
func (in *Shrink) empty(p *packing, node int) bool {
	free, done := p.free(node), len(p.done)
	p.set(node, Amounts{})
	for _, pod := range in.Nodes[node].Pods {
		p.site.Take(pod, node)
	}
	for _, pod := range in.Nodes[node].Pods {
		if !p.place(pod, 0) {
			p.undo(done)
			in.restore(p.site, node)
			p.set(node, free)
			return false
		}
	}
	return true
}

// restore puts what is on a node back.
func (in *Shrink) restore(site Site, node int) {
	for _, pod := range in.Nodes[node].Pods {
		site.Put(pod, node)
	}
}
