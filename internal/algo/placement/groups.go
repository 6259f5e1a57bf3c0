package placement

import (
	"cmp"
	"slices"
)

// Size bounds a group of decisions. The zero value is no bound.
type Size struct {
	// Number of clusters, if it is at least 1.
	Number int64
	// Percent of all decisions, rounded up, if it is in [1, 99] and there is no
	// Number.
	Percent int64
}

// of returns how many clusters a group may have, at least 1, where there are
// this many decisions.
func (s Size) of(decisions int) int {
	total := max(int64(decisions), 1)
	switch {
	case s.Number > 0:
		return int(min(s.Number, total))
	case s.Percent > 0 && s.Percent < 100:
		// In integers: 28 % of 25 is 7, not 7.000000000000001 rounded up.
		return int((total*s.Percent + 99) / 100)
	}
	return int(total)
}

// NamedGroup collects the decisions that its selector matches.
type NamedGroup struct {
	Name string
	Selector
}

// Group is a part of the decisions. Its index is its place in the list.
type Group struct {
	// Name of the NamedGroup, "" for decisions that none matched.
	Name string
	// Clusters are indexes in the fleet, by name, or by score if that was asked
	// for. It may share memory with other lists of the decision.
	Clusters []int32
}

// group divides the decisions: each goes to the first named group that matches
// it, or else to the rest, which has no name and comes last. Groups over the
// size are split, in their order. Named groups that nothing matched do not
// appear; without any decision there is one empty group.
func (r *Request) group(d *Decision) []Group {
	rest := d.Chosen
	if r.SortByScore {
		rest = slices.Clone(rest)
		slices.SortFunc(rest, func(a, b int32) int {
			return cmp.Or(cmp.Compare(d.Clusters[b].Total, d.Clusters[a].Total), cmp.Compare(a, b))
		})
	}
	size := r.GroupSize.of(len(rest))
	var groups []Group
	for g := range r.Groups {
		named := &r.Groups[g]
		var in, out []int32
		for _, i := range rest {
			if named.matches(r.Fleet[i]) {
				in = append(in, i)
			} else {
				out = append(out, i)
			}
		}
		groups, rest = split(groups, named.Name, in, size), out
	}
	groups = split(groups, "", rest, size)
	if len(groups) == 0 {
		groups = []Group{{}}
	}
	return groups
}

// split appends groups of at most size clusters, all full but the last.
func split(groups []Group, name string, clusters []int32, size int) []Group {
	for part := range slices.Chunk(clusters, size) {
		groups = append(groups, Group{name, part})
	}
	return groups
}
