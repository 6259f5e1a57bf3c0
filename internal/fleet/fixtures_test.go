package fleet

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// now is the time of all decisions.
var now = time.Unix(1_795_239_886, 0)

// read decodes an API object from YAML.
func read[T any](t testing.TB, text string) *T {
	t.Helper()
	object := new(T)
	if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return object
}

// managed returns a ManagedCluster with labels such as "zone=a set=web".
func managed(name, labels string) *clusterv1.ManagedCluster {
	object := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	for pair := range strings.FieldsSeq(labels) {
		key, value, _ := strings.Cut(pair, "=")
		object.Labels[key] = value
	}
	return object
}

// withAmounts sets the capacity and the allocatable resources of a cluster to the same values.
func withAmounts(object *clusterv1.ManagedCluster, cpu, memory string) *clusterv1.ManagedCluster {
	object.Status.Allocatable = clusterv1.ResourceList{
		clusterv1.ResourceCPU: resource.MustParse(cpu), clusterv1.ResourceMemory: resource.MustParse(memory),
	}
	object.Status.Capacity = object.Status.Allocatable
	return object
}

// bySet returns a ManagedClusterSet that selects clusters with the label set=NAME.
func bySet(name string) *clusterv1beta2.ManagedClusterSet {
	return &clusterv1beta2.ManagedClusterSet{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1beta2.ManagedClusterSetSpec{ClusterSelector: clusterv1beta2.ManagedClusterSelector{
			SelectorType:  clusterv1beta2.LabelSelector,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"set": name}},
		}},
	}
}

// binding returns a ManagedClusterSetBinding of a set in a namespace.
func binding(namespace, set string) *clusterv1beta2.ManagedClusterSetBinding {
	return &clusterv1beta2.ManagedClusterSetBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: set},
		Spec:       clusterv1beta2.ManagedClusterSetBindingSpec{ClusterSet: set},
	}
}

// scored returns an AddOnPlacementScore for a cluster.
func scored(cluster, name string, values map[string]int32) *clusterv1alpha1.AddOnPlacementScore {
	object := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: name}}
	for item := range maps.Keys(values) {
		object.Status.Scores = append(object.Status.Scores, clusterv1alpha1.AddOnPlacementScoreItem{Name: item, Value: values[item]})
	}
	return object
}

// newPlacement returns a placement in namespace ns with a spec in YAML.
func newPlacement(t testing.TB, name, spec string) *v1beta1.Placement {
	t.Helper()
	return &v1beta1.Placement{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       *read[v1beta1.PlacementSpec](t, spec),
	}
}

// celPredicate returns a field predicates with a CEL expression.
func celPredicate(expression string) string {
	return fmt.Sprintf("predicates: [{requiredClusterSelector: {celSelector: {celExpressions: [%q]}}}]", expression)
}

func keyOf(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// hub returns a State with the set web, which is bound to namespace ns and contains the
// given clusters.
func hub(clusters ...string) *State {
	s := NewState()
	s.SetClusterSet(bySet("web"))
	s.SetBinding(binding("ns", "web"))
	for _, name := range clusters {
		s.SetCluster(managed(name, "set=web"))
	}
	return s
}

// addDecided adds a placement whose decisions have some clusters, selected by a generation of its spec, 0 if it is unknown.
func addDecided(s *State, object *v1beta1.Placement, generation int64, clusters ...string) {
	object = object.DeepCopy()
	if generation > 0 {
		object.Status.Conditions = []metav1.Condition{{Type: clusterv1beta1.PlacementConditionSatisfied, ObservedGeneration: generation}}
	}
	s.AddPlacement(object, clusters)
}

// clustersOf returns the names of the selected clusters.
func clustersOf(v *Result) string {
	var names []string
	for _, group := range v.Groups {
		for _, c := range group.Clusters {
			names = append(names, c.ClusterName)
		}
	}
	return strings.Join(names, " ")
}

// decideNow decides a placement and returns the result.
func decideNow(t testing.TB, s *State, name string) *Result {
	t.Helper()
	for {
		v, ok := s.Decide(keyOf(name), now)
		if !ok {
			t.Fatalf("no placement %s", name)
		}
		if !v.Pending {
			return v
		}
		s.EvaluateNext(t.Context())
	}
}
