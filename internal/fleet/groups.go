package fleet

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// NamedGroup is a group of the decisions that its selector matches.
type NamedGroup struct {
	Name string
	Selector
}

// Group is a part of the decisions, in the order of the decisions.
type Group struct {
	// Name is the name of the NamedGroup, "" for decisions that match none.
	Name     string
	Clusters []Choice
}

// Choice is a selected cluster and its total score in the next decision: the total includes
// the contribution of prioritizer Steady, so that the next decision does not write the same
// clusters again.
type Choice struct {
	Name  string
	Score int64
}

// groupLimit returns the maximum size of a group for a number of decisions, at least 1. A percentage is rounded up.
func groupLimit(size intstr.IntOrString, decisions int) int {
	limit, err := intstr.GetScaledValueFromIntOrPercent(&size, decisions, true)
	if err != nil || limit < 1 {
		limit = decisions
	}
	return max(limit, 1)
}

// group divides the decisions: each is in the first named group that matches it.
// The decisions that match none are in a group without a name, which is the last.
// Groups that exceed the size are split, in their order; only the last part may be smaller.
// Empty groups are left out; without decisions there is one empty group.
func (r *Request) group(d *Decision, index *Index) (groups []Group) {
	rest := d.Chosen
	if r.SortByScore {
		rest = slices.Clone(rest)
		slices.SortFunc(rest, func(a, b int32) int {
			return cmp.Or(cmp.Compare(d.Clusters[b].Total, d.Clusters[a].Total), cmp.Compare(a, b))
		})
	}
	size := groupLimit(r.GroupSize, len(rest))
	choices := make([]Choice, 0, len(rest)) // of all groups
	split := func(name string, clusters []int32) {
		for part := range slices.Chunk(clusters, size) {
			first := len(choices)
			for _, i := range part {
				choices = append(choices, Choice{r.Fleet[i].Name, r.nextTotal(&d.Clusters[i])})
			}
			groups = append(groups, Group{name, choices[first:len(choices):len(choices)]})
		}
	}
	for g := range r.Groups {
		index.selectClusters(r.Fleet, &r.Groups[g].Selector)
		var in, out []int32
		for _, i := range rest {
			if index.mask[i] == 1 {
				in = append(in, i)
			} else {
				out = append(out, i)
			}
		}
		split(r.Groups[g].Name, in)
		rest = out
	}
	split("", rest)
	if len(groups) == 0 {
		return []Group{{}}
	}
	return groups
}

// nextTotal returns the total of a selected cluster in the next decision.
func (r *Request) nextTotal(c *ClusterResult) int64 {
	total := c.Total
	for p := range r.Prioritizers {
		if r.Prioritizers[p].Kind == v1beta1.Steady && !c.WasChosen {
			total += maxScore * int64(r.Prioritizers[p].Weight)
		}
	}
	return total
}
