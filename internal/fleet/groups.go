package fleet

import (
	"cmp"
	"slices"
)

// Size is the maximum size of a group. The zero value is no maximum.
type Size struct {
	// Number is a number of clusters, if it is at least 1.
	Number int64
	// Percent is a percentage of all decisions, rounded up, if it is in [1, 99] and
	// Number is less than 1.
	Percent int64
}

// limit returns the maximum size of a group for a number of decisions, at least 1.
func (s Size) limit(decisions int) int {
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

// NamedGroup is a group of the decisions that its selector matches.
type NamedGroup struct {
	Name string
	Selector
}

// RankedGroup is a part of the decisions.
type RankedGroup struct {
	// Name is the name of the NamedGroup, "" for decisions that match none.
	Name string
	// Clusters are indexes in the fleet, by name, or by score if SortByScore is set.
	// It may share memory with other lists of the decision.
	Clusters []int32
}

// group divides the decisions: each is in the first named group that matches it.
// The decisions that match none are in a group without a name, which is the last.
// Groups that exceed the size are split, in their order. Empty groups are left
// out; without decisions there is one empty group.
func (r *Request) group(d *Decision) []RankedGroup {
	rest := d.Chosen
	if r.SortByScore {
		rest = slices.Clone(rest)
		slices.SortFunc(rest, func(a, b int32) int {
			return cmp.Or(cmp.Compare(d.Clusters[b].Total, d.Clusters[a].Total), cmp.Compare(a, b))
		})
	}
	size := r.GroupSize.limit(len(rest))
	var groups []RankedGroup
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
		groups = []RankedGroup{{}}
	}
	return groups
}

// split appends groups of size clusters; only the last group may be smaller.
func split(groups []RankedGroup, name string, clusters []int32, size int) []RankedGroup {
	for part := range slices.Chunk(clusters, size) {
		groups = append(groups, RankedGroup{name, part})
	}
	return groups
}
