package fleet

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

// The fleet of the tests: a and b bear the exclusive label, b and c the label
// tier.
func labelled(t testing.TB) *State {
	s := NewState()
	const exclusive = clusterv1beta2.ClusterSetLabel
	s.SetCluster(managed("a", exclusive+"=one"))
	s.SetCluster(managed("b", exclusive+"=two tier=gold"))
	s.SetCluster(managed("c", "tier=silver"))
	s.SetPlacement(asks(t, "p", `{}`))
	return s
}

func setOf(t testing.TB, name, selector string) *clusterv1beta2.ManagedClusterSet {
	return read[clusterv1beta2.ManagedClusterSet](t, "metadata: {name: "+name+"}\nspec: {clusterSelector: "+selector+"}")
}

func TestSets(t *testing.T) {
	for name, tc := range map[string]struct{ selector, want string }{
		"exclusive label":         {`{selectorType: ExclusiveClusterSetLabel}`, "a"},
		"exclusive if left out":   {`{}`, "a"},
		"a label":                 {`{selectorType: LabelSelector, labelSelector: {matchLabels: {tier: gold}}}`, "b"},
		"an expression":           {`{selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tier, operator: Exists}]}}`, "b c"},
		"everything":              {`{selectorType: LabelSelector, labelSelector: {}}`, "a b c"},
		"no selector":             {`{selectorType: LabelSelector}`, ""},
		"an operator nobody has":  {`{selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tier, operator: Is}]}}`, ""},
		"a value that is no such": {`{selectorType: LabelSelector, labelSelector: {matchLabels: {tier: "not/one"}}}`, ""},
		"a type nobody knows":     {`{selectorType: Legacy}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := labelled(t)
			s.SetClusterSet(setOf(t, "one", tc.selector))
			s.SetBinding(binding("ns", "one"))
			if got := clustersOf(decide(t, s, "p")); got != tc.want {
				t.Errorf("chosen %q, want %q", got, tc.want)
			}
		})
	}
}

// A set that cannot be read selects none, and those beside it are as they were.
func TestInvalidSetHarmsNoOther(t *testing.T) {
	s := labelled(t)
	s.SetClusterSet(setOf(t, "one", `{}`))
	s.SetClusterSet(setOf(t, "broken", `{selectorType: LabelSelector, labelSelector: {matchExpressions: [{key: tier, operator: Is}]}}`))
	s.SetBinding(binding("ns", "one"))
	s.SetBinding(binding("ns", "broken"))
	if got := clustersOf(decide(t, s, "p")); got != "a" {
		t.Errorf("chosen %q, want a", got)
	}
	if keys := s.SetCluster(managed("a", clusterv1beta2.ClusterSetLabel+"=one new=1")); len(keys) != 1 {
		t.Errorf("a change of a returns %v", keys)
	}
}

// Selectors of nothing and of everything have the same text.
func TestSetThatIsMended(t *testing.T) {
	s := labelled(t)
	s.SetBinding(binding("ns", "one"))
	s.SetClusterSet(setOf(t, "one", `{selectorType: LabelSelector}`))
	if got := clustersOf(decide(t, s, "p")); got != "" {
		t.Fatalf("chosen %q, want none", got)
	}
	if keys := s.SetClusterSet(setOf(t, "one", `{selectorType: LabelSelector, labelSelector: {}}`)); len(keys) != 1 {
		t.Errorf("the set returns %v", keys)
	}
	if got := clustersOf(decide(t, s, "p")); got != "a b c" {
		t.Errorf("chosen %q, want all", got)
	}
	if keys := s.SetClusterSet(setOf(t, "one", `{selectorType: LabelSelector, labelSelector: {}}`)); len(keys) != 0 {
		t.Errorf("the same again returns %v", keys)
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
		"as it is":                     {func(*State) []types.NamespacedName { return nil }, "a b", 0},
		"the same again":               {func(s *State) []types.NamespacedName { return s.SetBinding(binding("ns", "web")) }, "a b", 0},
		"another that is misnamed":     {func(s *State) []types.NamespacedName { return s.SetBinding(other("x", "gold")) }, "a b", 0},
		"its spec names another set":   {func(s *State) []types.NamespacedName { return s.SetBinding(other("web", "gold")) }, "", 1},
		"gone":                         {func(s *State) []types.NamespacedName { return s.DeleteBinding("ns", "web") }, "", 1},
		"one that never was":           {func(s *State) []types.NamespacedName { return s.DeleteBinding("ns", "nope") }, "a b", 0},
		"in another namespace":         {func(s *State) []types.NamespacedName { return s.DeleteBinding("other", "web") }, "a b", 0},
		"the set is gone":              {func(s *State) []types.NamespacedName { return s.DeleteClusterSet("web") }, "", 1},
		"a second set":                 {func(s *State) []types.NamespacedName { return s.SetBinding(binding("ns", "gold")) }, "a b c", 1},
		"bound, but the set is no set": {func(s *State) []types.NamespacedName { return s.SetBinding(binding("ns", "nope")) }, "a b", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := hub("a", "b")
			s.SetClusterSet(bySet("gold"))
			s.SetCluster(managed("c", "set=gold"))
			s.SetPlacement(asks(t, "p", `{}`))
			decide(t, s, "p")
			if keys := tc.change(s); len(keys) != tc.keys {
				t.Errorf("it returns %v, want %d", keys, tc.keys)
			}
			if got := clustersOf(decide(t, s, "p")); got != tc.want {
				t.Errorf("chosen %q, want %q", got, tc.want)
			}
		})
	}
}
