package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// MaxDecisions is how many decisions one PlacementDecision holds.
const MaxDecisions = 100

// Slice is a PlacementDecision: a part of the decisions of one group.
type Slice struct {
	// Name of the object.
	Name string
	// Group it is of, and the group's index.
	Group string
	Index int
	// Decisions in it, in the order in which they are written.
	Decisions []clusterv1beta1.ClusterDecision
}

// SliceOf reads a PlacementDecision.
func SliceOf(object *clusterv1beta1.PlacementDecision) Slice {
	index, err := strconv.Atoi(object.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil {
		index = -1 // of no group: what is in it is laid out anew
	}
	return Slice{
		Name: object.Name, Group: object.Labels[clusterv1beta1.DecisionGroupNameLabel], Index: index,
		Decisions: object.Status.Decisions,
	}
}

// Labels returns those that the object of a placement's slice has.
func (s *Slice) Labels(placement string) map[string]string {
	return map[string]string{
		clusterv1beta1.PlacementLabel:          placement,
		clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(s.Index),
		clusterv1beta1.DecisionGroupNameLabel:  s.Group,
	}
}

// Layout returns the slices that hold groups, given those that there are, so that
// few of them change: a decision stays in the slice it is in, if that is of its
// group and has room, and slices keep their names. Names of new ones are the
// placement's with the lowest free number. Every group has at least one slice.
// They are in the order of the groups.
func Layout(placement string, there []Slice, groups []Group) []Slice {
	taken := map[string]bool{}
	for _, s := range there {
		taken[s.Name] = true
	}
	var out []Slice
	used := map[string]bool{}
	for index, group := range groups {
		var mine []Slice
		for _, s := range there {
			if s.Index == index && s.Group == group.Name && !used[s.Name] {
				mine = append(mine, s)
			}
		}
		for _, s := range lay(mine, group.Clusters) {
			if s.Name == "" {
				s.Name = freeName(placement, taken)
				taken[s.Name] = true
			}
			used[s.Name] = true
			s.Group, s.Index = group.Name, index
			out = append(out, s)
		}
	}
	return out
}

// lay spreads the clusters of one group over its slices.
func lay(mine []Slice, clusters []Choice) []Slice {
	// By their numbers, so that the last ones become empty first.
	slices.SortFunc(mine, func(a, b Slice) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	needed := max(1, (len(clusters)+MaxDecisions-1)/MaxDecisions)
	mine = mine[:min(len(mine), needed)]
	home := map[string]int{}
	for i, s := range mine {
		for _, decision := range s.Decisions {
			home[decision.ClusterName] = i
		}
	}
	filled := make([][]int, needed) // positions in clusters, ascending
	var homeless []int
	for position, c := range clusters {
		if i, ok := home[c.Name]; ok && len(filled[i]) < MaxDecisions {
			filled[i] = append(filled[i], position)
		} else {
			homeless = append(homeless, position)
		}
	}
	for i := range filled {
		n := min(len(homeless), MaxDecisions-len(filled[i]))
		filled[i] = append(filled[i], homeless[:n]...)
		homeless = homeless[n:]
		slices.Sort(filled[i]) // in the order of the group
	}
	out := make([]Slice, needed)
	copy(out, mine)
	for i := range out {
		out[i].Decisions = make([]clusterv1beta1.ClusterDecision, 0, len(filled[i]))
		for _, position := range filled[i] {
			out[i].Decisions = append(out[i].Decisions, clusterv1beta1.ClusterDecision{ClusterName: clusters[position].Name, Score: clusters[position].Score})
		}
	}
	return out
}

// freeName returns the placement's name with the lowest number that is free.
func freeName(placement string, taken map[string]bool) string {
	for i := 1; ; i++ {
		if name := fmt.Sprintf("%s-decision-%d", placement, i); !taken[name] {
			return name
		}
	}
}

// Step is a change of one object: Slice is what it is to be, or, if Delete, no
// more.
type Step struct {
	Slice  Slice
	Delete bool
}

// Steps returns the changes that lead from the slices there are to those wanted,
// in an order in which no cluster that stays is missing in between: what adds
// comes first, what takes away last. A slice that both gains and loses clusters
// to others is written twice. Scores alone are no reason to write if sameScores.
func Steps(there, wanted []Slice, sameScores bool) (steps []Step) {
	before, from := index(there)
	after, to := index(wanted)
	var later []Step
	for _, s := range wanted {
		is, exists := before[s.Name]
		if exists && is.Group == s.Group && is.Index == s.Index && equal(is.Decisions, s.Decisions, sameScores) {
			continue
		}
		gains := !exists || slices.ContainsFunc(s.Decisions, func(d clusterv1beta1.ClusterDecision) bool { return from[d.ClusterName] != s.Name })
		// What this one loses to a slice that does not have it yet must stay for now.
		var leaving []clusterv1beta1.ClusterDecision
		for _, d := range is.Decisions {
			if at, stays := to[d.ClusterName]; stays && at != s.Name {
				leaving = append(leaving, d)
			}
		}
		switch {
		case len(leaving) == 0:
			steps = append(steps, Step{Slice: s})
		case gains:
			first := s
			first.Decisions = append(slices.Clone(s.Decisions), leaving...)
			steps, later = append(steps, Step{Slice: first}), append(later, Step{Slice: s})
		default:
			later = append(later, Step{Slice: s})
		}
	}
	steps = append(steps, later...)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, stays := after[name]; !stays {
			steps = append(steps, Step{Slice: before[name], Delete: true})
		}
	}
	return steps
}

// index returns slices by their names, and in which each cluster is.
func index(all []Slice) (byName map[string]Slice, of map[string]string) {
	byName, of = make(map[string]Slice, len(all)), map[string]string{}
	for _, s := range all {
		byName[s.Name] = s
		for _, d := range s.Decisions {
			of[d.ClusterName] = s.Name
		}
	}
	return byName, of
}

// equal reports whether two lists of decisions are the same.
func equal(a, b []clusterv1beta1.ClusterDecision, sameScores bool) bool {
	return slices.EqualFunc(a, b, func(a, b clusterv1beta1.ClusterDecision) bool {
		return a.ClusterName == b.ClusterName && (sameScores || a.Score == b.Score)
	})
}
