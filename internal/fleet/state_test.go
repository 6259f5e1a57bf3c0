package fleet

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

// A state that was told of changes one by one says what one says that is told of
// all at once.
func TestStateIsAsFresh(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := newWorld(), NewState()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(t, s, func(string, []types.NamespacedName, types.NamespacedName) {})
			fresh := w.fresh()
			if got, want := s.Placements(), fresh.Placements(); !slices.Equal(got, want) {
				t.Fatalf("placements %v, want %v", got, want)
			}
			if !slices.Equal(s.counts, fresh.counts) {
				t.Fatalf("counts %v, want %v", s.counts, fresh.counts)
			}
			for _, key := range s.Placements() {
				got, _ := s.Preview(key, now)
				want, _ := fresh.Preview(key, now)
				got.Policy, want.Policy = nil, nil // compiled programs cannot be compared
				if len(got.Fleet) == 0 && len(want.Fleet) == 0 {
					got.Fleet, want.Fleet = nil, nil
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: %s", key, cmp.Diff(want, got, cmp.AllowUnexported(placement.Decision{})))
				}
			}
		}
	})
}

// standing is what of a verdict does not depend on clusters that the placement
// cannot have.
func standing(s *State, key types.NamespacedName) any {
	v, ok := s.Preview(key, now)
	if !ok {
		return nil
	}
	members := []ClusterRanking{}
	for _, c := range v.Ranking() {
		if c.Reason != "is in none of the cluster sets" {
			members = append(members, c)
		}
	}
	return []any{v.KeepDecisions, v.Groups, v.Conditions, v.RequeueAt, members}
}

// A placement that a change is not said to affect has the same verdict before and
// after. There is one thing that is left out by design: Balance. A cluster that
// comes or goes, and a placement that does or is decided elsewhere, change how
// many decisions clusters have. Placements with Balance are not woken by that, or
// each decision would wake all others; they reckon with it when they are decided
// the next time.
func TestUnaffectedStaysTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := newWorld(), NewState()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := map[types.NamespacedName]any{}
			for _, key := range s.Placements() {
				before[key] = standing(s, key)
			}
			names := slices.Sorted(maps.Keys(w.clusters))
			w.step(t, s, func(name string, affected []types.NamespacedName, about types.NamespacedName) {
				for i, key := range affected {
					if slices.Contains(affected[:i], key) {
						t.Fatalf("%s is returned twice", key)
					}
				}
				balanced := about.Name != "" || !slices.Equal(names, slices.Sorted(maps.Keys(w.clusters)))
				for key, was := range before {
					if key == about || slices.Contains(affected, key) || balanced && s.balances(key) {
						continue
					}
					if is := standing(s, key); !reflect.DeepEqual(was, is) {
						t.Fatalf("%s is said not to affect %s:\n%+v\n%+v", name, key, was, is)
					}
				}
			})
		}
	})
}

// balances reports whether Balance has a say in a placement.
func (s *State) balances(key types.NamespacedName) bool {
	policy := s.placements[key].policy
	return policy != nil && slices.ContainsFunc(policy.prioritizers, func(p placement.Prioritizer) bool { return p.Kind == placement.Balance })
}

// Who does not look at a thing is not woken by it.
func TestUnaffected(t *testing.T) {
	specs := map[string]string{
		"plain":  `numberOfClusters: 1`,
		"cpu":    `prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}]}`,
		"zone1":  inZone1 + "\nprioritizerPolicy: {configurations: [{name: ResourceRatioCPU}]}",
		"gold":   "clusterSets: [gold]\nprioritizerPolicy: {configurations: [{name: ResourceRatioCPU}]}",
		"addOn":  `prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}`,
		"cel":    `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["true"]}}}]`,
		"broken": `numberOfClusters: -1`,
	}
	for name, tc := range map[string]struct {
		change func(*State) []types.NamespacedName
		want   []string
	}{
		"nothing":            {func(s *State) []types.NamespacedName { return s.SetCluster(managed("a", "set=web zone=1")) }, nil},
		"labels":             {func(s *State) []types.NamespacedName { return s.SetCluster(managed("a", "set=web zone=3")) }, []string{"addOn", "cel", "cpu", "plain", "zone1"}},
		"into another set":   {func(s *State) []types.NamespacedName { return s.SetCluster(managed("a", "set=gold zone=1")) }, []string{"addOn", "cel", "cpu", "gold", "plain", "zone1"}},
		"out of its set":     {func(s *State) []types.NamespacedName { return s.SetCluster(managed("a", "set=none zone=1")) }, []string{"addOn", "cel", "cpu", "plain", "zone1"}},
		"out of reach":       {func(s *State) []types.NamespacedName { return s.SetCluster(managed("z", "set=none")) }, nil},
		"a new one":          {func(s *State) []types.NamespacedName { return s.SetCluster(managed("z", "set=web")) }, []string{"addOn", "cel", "cpu", "plain", "zone1"}},
		"one goes":           {func(s *State) []types.NamespacedName { return s.DeleteCluster("c") }, []string{"addOn", "cel", "cpu", "plain", "zone1"}},
		"one that never was": {func(s *State) []types.NamespacedName { return s.DeleteCluster("z") }, nil},
		"a taint":            {func(s *State) []types.NamespacedName { return tainted(s, "a") }, []string{"addOn", "cel", "cpu", "plain", "zone1"}},
		"CPU":                {func(s *State) []types.NamespacedName { return withCPU(s, "a", "set=web zone=1") }, []string{"cel", "cpu", "zone1"}},
		// c does not match what zone1 asks for: whatever it has makes no difference.
		"CPU of another zone": {func(s *State) []types.NamespacedName { return withCPU(s, "c", "set=web zone=2") }, []string{"cel", "cpu"}},
		"an annotation": {func(s *State) []types.NamespacedName {
			object := managed("a", "set=web zone=1")
			object.Annotations = map[string]string{"a": "b"}
			return s.SetCluster(object)
		}, []string{"cel"}},
		"a score": {func(s *State) []types.NamespacedName {
			return s.SetScores(scored("a", "usage", map[string]int32{"cpu": 1}))
		}, []string{"addOn", "cel"}},
		"a score nobody asks for": {func(s *State) []types.NamespacedName {
			return s.SetScores(scored("a", "cost", map[string]int32{"cpu": 1}))
		}, []string{"cel"}},
		"a score of no cluster": {func(s *State) []types.NamespacedName {
			return s.SetScores(scored("z", "usage", map[string]int32{"cpu": 1}))
		}, nil},
		"no score": {func(s *State) []types.NamespacedName { return s.DeleteScores("a", "usage") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := verdictHub()
			s.SetClusterSet(bySet("gold"))
			s.SetBinding(binding("ns", "gold"))
			for name, spec := range specs {
				s.SetPlacement(asks(t, name, spec))
				decide(t, s, name)
			}
			s.SetUnmanaged(keyOf("foreign"), []string{"a"})
			var got []string
			for _, key := range tc.change(s) {
				got = append(got, key.Name)
			}
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("affected %v, want %v", got, tc.want)
			}
			if again := tc.change(s); len(again) > 0 {
				t.Errorf("the same again affects %v", again)
			}
		})
	}
}

func tainted(s *State, name string) []types.NamespacedName {
	object := s.entries[name].object.DeepCopy()
	object.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect}}
	return s.SetCluster(object)
}

func withCPU(s *State, name, labels string) []types.NamespacedName {
	return s.SetCluster(withAmounts(managed(name, labels), "7", "16Gi"))
}

// A spec is compiled once for a generation.
func TestSetPlacement(t *testing.T) {
	s := hub("a")
	p := asks(t, "p", `{}`)
	if !s.SetPlacement(p) || s.SetPlacement(p) {
		t.Error("the same generation is taken for another, or the first for the same")
	}
	p = p.DeepCopy()
	p.Annotations = map[string]string{"a": "b"}
	if s.SetPlacement(p) {
		t.Error("an annotation makes another spec")
	}
	p.Generation++
	if !s.SetPlacement(p) {
		t.Error("another generation is taken for the same")
	}
}

// Everybody at once: the race detector watches, and in the end the counts are
// those of what the placements have.
func TestConcurrentUse(t *testing.T) {
	s := hub("a", "b", "c", "d")
	s.SetUnmanaged(keyOf("foreign"), []string{"a"})
	const rounds = 200
	var all sync.WaitGroup
	work := func(f func(i int)) {
		all.Go(func() {
			for i := range rounds {
				f(i)
			}
		})
	}
	for n := range 4 {
		name := fmt.Sprint("p", n)
		work(func(i int) {
			p := asks(t, name, `{numberOfClusters: 2, predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.labels.set == 'web'"]}}}]}`)
			p.Generation = int64(i/10 + 1)
			s.SetPlacement(p)
			if v, ok := s.Decide(keyOf(name), now); ok {
				v.Ranking()
			}
		})
	}
	work(func(i int) { s.SetCluster(managed("a", fmt.Sprint("set=web beat=", i))) })
	work(func(i int) {
		if i%2 == 0 {
			s.SetCluster(managed("aa", "set=web"))
		} else {
			s.DeleteCluster("aa")
		}
	})
	work(func(i int) { s.SetScores(scored("b", "usage", map[string]int32{"x": int32(i)})) })
	work(func(i int) {
		if i%2 == 0 {
			s.SetBinding(binding("ns", "gold"))
		} else {
			s.DeleteBinding("ns", "gold")
		}
		s.SetClusterSet(bySet("gold"))
	})
	work(func(int) { s.Preview(keyOf("p0"), now); s.Placements() })
	all.Wait()
	want := make([]int32, len(s.fleet))
	for _, p := range s.placements {
		for _, name := range p.selected {
			if i, known := s.indexOf(name); known {
				want[i]++
			}
		}
	}
	if !slices.Equal(s.counts, want) {
		t.Errorf("counts %v, want %v", s.counts, want)
	}
}

// What add-ons said of clusters that are gone does not stay for ever.
func TestScoresOfNoCluster(t *testing.T) {
	s := NewState()
	s.DeleteScores("a", "usage")
	s.SetScores(scored("b", "usage", map[string]int32{"x": 1}))
	s.DeleteScores("b", "usage")
	s.SetCluster(managed("c", ""))
	s.SetScores(scored("c", "usage", map[string]int32{"x": 1}))
	s.DeleteCluster("c")
	s.SetCluster(managed("c", "")) // it is back, and what was said of it holds
	if len(s.entries) != 1 || s.entries["c"].scores["usage"] == nil {
		t.Errorf("%v", s.entries)
	}
	s.DeleteCluster("c")
	s.DeleteScores("c", "usage")
	if len(s.entries) != 0 {
		t.Errorf("%v", s.entries)
	}
}
