package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason explains in a sentence why the pod is on a node, or why it has none if node is
// empty.
func (p PodScores) Reason(node string) string { return p.ReasonAgainst(node, "") }

// ReasonAgainst is Reason in relation to another node, if the pod fits on it, in place of the best other node.
func (p PodScores) ReasonAgainst(node, rival string) string {
	selected, other := p.pair(node, rival)
	switch {
	case selected == nil && other == nil:
		return "The pod fits on no node: " + p.rejectionReasons()
	case selected == nil:
		return fmt.Sprintf("The pod is not bound, although it fits on %s.", other.Name)
	case p.Nominated && rival == "":
		return node + " is the nominated node of the pod: kube-scheduler tries it first."
	case other == nil:
		return node + " is the only node on which the pod fits."
	case selected.Total == other.Total:
		return fmt.Sprintf("%s and %s both score %d; one of them is selected at random.", node, other.Name, selected.Total)
	}
	reason := fmt.Sprintf("%s scores %d, %s scores %d: %s.", node, selected.Total, other.Name, other.Total, difference(selected, other))
	if slices.ContainsFunc(p.Nodes, func(n NodeScores) bool { return n.Feasible && n.Total > selected.Total }) {
		reason += " The scores have changed since the pod was scheduled."
	}
	return reason
}

// pair returns a node if the pod fits on it, and another node, or the best of the others, on which it fits.
func (p PodScores) pair(node, rival string) (selected, other *NodeScores) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		switch {
		case !n.Feasible:
		case n.Name == node:
			selected = n
		case other == nil || n.Name == rival || other.Name != rival && n.Total > other.Total:
			other = n
		}
	}
	return selected, other
}

// rejectionReasons lists the reasons for which nodes were rejected, with their counts.
func (p PodScores) rejectionReasons() string {
	var reasons []string
	for _, r := range p.Rejections() {
		reasons = append(reasons, fmt.Sprintf("%s on %d of %d", r.Reason, len(r.Nodes), len(p.Nodes)))
	}
	if len(reasons) == 0 {
		return "there are no nodes."
	}
	return strings.Join(reasons, ", ") + "."
}

// difference lists the plugins that score two nodes differently, the largest weighted
// difference first.
func difference(selected, other *NodeScores) string {
	gain := func(name string) int64 {
		a, b := selected.Plugins[name], other.Plugins[name]
		return a.Score*a.Weight - b.Score*b.Weight
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(selected.Plugins)), func(name string) bool { return gain(name) == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(abs(gain(b)), abs(gain(a))) })
	for i, name := range names {
		a, b := selected.Plugins[name], other.Plugins[name]
		names[i] = fmt.Sprintf("%s %+d (%d against %d)", name, gain(name), a.Raw, b.Raw)
	}
	return strings.Join(names, ", ")
}

func abs(n int64) int64 { return max(n, -n) }
