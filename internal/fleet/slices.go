package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// MaxDecisions is the maximum number of decisions in a PlacementDecision.
const MaxDecisions = 100

// Slice is a PlacementDecision: it has decisions of one group.
type Slice struct {
	// Name is the name of the object.
	Name string
	// Group is the name of the group, and Index its index.
	Group string
	Index int
	// Decisions are in the order of the group.
	Decisions []clusterv1beta1.ClusterDecision
	// Replicas is the value of annotation v1beta1.AnnotationReplicas, "" for none.
	Replicas string
}

// SliceOf converts a PlacementDecision.
func SliceOf(object *clusterv1beta1.PlacementDecision) Slice {
	index, err := strconv.Atoi(object.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil {
		index = -1 // no group: Layout moves its decisions
	}
	return Slice{
		Name: object.Name, Group: object.Labels[clusterv1beta1.DecisionGroupNameLabel], Index: index,
		Decisions: object.Status.Decisions, Replicas: object.Annotations[v1beta1.AnnotationReplicas],
	}
}

// Labels returns the labels of the PlacementDecision.
func (s *Slice) Labels(placement string) map[string]string {
	return map[string]string{
		clusterv1beta1.PlacementLabel:          placement,
		clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(s.Index),
		clusterv1beta1.DecisionGroupNameLabel:  s.Group,
	}
}

// Layout returns the slices for groups, in the order of the groups and at least one
// for each. It changes as few of the existing slices as possible: a decision remains
// in its slice if the slice belongs to its group and is not full. A new slice has the
// name of the placement with the number of its position, starting at 1, or with the
// lowest unused number. A slice whose number exceeds the number of slices is replaced
// by one with an unused lower number, so that the numbers are 1, 2 and so on after
// surplus slices have been deleted.
func Layout(placement string, existing []Slice, groups []Group) []Slice {
	reserved := map[string]bool{}
	for _, s := range existing {
		reserved[s.Name] = true
	}
	var out []Slice
	used := map[string]bool{}
	for index, group := range groups {
		var ofGroup []Slice
		for _, s := range existing {
			if s.Index == index && s.Group == group.Name && !used[s.Name] {
				ofGroup = append(ofGroup, s)
			}
		}
		for _, s := range assignSlices(ofGroup, group.Clusters) {
			used[s.Name] = true
			s.Group, s.Index = group.Name, index
			out = append(out, s)
		}
	}
	nameSlices(placement, out, reserved)
	return out
}

// nameSlices names new slices, and renames those whose number is too high.
func nameSlices(placement string, wanted []Slice, reserved map[string]bool) {
	for i := range wanted {
		if n := numberOf(placement, wanted[i].Name); n > len(wanted) {
			if lower := unusedNumber(placement, i+1, reserved); lower <= len(wanted) {
				wanted[i].Name = "" // a new slice takes its decisions; then it is deleted
			}
		}
		if wanted[i].Name == "" {
			wanted[i].Name = sliceName(placement, unusedNumber(placement, i+1, reserved))
			reserved[wanted[i].Name] = true
		}
	}
}

// assignSlices distributes the clusters of a group over its existing slices and
// unnamed new slices.
func assignSlices(existing []Slice, clusters []clusterv1beta1.ClusterDecision) []Slice {
	// In the order of their numbers: the slices with the highest numbers are removed first.
	slices.SortFunc(existing, func(a, b Slice) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	needed := max(1, (len(clusters)+MaxDecisions-1)/MaxDecisions)
	existing = existing[:min(len(existing), needed)]
	current := map[string]int{} // slice by cluster
	for i, s := range existing {
		for _, decision := range s.Decisions {
			current[decision.ClusterName] = i
		}
	}
	assigned := make([][]int, needed) // positions in clusters by slice, ascending
	var unassigned []int
	for position, c := range clusters {
		if i, ok := current[c.ClusterName]; ok && len(assigned[i]) < MaxDecisions {
			assigned[i] = append(assigned[i], position)
		} else {
			unassigned = append(unassigned, position)
		}
	}
	for i := range assigned {
		n := min(len(unassigned), MaxDecisions-len(assigned[i]))
		assigned[i] = append(assigned[i], unassigned[:n]...)
		unassigned = unassigned[n:]
		slices.Sort(assigned[i]) // in the order of the group
	}
	out := make([]Slice, needed)
	copy(out, existing)
	for i := range out {
		out[i].Decisions = make([]clusterv1beta1.ClusterDecision, 0, len(assigned[i]))
		for _, position := range assigned[i] {
			out[i].Decisions = append(out[i].Decisions, clusters[position])
		}
	}
	return out
}

// sliceName returns the name of the slice with a number.
func sliceName(placement string, number int) string {
	return placement + "-decision-" + strconv.Itoa(number)
}

// numberOf returns the number in the name of a slice, 0 if it has another name.
func numberOf(placement, name string) int {
	text, found := strings.CutPrefix(name, placement+"-decision-")
	number, err := strconv.Atoi(text)
	if !found || err != nil || number < 1 || strconv.Itoa(number) != text {
		return 0
	}
	return number
}

// unusedNumber returns the preferred number if the slice with this number is not
// reserved, else the lowest one that is not.
func unusedNumber(placement string, preferred int, reserved map[string]bool) int {
	if !reserved[sliceName(placement, preferred)] {
		return preferred
	}
	for i := 1; ; i++ {
		if !reserved[sliceName(placement, i)] {
			return i
		}
	}
}

// Step is a write of one PlacementDecision: create or update it to equal Slice, or
// delete it.
type Step struct {
	Slice  Slice
	Delete bool
}

// Steps returns the writes that change the existing slices to the wanted ones. They
// are ordered such that no remaining cluster is missing from the decisions in between:
// additions are first, removals last. A slice that gains clusters and loses clusters to
// other slices is written twice. If ignoreScores is set, changed scores are not written.
func Steps(existing, wanted []Slice, ignoreScores bool) (steps []Step) {
	before, from := indexSlices(existing)
	after, to := indexSlices(wanted)
	var later []Step
	for _, s := range wanted {
		old, exists := before[s.Name]
		if exists && old.Group == s.Group && old.Index == s.Index && old.Replicas == s.Replicas &&
			sameDecisions(old.Decisions, s.Decisions, ignoreScores) {
			continue
		}
		gains := !exists || slices.ContainsFunc(s.Decisions,
			func(d clusterv1beta1.ClusterDecision) bool { return from[d.ClusterName] != s.Name })
		// Clusters that move to another slice remain here until that slice is written.
		var leaving []clusterv1beta1.ClusterDecision
		for _, d := range old.Decisions {
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

// indexSlices returns slices by name, and the name of the slice of each cluster.
func indexSlices(all []Slice) (byName map[string]Slice, byCluster map[string]string) {
	byName, byCluster = make(map[string]Slice, len(all)), map[string]string{}
	for _, s := range all {
		byName[s.Name] = s
		for _, d := range s.Decisions {
			byCluster[d.ClusterName] = s.Name
		}
	}
	return byName, byCluster
}

// sameDecisions reports whether two lists of decisions are equal.
func sameDecisions(a, b []clusterv1beta1.ClusterDecision, ignoreScores bool) bool {
	return slices.EqualFunc(a, b, func(a, b clusterv1beta1.ClusterDecision) bool {
		return a.ClusterName == b.ClusterName && (ignoreScores || a.Score == b.Score)
	})
}
