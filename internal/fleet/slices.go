package fleet

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// maxDecisions is the maximum number of decisions in a PlacementDecision.
const maxDecisions = 100

// GroupIndex returns the index of the group of a PlacementDecision, -1 if it has none: Layout moves its decisions.
func GroupIndex(decision *clusterv1beta1.PlacementDecision) int {
	index, err := strconv.Atoi(decision.Labels[clusterv1beta1.DecisionGroupIndexLabel])
	if err != nil {
		return -1
	}
	return index
}

// Layout returns the PlacementDecisions for groups, in the order of the groups and at least one
// for each. It changes as few of the existing ones as possible: a decision remains
// in its PlacementDecision if that belongs to its group and is not full. A new one has the
// name of the placement with the number of its position, starting at 1, or with the
// lowest unused number. One whose number exceeds the number of PlacementDecisions is replaced
// by one with an unused lower number, so that the numbers are 1, 2 and so on after
// surplus ones have been deleted.
func Layout(placement string, existing []clusterv1beta1.PlacementDecision, groups []decide.Group) []clusterv1beta1.PlacementDecision {
	reserved := map[string]bool{}
	for i := range existing {
		reserved[existing[i].Name] = true
	}
	var out []clusterv1beta1.PlacementDecision
	used := map[string]bool{}
	for index, group := range groups {
		var ofGroup []clusterv1beta1.PlacementDecision
		for _, s := range existing {
			if GroupIndex(&s) == index && s.Labels[clusterv1beta1.DecisionGroupNameLabel] == group.Name && !used[s.Name] {
				ofGroup = append(ofGroup, s)
			}
		}
		for _, s := range assignSlices(ofGroup, group.Clusters) {
			used[s.Name] = true
			if s.Name == "" {
				s.Labels = map[string]string{
					clusterv1beta1.PlacementLabel:          placement,
					clusterv1beta1.DecisionGroupIndexLabel: strconv.Itoa(index),
					clusterv1beta1.DecisionGroupNameLabel:  group.Name,
				}
			}
			out = append(out, s)
		}
	}
	nameSlices(placement, out, reserved)
	return out
}

// nameSlices names new PlacementDecisions, and replaces the ones whose number is too high by new ones.
func nameSlices(placement string, wanted []clusterv1beta1.PlacementDecision, reserved map[string]bool) {
	for i := range wanted {
		if numberOf(placement, wanted[i].Name) > len(wanted) && unusedNumber(placement, i+1, reserved) <= len(wanted) {
			// A new one takes its decisions; then it is deleted.
			wanted[i].ObjectMeta = metav1.ObjectMeta{Labels: wanted[i].Labels}
		}
		if wanted[i].Name == "" {
			wanted[i].Name = sliceName(placement, unusedNumber(placement, i+1, reserved))
			reserved[wanted[i].Name] = true
		}
	}
}

// assignSlices distributes the clusters of a group over its existing PlacementDecisions and
// unnamed new ones.
func assignSlices(
	existing []clusterv1beta1.PlacementDecision, clusters []clusterv1beta1.ClusterDecision,
) []clusterv1beta1.PlacementDecision {
	// In the order of their numbers: the ones with the highest numbers are removed first.
	slices.SortFunc(existing, func(a, b clusterv1beta1.PlacementDecision) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	needed := max(1, (len(clusters)+maxDecisions-1)/maxDecisions)
	existing = existing[:min(len(existing), needed)]
	current := map[string]int{} // index in existing by cluster
	for i, s := range existing {
		for _, decision := range s.Status.Decisions {
			current[decision.ClusterName] = i
		}
	}
	assigned := make([][]int, needed) // positions in clusters, ascending, by index in out
	var unassigned []int
	for position, c := range clusters {
		if i, ok := current[c.ClusterName]; ok && len(assigned[i]) < maxDecisions {
			assigned[i] = append(assigned[i], position)
		} else {
			unassigned = append(unassigned, position)
		}
	}
	for i := range assigned {
		n := min(len(unassigned), maxDecisions-len(assigned[i]))
		assigned[i] = append(assigned[i], unassigned[:n]...)
		unassigned = unassigned[n:]
		slices.Sort(assigned[i]) // in the order of the group
	}
	out := make([]clusterv1beta1.PlacementDecision, needed)
	copy(out, existing)
	for i := range out {
		out[i].Status.Decisions = make([]clusterv1beta1.ClusterDecision, 0, len(assigned[i]))
		for _, position := range assigned[i] {
			out[i].Status.Decisions = append(out[i].Status.Decisions, clusters[position])
		}
	}
	return out
}

// sliceName returns the name of the PlacementDecision with a number.
func sliceName(placement string, number int) string {
	return placement + "-decision-" + strconv.Itoa(number)
}

// numberOf returns the number in the name of a PlacementDecision, 0 if it has another name.
func numberOf(placement, name string) int {
	text, found := strings.CutPrefix(name, placement+"-decision-")
	number, err := strconv.Atoi(text)
	if !found || err != nil || number < 1 || strconv.Itoa(number) != text {
		return 0
	}
	return number
}

// unusedNumber returns the preferred number if the name with this number is not
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

// Step is a write of one PlacementDecision from Before to After: its creation if Before is nil, and its deletion if After is nil.
type Step struct {
	Before, After *clusterv1beta1.PlacementDecision
}

// Name returns the name of the PlacementDecision.
func (s *Step) Name() string { return cmp.Or(s.After, s.Before).Name }

// Steps returns the writes that change the existing PlacementDecisions to the wanted ones, with the promises of the result.
// They are ordered such that no remaining cluster is missing from the decisions in between:
// additions are first, removals last. A PlacementDecision that gains clusters and loses clusters to
// other ones is written twice. If ignoreScores is set, changed scores are not written.
func (r *Result) Steps(existing, wanted []clusterv1beta1.PlacementDecision, ignoreScores bool) (steps []Step) {
	before, from := indexSlices(existing)
	after, to := indexSlices(wanted)
	var later []Step
	for i := range wanted {
		s := &wanted[i]
		r.setReplicas(s)
		old := before[s.Name]
		if old != nil && maps.Equal(old.Annotations, s.Annotations) &&
			sameDecisions(old.Status.Decisions, s.Status.Decisions, ignoreScores) {
			continue
		}
		gains := old == nil || slices.ContainsFunc(s.Status.Decisions,
			func(d clusterv1beta1.ClusterDecision) bool { return from[d.ClusterName] != s.Name })
		// Clusters that move to another PlacementDecision remain here until that one is written.
		var leaving []clusterv1beta1.ClusterDecision
		if old != nil {
			for _, d := range old.Status.Decisions {
				if at, stays := to[d.ClusterName]; stays && at != s.Name {
					leaving = append(leaving, d)
				}
			}
		}
		switch {
		case len(leaving) == 0:
			steps = append(steps, Step{old, s})
		case gains:
			first := s.DeepCopy()
			first.Status.Decisions = append(first.Status.Decisions, leaving...)
			r.setReplicas(first)
			steps, later = append(steps, Step{old, first}), append(later, Step{first, s})
		default:
			later = append(later, Step{old, s})
		}
	}
	steps = append(steps, later...)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == nil {
			steps = append(steps, Step{before[name], nil})
		}
	}
	return steps
}

// indexSlices returns PlacementDecisions by name, and the name of the PlacementDecision of each cluster.
func indexSlices(
	all []clusterv1beta1.PlacementDecision,
) (byName map[string]*clusterv1beta1.PlacementDecision, byCluster map[string]string) {
	byName, byCluster = make(map[string]*clusterv1beta1.PlacementDecision, len(all)), map[string]string{}
	for i := range all {
		byName[all[i].Name] = &all[i]
		for _, d := range all[i].Status.Decisions {
			byCluster[d.ClusterName] = all[i].Name
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

// setReplicas sets annotation v1beta1.AnnotationReplicas of a PlacementDecision to the promises in its clusters, and removes it if there
// are none.
func (r *Result) setReplicas(decision *clusterv1beta1.PlacementDecision) {
	promises := map[string]podPromise{}
	for _, d := range decision.Status.Decisions {
		if promise, known := r.Promises[d.ClusterName]; known {
			promises[d.ClusterName] = promise
		}
	}
	decision.Annotations = maps.Clone(decision.Annotations) // an existing PlacementDecision has the same map
	if len(promises) == 0 {
		delete(decision.Annotations, v1beta1.AnnotationReplicas)
		return
	}
	text, _ := json.Marshal(promises) // of strings and numbers
	metav1.SetMetaDataAnnotation(&decision.ObjectMeta, v1beta1.AnnotationReplicas, string(text))
}
