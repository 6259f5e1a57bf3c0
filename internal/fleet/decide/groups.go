package decide

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

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
	Name string
	// Clusters are the selected clusters. The score is the total in the next decision: it includes the contribution of prioritizer
	// Steady, so that the next decision does not write the same clusters again.
	Clusters []clusterv1beta1.ClusterDecision
}

// groupLimit returns the maximum size of a group for a number of decisions, at least 1. A percentage is rounded up.
func groupLimit(size intstr.IntOrString, decisions int) int {
	limit, err := intstr.GetScaledValueFromIntOrPercent(&size, decisions, true)
	if err != nil || limit < 1 {
		limit = decisions
	}
	return max(limit, 1)
}

// groupsOf divides the decisions: each is in the first named group that matches it.
// The decisions that match none are in a group without a name, which is the last.
// Groups that exceed the size are split, in their order; only the last part may be smaller.
// Empty groups are left out; without decisions there is one empty group.
func (r *Request) groupsOf(d *Decision) (groups []Group) {
	rest := d.Chosen
	if r.SortByScore {
		rest = slices.Clone(rest)
		slices.SortFunc(rest, func(a, b int32) int {
			return cmp.Or(cmp.Compare(d.Clusters[b].Total, d.Clusters[a].Total), cmp.Compare(a, b))
		})
	}
	size := groupLimit(r.GroupSize, len(rest))
	decisions := make([]clusterv1beta1.ClusterDecision, 0, len(rest)) // of all groups
	split := func(name string, clusters []int32) {
		for part := range slices.Chunk(clusters, size) {
			first := len(decisions)
			for _, i := range part {
				score := r.nextTotal(&d.Clusters[i])
				decisions = append(decisions, clusterv1beta1.ClusterDecision{ClusterName: r.Fleet[i].Name, Score: score})
			}
			groups = append(groups, Group{name, decisions[first:len(decisions):len(decisions)]})
		}
	}
	for g := range r.Groups {
		var in, out []int32
		for _, i := range rest {
			if r.Groups[g].Matches(r.Fleet[i]) {
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
