package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// labeledHub returns a State in which clusters a and b have the exclusive label and b and c
// the label tier. A set with an invalid selector is bound, which must not affect other sets.
func labeledHub(t testing.TB) *State {
	s := NewState()
	const exclusive = clusterv1beta2.ClusterSetLabel
	s.SetCluster(managed("a", exclusive+"=one"))
	s.SetCluster(managed("b", exclusive+"=two tier=gold"))
	s.SetCluster(managed("c", "tier=silver"))
	s.SetClusterSet(setOf(t, "broken", `{selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tier, operator: Is}]}}`))
	s.SetBinding(binding("ns", "broken"))
	s.SetPlacement(newPlacement(t, "p", `{}`))
	return s
}

func setOf(t testing.TB, name, selector string) *clusterv1beta2.ManagedClusterSet {
	return read[clusterv1beta2.ManagedClusterSet](t, "metadata: {name: "+name+"}\nspec: {clusterSelector: "+selector+"}")
}

func TestSets(t *testing.T) {
	for name, tc := range map[string]struct{ selector, want string }{
		"exclusive label": {`{selectorType: ExclusiveClusterSetLabel}`, "a"},
		"expression": {
			`{selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}}`, "b c",
		},
		"everything":       {`{selectorType: LabelSelector, labelSelector: {}}`, "a b c"},
		"no selector":      {`{selectorType: LabelSelector}`, ""},
		"unknown operator": {`{selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tier, operator: Is}]}}`, ""},
		"unknown type":     {`{selectorType: Legacy}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := labeledHub(t)
			s.SetClusterSet(setOf(t, "one", tc.selector))
			s.SetBinding(binding("ns", "one"))
			if got := clustersOf(decideNow(t, s, "p")); got != tc.want {
				t.Errorf("chosen %q, want %q", got, tc.want)
			}
		})
	}
}

func TestBindings(t *testing.T) {
	other := func(name, set string) *clusterv1beta2.ManagedClusterSetBinding {
		return &clusterv1beta2.ManagedClusterSetBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
		}
	}
	for name, tc := range map[string]struct {
		change func(*State) []types.NamespacedName
		want   string
		keys   int
	}{
		"same binding again":        {func(s *State) []types.NamespacedName { return s.SetBinding(binding("ns", "web")) }, "a b", 0},
		"name differs from the set": {func(s *State) []types.NamespacedName { return s.SetBinding(other("x", "gold")) }, "a b", 0},
		"spec lists another set":    {func(s *State) []types.NamespacedName { return s.SetBinding(other("web", "gold")) }, "", 1},
		"deleted":                   {func(s *State) []types.NamespacedName { return s.DeleteBinding("ns", "web") }, "", 1},
		"second set bound":          {func(s *State) []types.NamespacedName { return s.SetBinding(binding("ns", "gold")) }, "a b c", 1},
		"unknown set bound":         {func(s *State) []types.NamespacedName { return s.SetBinding(binding("ns", "nope")) }, "a b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := hub("a", "b")
			s.SetClusterSet(bySet("gold"))
			s.SetCluster(managed("c", "set=gold"))
			s.SetPlacement(newPlacement(t, "p", `{}`))
			decideNow(t, s, "p")
			if keys := tc.change(s); len(keys) != tc.keys {
				t.Errorf("affected placements %v, want %d", keys, tc.keys)
			}
			if got := clustersOf(decideNow(t, s, "p")); got != tc.want {
				t.Errorf("chosen %q, want %q", got, tc.want)
			}
		})
	}
}
