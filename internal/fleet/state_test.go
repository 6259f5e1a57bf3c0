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

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// A State that is changed step by step has the same results as a State that is built from
// the final objects.
func TestIncrementalState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := newWorld(), NewState()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			w.step(t, s, func(string, []types.NamespacedName, types.NamespacedName) {})
			fresh := w.fresh()
			if got, want := s.Placements(), fresh.Placements(); !slices.Equal(got, want) {
				t.Fatalf("placements %v, want %v", got, want)
			}
			if !slices.Equal(s.counts, fresh.counts) {
				t.Fatalf("decisions per cluster %v, want %v", s.counts, fresh.counts)
			}
			for _, key := range s.Placements() {
				got, _ := s.Preview(key, now)
				want, _ := fresh.Preview(key, now)
				got.Policy, want.Policy = nil, nil // compiled programs cannot be compared
				got.Fleet, want.Fleet = append([]*decide.Cluster{}, got.Fleet...), append([]*decide.Cluster{}, want.Fleet...)
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s: %s", key, cmp.Diff(want, got, cmp.AllowUnexported(Result{}, decide.Decision{}, note{}, limit{})))
				}
			}
		}
	})
}

// visibleResult returns the parts of a result that do not depend on clusters outside the
// cluster sets of the placement.
func visibleResult(s *State, key types.NamespacedName) any {
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

// A placement that is not among those affected by a change has the same result before and
// after it. Balance is an exception by design: created and deleted clusters, and decisions
// of other placements, change the number of decisions per cluster. Placements with Balance
// are not affected by that, because each decision would affect all other placements; the
// next decision uses the new numbers.
func TestUnaffectedPlacementsKeepResults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, s := newWorld(), NewState()
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			before := map[types.NamespacedName]any{}
			for _, key := range s.Placements() {
				before[key] = visibleResult(s, key)
			}
			names := slices.Sorted(maps.Keys(w.clusters))
			w.step(t, s, func(name string, affected []types.NamespacedName, changed types.NamespacedName) {
				for i, key := range affected {
					if slices.Contains(affected[:i], key) {
						t.Fatalf("%s is returned twice", key)
					}
				}
				balanced := changed.Name != "" || !slices.Equal(names, slices.Sorted(maps.Keys(w.clusters)))
				for key, old := range before {
					if key == changed || slices.Contains(affected, key) || balanced && s.balances(key) {
						continue
					}
					if got := visibleResult(s, key); !reflect.DeepEqual(old, got) {
						t.Fatalf("change %q does not affect %s, whose result changed:\n%+v\n%+v", name, key, old, got)
					}
				}
			})
		}
	})
}

// balances reports whether a placement uses prioritizer Balance.
func (s *State) balances(key types.NamespacedName) bool {
	policy := s.placements[key].policy
	return policy != nil &&
		slices.ContainsFunc(policy.request.Prioritizers, func(p decide.Prioritizer) bool { return p.Kind == v1beta1.Balance })
}

// A change affects only placements that use the changed fields.
func TestAffectedPlacements(t *testing.T) {
	specs := map[string]string{
		"plain":  `numberOfClusters: 1`,
		"cpu":    `prioritizerPolicy: {configurations: [{name: ResourceAllocatableCPU}]}`,
		"zone1":  inZone1 + "\nprioritizerPolicy: {configurations: [{name: ResourceRatioCPU}]}",
		"gold":   "clusterSets: [gold]\nprioritizerPolicy: {configurations: [{name: ResourceRatioCPU}]}",
		"addOn":  `prioritizerPolicy: {configurations: [{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}`,
		"cel":    celPredicate("true"),
		"broken": `numberOfClusters: -1`,
	}
	type keys = []types.NamespacedName
	all := []string{"addOn", "cel", "cpu", "plain", "zone1"}
	for name, tc := range map[string]struct {
		change func(*State) keys
		want   []string
	}{
		"no change":  {func(s *State) keys { return s.SetCluster(managed("a", "set=web zone=1")) }, nil},
		"zone label": {func(s *State) keys { return s.SetCluster(managed("a", "set=web zone=3")) }, all},
		"moved to another set": {
			func(s *State) keys { return s.SetCluster(managed("a", "set=gold zone=1")) },
			[]string{"addOn", "cel", "cpu", "gold", "plain", "zone1"},
		},
		"new cluster in no set": {func(s *State) keys { return s.SetCluster(managed("z", "set=none")) }, nil},
		"deleted cluster":       {func(s *State) keys { return s.DeleteCluster("c") }, all},
		"taint":                 {func(s *State) keys { return tainted(s, "a") }, all},
		"CPU":                   {func(s *State) keys { return withCPU(s, "a", "set=web zone=1") }, []string{"cel", "cpu", "zone1"}},
		// c does not match the predicates of zone1, so its resources do not matter.
		"CPU of another zone": {func(s *State) keys { return withCPU(s, "c", "set=web zone=2") }, []string{"cel", "cpu"}},
		"annotation": {func(s *State) keys {
			object := managed("a", "set=web zone=1")
			object.Annotations = map[string]string{"a": "b"}
			return s.SetCluster(object)
		}, []string{"cel"}},
		"score": {
			func(s *State) keys { return s.SetScores(scored("a", "usage", map[string]int32{"cpu": 1})) }, []string{"addOn", "cel"},
		},
		"score of an unknown cluster": {func(s *State) keys { return s.SetScores(scored("z", "usage", map[string]int32{"cpu": 1})) }, nil},
		"unknown score deleted":       {func(s *State) keys { return s.DeleteScores("a", "usage") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := zonedHub()
			s.SetClusterSet(bySet("gold"))
			s.SetBinding(binding("ns", "gold"))
			for name, spec := range specs {
				s.SetPlacement(newPlacement(t, name, spec))
				decideNow(t, s, name)
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
				t.Errorf("the same change again affects %v", again)
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

// SetPlacement compiles a spec once per generation.
func TestSetPlacement(t *testing.T) {
	s := hub("a")
	p := newPlacement(t, "p", `{}`)
	if !s.SetPlacement(p) || s.SetPlacement(p) {
		t.Error("SetPlacement() is false for a new placement or true for an unchanged generation")
	}
	p = p.DeepCopy()
	p.Annotations = map[string]string{"a": "b"}
	if s.SetPlacement(p) {
		t.Error("SetPlacement() = true for a new annotation")
	}
	p.Generation++
	if !s.SetPlacement(p) {
		t.Error("SetPlacement() = false for a new generation")
	}
}

// Concurrent calls are safe under the race detector, and afterwards the counts match the
// decisions of the placements.
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
			p := newPlacement(t, name, "numberOfClusters: 2\n"+celPredicate("managedCluster.metadata.labels.set == 'web'"))
			p.Generation = int64(i/10 + 1)
			s.SetPlacement(p)
			s.Decide(keyOf(name), now)
			if v, ok := s.Preview(keyOf(name), now); ok {
				v.Ranking()
			}
		})
	}
	work(func(i int) { s.SetCluster(managed("a", fmt.Sprint("set=web heartbeat=", i))) })
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
		t.Errorf("decisions per cluster %v, want %v", s.counts, want)
	}
}

// Scores of deleted clusters are removed when they are deleted themselves.
func TestScoresOfDeletedClusters(t *testing.T) {
	s := NewState()
	s.DeleteScores("a", "usage")
	s.SetScores(scored("b", "usage", map[string]int32{"x": 1}))
	s.DeleteScores("b", "usage")
	s.SetCluster(managed("c", ""))
	s.SetScores(scored("c", "usage", map[string]int32{"x": 1}))
	s.DeleteCluster("c")
	s.SetCluster(managed("c", "")) // recreated; its scores still exist
	if len(s.entries) != 1 || s.entries["c"].scores["usage"] == nil {
		t.Errorf("%v", s.entries)
	}
	s.DeleteCluster("c")
	s.DeleteScores("c", "usage")
	if len(s.entries) != 0 {
		t.Errorf("%v", s.entries)
	}
}
