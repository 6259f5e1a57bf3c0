package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// sliceOf returns a PlacementDecision such as "p-decision-1 0 canary: a b".
func sliceOf(t testing.TB, text string) (s clusterv1beta1.PlacementDecision) {
	t.Helper()
	head, clusters, _ := strings.Cut(text, ":")
	var index int
	var group string
	if n, err := fmt.Sscan(head, &s.Name, &index, &group); n < 2 {
		t.Fatal(text, err)
	}
	s.Labels = map[string]string{
		clusterv1beta1.PlacementLabel: "p", clusterv1beta1.DecisionGroupIndexLabel: fmt.Sprint(index),
		clusterv1beta1.DecisionGroupNameLabel: group,
	}
	for name := range strings.FieldsSeq(clusters) {
		s.Status.Decisions = append(s.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: name})
	}
	return s
}

func slicesFrom(t testing.TB, texts ...string) (out []clusterv1beta1.PlacementDecision) {
	for _, text := range texts {
		out = append(out, sliceOf(t, text))
	}
	return out
}

// show is the inverse of sliceOf.
func show(s *clusterv1beta1.PlacementDecision) string {
	names := make([]string, 0, len(s.Status.Decisions))
	for _, d := range s.Status.Decisions {
		names = append(names, d.ClusterName)
	}
	head := fmt.Sprintf("%s %d %s", s.Name, GroupIndex(s), s.Labels[clusterv1beta1.DecisionGroupNameLabel])
	return strings.TrimSpace(head) + ": " + strings.Join(names, " ")
}

func groupOf(name string, clusters ...string) decide.Group {
	g := decide.Group{Name: name}
	for _, c := range clusters {
		g.Clusters = append(g.Clusters, clusterv1beta1.ClusterDecision{ClusterName: c})
	}
	return g
}

// numbered returns the cluster names c000, c001 and so on, from from up to but not including to.
func numbered(from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	return names
}

func TestLayout(t *testing.T) {
	for name, tc := range map[string]struct {
		existing []string
		groups   []decide.Group
		want     []string
	}{
		"first decision": {nil, []decide.Group{groupOf("", "a", "b")}, []string{"p-decision-1 0: a b"}},
		"no clusters":    {nil, []decide.Group{groupOf("")}, []string{"p-decision-1 0: "}},
		"two groups": {
			nil, []decide.Group{groupOf("canary", "b"), groupOf("", "a")}, []string{"p-decision-1 0 canary: b", "p-decision-2 1: a"},
		},
		"lowest free number": {
			[]string{"p-decision-2 0: a", "p-decision-1 5: z"},
			[]decide.Group{groupOf("", "a"), groupOf("", "b")},
			[]string{"p-decision-2 0: a", "p-decision-3 1: b"},
		},
		// A PlacementDecision with a missing or invalid index label belongs to no group.
		"no index": {[]string{"p-decision-1 -1: a"}, []decide.Group{groupOf("", "a")}, []string{"p-decision-2 0: a"}},
		// A killed controller created a PlacementDecision without writing its status.
		"empty slice": {[]string{"p-decision-1 0: "}, []decide.Group{groupOf("", "a")}, []string{"p-decision-1 0: a"}},
		// The number of a new slice is its position, even if a lower number is unused.
		"number of the position": {
			[]string{"x 0: a"},
			[]decide.Group{groupOf("", "a"), groupOf("one", "b"), groupOf("", "c")},
			[]string{"x 0: a", "p-decision-2 1 one: b", "p-decision-3 2: c"},
		},
		"numbers of other names": {
			[]string{"p-decision-07 0: a", "p-decision- 1: b", "q-decision-9 2: c"},
			[]decide.Group{groupOf("", "a"), groupOf("", "b"), groupOf("", "c")},
			[]string{"p-decision-07 0: a", "p-decision- 1: b", "q-decision-9 2: c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range Layout("p", slicesFrom(t, tc.existing...), tc.groups) {
				got = append(got, show(&s))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Steps are listed in order; "-" marks a deletion.
func TestSteps(t *testing.T) {
	for name, tc := range map[string]struct{ existing, wanted, want []string }{
		"no change": {[]string{"x 0: a", "y 1: b"}, []string{"x 0: a", "y 1: b"}, nil},
		// b is added to y before it is removed from x.
		"moved": {[]string{"x 0: a b", "y 1: c"}, []string{"x 0: a", "y 1: b c"}, []string{"y 1: b c", "x 0: a"}},
		// a and b are exchanged: in between both slices have both.
		"exchanged": {
			[]string{"x 0: a", "y 1: b"}, []string{"x 0: b", "y 1: a"}, []string{"x 0: b a", "y 1: a b", "x 0: b", "y 1: a"},
		},
		"moved to a new slice": {[]string{"x 0: a b"}, []string{"x 0: a", "y 1: b"}, []string{"y 1: b", "x 0: a"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, step := range new(Result).Steps(slicesFrom(t, tc.existing...), slicesFrom(t, tc.wanted...), false) {
				if step.After == nil {
					got = append(got, "-"+show(step.Before))
				} else {
					got = append(got, show(step.After))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStepsIgnoreScores(t *testing.T) {
	existing, wanted := slicesFrom(t, "x 0: a b"), slicesFrom(t, "x 0: a b")
	wanted[0].Status.Decisions[1].Score = 5
	if steps := new(Result).Steps(existing, wanted, true); len(steps) != 0 {
		t.Errorf("%v", steps)
	}
	if steps := new(Result).Steps(existing, wanted, false); len(steps) != 1 {
		t.Errorf("%v", steps)
	}
}

// Adding a cluster that sorts first to 1,000 clusters in 10 full slices creates one slice
// and changes no other. Removing the cluster that sorts second of 1,001 in 11 slices leaves
// 1,000, which need 10 slices: one slice is changed and one is deleted.
func TestOneClusterOfAThousand(t *testing.T) {
	existing := Layout("p", nil, []decide.Group{groupOf("", numbered(0, 1000)...)})
	if len(existing) != 10 {
		t.Fatalf("%d slices, want 10", len(existing))
	}
	more := Layout("p", existing, []decide.Group{groupOf("", append([]string{"a"}, numbered(0, 1000)...)...)})
	steps := new(Result).Steps(existing, more, false)
	if len(steps) != 1 || show(steps[0].After) != "p-decision-11 0: a" {
		t.Errorf("%d steps, first %s", len(steps), show(steps[0].After))
	}
	fewer := Layout("p", more, []decide.Group{groupOf("", append([]string{"a"}, numbered(1, 1000)...)...)})
	steps = new(Result).Steps(more, fewer, false)
	if len(steps) != 2 || steps[0].Name() != "p-decision-1" || len(steps[0].After.Status.Decisions) != 100 || steps[1].After != nil ||
		steps[1].Name() != "p-decision-11" {
		t.Errorf("%d steps: %+v", len(steps), steps)
	}
	// Replacing one cluster by another writes one slice.
	swapped := Layout("p", existing, []decide.Group{groupOf("", append([]string{"a"}, numbered(1, 1000)...)...)})
	if steps := new(Result).Steps(existing, swapped, false); len(steps) != 1 {
		t.Errorf("%d steps, want 1", len(steps))
	}
}

// drawGroups returns random groups of some of 500 clusters.
func drawGroups(t *rapid.T) (groups []decide.Group) {
	names := rapid.Permutation(numbered(0, 500)).Draw(t, "clusters")
	for range rapid.IntRange(1, 3).Draw(t, "groups") {
		n := rapid.SampledFrom([]int{0, 1, 3, 99, 100, 101, 160}).Draw(t, "size")
		in := slices.Sorted(slices.Values(names[:n]))
		names = names[n:]
		groups = append(groups, groupOf(rapid.SampledFrom([]string{"", "canary"}).Draw(t, "name"), in...))
	}
	return groups
}

// members returns the number of slices that contain each cluster.
func members(existing map[string]clusterv1beta1.PlacementDecision) map[string]int {
	out := map[string]int{}
	for _, s := range existing {
		for _, d := range s.Status.Decisions {
			out[d.ClusterName]++
		}
	}
	return out
}

// While decisions change, also if the controller is killed in between, a cluster that is in
// the old and in the new decisions is always in at least one slice, and after the last step
// the slices are those wanted.
func TestNoClusterVanishes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		existing := map[string]clusterv1beta1.PlacementDecision{}
		list := func() (out []clusterv1beta1.PlacementDecision) {
			for _, s := range existing {
				out = append(out, s)
			}
			// The order of a list from the cache is undefined.
			slices.SortFunc(out, func(a, b clusterv1beta1.PlacementDecision) int { return strings.Compare(b.Name, a.Name) })
			return out
		}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			groups := drawGroups(t)
			wanted := Layout("p", list(), groups)
			checkLayout(t, wanted, groups)
			steps := new(Result).Steps(list(), wanted, false)
			checkFewest(t, existing, wanted, steps)
			before := members(existing)
			end := len(steps)
			if rapid.Bool().Draw(t, "killed") {
				end = rapid.IntRange(0, len(steps)).Draw(t, "after")
			}
			goal := map[string]clusterv1beta1.PlacementDecision{}
			for _, s := range wanted {
				goal[s.Name] = s
			}
			after := members(goal)
			for _, step := range steps[:end] {
				if step.After == nil {
					delete(existing, step.Name())
				} else {
					existing[step.Name()] = *step.After
				}
				now := members(existing)
				for name := range before {
					if after[name] > 0 && now[name] == 0 {
						t.Fatalf("cluster %s is in no slice after step %s", name, step.Name())
					}
				}
			}
			if end == len(steps) {
				if diff := cmp.Diff(goal, existing); diff != "" {
					t.Fatal(diff)
				}
				checkNumbers(t, list, existing, groups)
			}
		}
	})
}

// checkNumbers fails unless the next layout of the same groups has the numbers from 1 on,
// and a further layout changes nothing.
func checkNumbers(
	t *rapid.T, list func() []clusterv1beta1.PlacementDecision, existing map[string]clusterv1beta1.PlacementDecision, groups []decide.Group,
) {
	clear := Layout("p", list(), groups)
	for name := range existing {
		delete(existing, name)
	}
	for _, s := range clear {
		existing[s.Name] = s
		if n := numberOf("p", s.Name); n < 1 || n > len(clear) {
			t.Fatalf("%s of %d slices", s.Name, len(clear))
		}
	}
	if steps := new(Result).Steps(list(), Layout("p", list(), groups), false); len(steps) > 0 {
		t.Fatalf("the next layout changes %s", steps[0].Name())
	}
}

// checkLayout fails unless each decision is in exactly one slice of its group, in the order
// of the group, no slice has more than maxDecisions, and names are unique.
func checkLayout(t *rapid.T, wanted []clusterv1beta1.PlacementDecision, groups []decide.Group) {
	names := map[string]bool{}
	count := make([]int, len(groups))
	seen := map[string]bool{}
	for _, s := range wanted {
		index := GroupIndex(&s)
		if names[s.Name] || index < 0 || index >= len(groups) || len(s.Status.Decisions) > maxDecisions ||
			s.Labels[clusterv1beta1.DecisionGroupNameLabel] != groups[index].Name || s.Labels[clusterv1beta1.PlacementLabel] != "p" {
			t.Fatalf("invalid PlacementDecision with %d decisions: %s", len(s.Status.Decisions), show(&s))
		}
		names[s.Name] = true
		count[index]++
		at := -1
		for _, d := range s.Status.Decisions {
			next := slices.IndexFunc(groups[index].Clusters,
				func(c clusterv1beta1.ClusterDecision) bool { return c.ClusterName == d.ClusterName })
			if next <= at || seen[d.ClusterName] {
				t.Fatalf("cluster %s is out of order, duplicate or not in the group", d.ClusterName)
			}
			at, seen[d.ClusterName] = next, true
		}
	}
	total := 0
	for i, g := range groups {
		total += len(g.Clusters)
		if need := max(1, (len(g.Clusters)+maxDecisions-1)/maxDecisions); count[i] != need {
			t.Fatalf("group %d has %d slices, want %d", i, count[i], need)
		}
	}
	if len(seen) != total {
		t.Fatalf("%d decisions in slices, want %d", len(seen), total)
	}
}

// checkFewest fails if a step writes a slice that is already as wanted, or more than once; a
// slice that loses a cluster to another slice may be written twice.
func checkFewest(
	t *rapid.T, existing map[string]clusterv1beta1.PlacementDecision, wanted []clusterv1beta1.PlacementDecision, steps []Step,
) {
	home := map[string]string{}
	goal := map[string]clusterv1beta1.PlacementDecision{}
	for _, s := range wanted {
		goal[s.Name] = s
		for _, d := range s.Status.Decisions {
			home[d.ClusterName] = s.Name
		}
	}
	writes := map[string]int{}
	for _, step := range steps {
		writes[step.Name()]++
	}
	for name, n := range writes {
		old, exists := existing[name]
		to, stays := goal[name]
		most := 1
		loses := slices.ContainsFunc(old.Status.Decisions, func(d clusterv1beta1.ClusterDecision) bool {
			to, stays := home[d.ClusterName]
			return stays && to != name
		})
		if exists && stays && loses {
			most = 2
		}
		if n > most || exists && stays && cmp.Equal(old, to) {
			t.Fatalf("%s is written %d times, want at most %d", name, n, most)
		}
	}
}

func TestGroupIndex(t *testing.T) {
	for index, want := range map[string]int{"0": 0, "12": 12, "": -1, "one": -1} {
		object := &clusterv1beta1.PlacementDecision{}
		object.Labels = map[string]string{clusterv1beta1.DecisionGroupIndexLabel: index}
		if got := GroupIndex(object); got != want {
			t.Errorf("%q: got %d, want %d", index, got, want)
		}
	}
}

// A controller is killed between any two writes while a and b are exchanged between two PlacementDecisions. The annotation of each is
// written before its status. The promises in both clusters hold.
func TestPromisesOfMovedClusters(t *testing.T) {
	r := &Result{Promises: map[string]podPromise{"a": {Replicas: 1}, "b": {Replicas: 2}}}
	steps := r.Steps(nil, slicesFrom(t, "x 0: a", "y 1: b"), false)
	stored := &Objects{Decisions: []*clusterv1beta1.PlacementDecision{steps[0].After, steps[1].After}}
	existing := []clusterv1beta1.PlacementDecision{*steps[0].After, *steps[1].After}
	for k, step := range r.Steps(existing, slicesFrom(t, "x 0: b", "y 1: a"), false) {
		i := slices.IndexFunc(stored.Decisions, func(d *clusterv1beta1.PlacementDecision) bool { return d.Name == step.Name() })
		annotated := stored.Decisions[i].DeepCopy()
		annotated.Annotations = step.After.Annotations
		for _, written := range []*clusterv1beta1.PlacementDecision{annotated, step.After} {
			stored.Decisions[i] = written
			if got := stored.Promises()[types.NamespacedName{Name: "p"}]; !maps.Equal(got, r.Promises) {
				t.Errorf("step %d, %s: promises %v, want %v", k, show(written), got, r.Promises)
			}
		}
	}
}

// A second decision has the same scores as the first, because the scores of selected
// clusters include Steady from the first decision on. Therefore it writes nothing.
func TestSecondDecisionWritesNothing(t *testing.T) {
	for _, spec := range []string{
		`{numberOfClusters: 2}`,
		`{numberOfClusters: 2, prioritizerPolicy: {configurations: [{name: Steady, weight: 3}, {name: ResourceAllocatableCPU}]}}`,
		`{numberOfClusters: 2, prioritizerPolicy: {mode: Exact, configurations: [{name: ResourceAllocatableCPU}]}}`,
	} {
		s := hub("a", "b", "c")
		s.SetPlacement(newPlacement(t, "p", spec))
		first := Layout("p", nil, decideNow(t, s, "p").Groups)
		second := Layout("p", first, decideNow(t, s, "p").Groups)
		if steps := new(Result).Steps(first, second, false); len(steps) > 0 {
			t.Errorf("%s: %+v", spec, steps)
		}
	}
}
