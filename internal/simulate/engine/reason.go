package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Reason says in a sentence why the pod went to the node chosen (empty for
// none), going by these scores.
func (p PodScores) Reason(chosen string) string {
	var winner, next *NodeScores
	for i := range p.Nodes {
		node := &p.Nodes[i]
		switch {
		case !node.Feasible:
		case node.Name == chosen:
			winner = node
		case next == nil || node.Total > next.Total:
			next = node
		}
	}
	switch {
	case winner == nil && next == nil:
		return "It fits no node: " + p.whyNone()
	case winner == nil:
		return fmt.Sprintf("It is not bound, though %s would take it.", next.Name)
	case next == nil:
		return chosen + " is the only node that it fits."
	case winner.Total == next.Total:
		return fmt.Sprintf("%s and %s score %d alike; one of them is taken at random.", chosen, next.Name, winner.Total)
	}
	reason := fmt.Sprintf("%s scores %d, %s scores %d: %s.", chosen, winner.Total, next.Name, next.Total, difference(winner, next))
	if winner.Total < next.Total {
		reason += " Pods that came at the same time have changed the scores since."
	}
	return reason
}

// whyNone counts the reasons for which nodes were left out.
func (p PodScores) whyNone() string {
	counts := map[string]int{}
	for _, node := range p.Nodes {
		counts[node.Reason]++
	}
	reasons := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, reason := range reasons {
		reasons[i] = fmt.Sprintf("%s on %d of %d", reason, counts[reason], len(p.Nodes))
	}
	if len(reasons) == 0 {
		return "there are no nodes."
	}
	return strings.Join(reasons, ", ") + "."
}

// difference lists the plugins that tell two nodes apart, the one that does so
// most first.
func difference(winner, next *NodeScores) string {
	gain := func(name string) int64 {
		a, b := winner.Plugins[name], next.Plugins[name]
		return a.Score*a.Weight - b.Score*b.Weight
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(winner.Plugins)), func(name string) bool { return gain(name) == 0 })
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(abs(gain(b)), abs(gain(a))) })
	for i, name := range names {
		a, b := winner.Plugins[name], next.Plugins[name]
		names[i] = fmt.Sprintf("%s %+d (%d against %d)", name, gain(name), a.Raw, b.Raw)
	}
	return strings.Join(names, ", ")
}

func abs(n int64) int64 { return max(n, -n) }
