package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// world is the content of a hub's API server. Tests compare a State with it.
type world struct {
	clusters   map[string]*clusterv1.ManagedCluster
	sets       map[string]*clusterv1beta2.ManagedClusterSet
	bindings   map[types.NamespacedName]*clusterv1beta2.ManagedClusterSetBinding
	scores     map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore
	placements map[types.NamespacedName]*v1beta1.Placement
	unmanaged  map[types.NamespacedName][]string
	selected   map[types.NamespacedName]selection
	// versions is the generation of the latest spec.
	versions int64
}

// selection is the clusters that a placement has selected, and the generation of the spec.
type selection struct {
	clusters   []string
	generation int64
}

func newWorld() *world {
	return &world{
		clusters: map[string]*clusterv1.ManagedCluster{}, sets: map[string]*clusterv1beta2.ManagedClusterSet{},
		bindings:   map[types.NamespacedName]*clusterv1beta2.ManagedClusterSetBinding{},
		scores:     map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore{},
		placements: map[types.NamespacedName]*v1beta1.Placement{}, unmanaged: map[types.NamespacedName][]string{},
		selected: map[types.NamespacedName]selection{},
	}
}

// fresh returns a State built from all objects.
func (w *world) fresh() *State {
	s := NewState()
	for _, object := range w.scores {
		s.SetScores(object)
	}
	for _, object := range w.clusters {
		s.SetCluster(object)
	}
	for _, object := range w.sets {
		s.SetClusterSet(object)
	}
	for _, object := range w.bindings {
		s.SetBinding(object)
	}
	for key, object := range w.placements {
		addDecided(s, object, w.selected[key].generation, w.selected[key].clusters...)
	}
	for key, clusters := range w.unmanaged {
		s.SetUnmanaged(key, clusters)
	}
	return s
}

// decide decides a placement and records the selected clusters.
func (w *world) decide(s *State, key types.NamespacedName) {
	v, ok := s.Decide(key, now)
	if ok && !v.KeepDecisions {
		w.selected[key] = selection{strings.Fields(clustersOf(v)), v.Generation}
	}
}

// Few names and values, so that objects refer to each other.
var (
	clusterNames = rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
	setNames     = rapid.SampledFrom([]string{"web", "gold", "all"})
	namespaces   = rapid.SampledFrom([]string{"ns", "other"})
	addOns       = rapid.SampledFrom([]string{"usage", "cost"})
	quantities   = rapid.SampledFrom([]string{"1", "2", "2000m", "3", "-1", "99999999999999999999"})
	zones        = rapid.SampledFrom([]string{"1", "2"})
)

func drawCluster(t *rapid.T) *clusterv1.ManagedCluster {
	object := managed(clusterNames.Draw(t, "cluster"), "set="+setNames.Draw(t, "set")+" zone="+zones.Draw(t, "zone"))
	for _, list := range []*clusterv1.ResourceList{&object.Status.Allocatable, &object.Status.Capacity} {
		text := fmt.Sprintf("{cpu: %q, memory: %q}", quantities.Draw(t, "cpu"), quantities.Draw(t, "memory"))
		must.Succeed(t, yaml.Unmarshal([]byte(text), list))
	}
	if effect := rapid.SampledFrom([]string{"", "", "", "NoSelect", "PreferNoSelect", "NoSelectIfNew"}).Draw(t, "effect"); effect != "" {
		object.Spec.Taints = []clusterv1.Taint{
			{Key: "k", Effect: clusterv1.TaintEffect(effect), TimeAdded: metav1.NewTime(now.Add(-time.Minute))},
		}
	}
	if rapid.Bool().Draw(t, "claims") {
		object.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "platform", Value: zones.Draw(t, "platform")}}
	}
	object.Status.Version.Kubernetes = rapid.SampledFrom([]string{"", "v1.31.0", "v1.9.0"}).Draw(t, "version")
	object.Status.Conditions = []metav1.Condition{
		{Type: "Available", Status: metav1.ConditionStatus(rapid.SampledFrom([]string{"True", "Unknown"}).Draw(t, "available"))},
	}
	return object
}

func drawSet(t *rapid.T) *clusterv1beta2.ManagedClusterSet {
	object := bySet(setNames.Draw(t, "set"))
	selector := &object.Spec.ClusterSelector
	switch rapid.IntRange(0, 4).Draw(t, "selector") {
	case 0:
		selector.LabelSelector = &metav1.LabelSelector{}
	case 1:
		selector.LabelSelector = nil
	case 2:
		selector.LabelSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "zone", Operator: "Is"}}
	}
	return object
}

// drawSpec returns a random spec, which may be invalid.
func drawSpec(t *rapid.T) string {
	pick := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) + "\n" }
	cel := func(text string) string {
		return "predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['" + text + "']}}}]"
	}
	policy := func(configurations string) string {
		return "prioritizerPolicy: {mode: " + rapid.SampledFrom(
			[]string{"Additive", "Exact"},
		).Draw(t, "mode") + ", configurations: [" + configurations + "]}"
	}
	addOn := "{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: x}}, weight: 2}"
	return pick("sets", "", "", "clusterSets: [web]", "clusterSets: [web, gold]", "clusterSets: [typo]") +
		pick("number", "", "numberOfClusters: 1", "numberOfClusters: 2", "numberOfClusters: 0", "numberOfClusters: -1") +
		pick("predicates", "", "", inZone1, nowhere,
			`predicates: [{requiredClusterSelector: {claimSelector: {matchExpressions: [{key: platform, operator: In, values: ["1"]}]}}}]`,
			cel(`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.10.0"))`),
			cel(`managedCluster.scores("usage").exists(s, s.value > 0)`),
			cel(`managedCluster.status.conditions.exists(c, c.type == "Available" && c.status == "True")`),
			cel(`managedCluster.metadata.labels.zone ==`)) +
		pick("policy", "", policy("{name: ResourceRatioCPU}"), policy("{name: ResourceAllocatableMemory, weight: -1}"),
			policy(addOn), policy("{name: ResourceAllocatableCPU}, {name: Steady, weight: 3}")) +
		pick("tolerations", "", "", "tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]",
			"tolerations: [{key: k, operator: Exists}]") +
		pick("order", "", "sortBy: Score") +
		pick("spread", "", "", spreadZones) +
		pick(
			"groups", "",
			`decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 50%, decisionGroups: [`+
				`{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {zone: "1"}}}}]}}`,
		)
}

// change changes a random object in the world and in the state. It returns the placements
// that the state reports as affected, and the placement that was changed, if any.
type change func(t *rapid.T, w *world, s *State) (affected []types.NamespacedName, changed types.NamespacedName)

// changes returns the changes by name.
func changes() map[string]change {
	affects := func(affected []types.NamespacedName) ([]types.NamespacedName, types.NamespacedName) {
		return affected, types.NamespacedName{}
	}
	return map[string]change{
		"cluster": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := drawCluster(t)
			w.clusters[object.Name] = object
			return affects(s.SetCluster(object.DeepCopy()))
		},
		"cluster in one field": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object, other := drawCluster(t), drawCluster(t)
			if existing := w.clusters[object.Name]; existing != nil {
				object = existing.DeepCopy()
			}
			switch rapid.IntRange(0, 4).Draw(t, "field") {
			case 0:
				object.Labels = other.Labels
			case 1:
				object.Spec.Taints = other.Spec.Taints
			case 2:
				object.Status.Allocatable = other.Status.Allocatable
			case 3:
				object.Status.Capacity = other.Status.Capacity
			case 4:
				object.Status.Conditions = other.Status.Conditions
			}
			w.clusters[object.Name] = object
			return affects(s.SetCluster(object.DeepCopy()))
		},
		"cluster is deleted": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			name := clusterNames.Draw(t, "cluster")
			delete(w.clusters, name)
			if rapid.Bool().Draw(t, "terminating") {
				object := managed(name, "set=web")
				object.DeletionTimestamp = &metav1.Time{Time: now}
				return affects(s.SetCluster(object))
			}
			return affects(s.DeleteCluster(name))
		},
		"heartbeat": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			if object := w.clusters[clusterNames.Draw(t, "cluster")]; object != nil {
				heartbeat := object.DeepCopy()
				heartbeat.ResourceVersion, heartbeat.ManagedFields = "2", []metav1.ManagedFieldsEntry{{Manager: "agent"}}
				heartbeat.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now)
				if affected := s.SetCluster(heartbeat); len(affected) > 0 {
					t.Fatalf("a heartbeat affects %v", affected)
				}
			}
			return affects(nil)
		},
		"set": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := drawSet(t)
			w.sets[object.Name] = object
			return affects(s.SetClusterSet(object))
		},
		"set is deleted": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			name := setNames.Draw(t, "set")
			delete(w.sets, name)
			return affects(s.DeleteClusterSet(name))
		},
		"binding": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := binding(namespaces.Draw(t, "namespace"), setNames.Draw(t, "set"))
			if rapid.IntRange(0, 4).Draw(t, "misnamed") == 0 {
				object.Spec.ClusterSet = setNames.Draw(t, "another")
			}
			w.bindings[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
			return affects(s.SetBinding(object))
		},
		"binding is deleted": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := types.NamespacedName{Namespace: namespaces.Draw(t, "namespace"), Name: setNames.Draw(t, "set")}
			delete(w.bindings, key)
			return affects(s.DeleteBinding(key.Namespace, key.Name))
		},
		"scores": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := scored(clusterNames.Draw(t, "cluster"), addOns.Draw(t, "add-on"), map[string]int32{
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "item"): rapid.Int32Range(-101, 101).Draw(t, "value"),
			})
			if rapid.Bool().Draw(t, "expires") {
				object.Status.ValidUntil = &metav1.Time{
					Time: now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "minutes")) * time.Minute),
				}
			}
			w.scores[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
			return affects(s.SetScores(object))
		},
		"scores are deleted": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := types.NamespacedName{Namespace: clusterNames.Draw(t, "cluster"), Name: addOns.Draw(t, "add-on")}
			delete(w.scores, key)
			return affects(s.DeleteScores(key.Namespace, key.Name))
		},
		"placement": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := drawKey(t)
			w.versions++
			object := &v1beta1.Placement{
				ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name), Generation: w.versions},
			}
			must.Succeed(t, yaml.UnmarshalStrict([]byte(drawSpec(t)), &object.Spec))
			w.placements[key] = object
			if clusters, unmanaged := w.unmanaged[key]; unmanaged { // the placement is adopted
				delete(w.unmanaged, key)
				w.selected[key] = selection{clusters, 0}
			}
			addDecided(s, object, w.selected[key].generation, w.selected[key].clusters...)
			return nil, key
		},
		"placement is deleted": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := drawKey(t)
			delete(w.placements, key)
			delete(w.unmanaged, key)
			delete(w.selected, key)
			s.DeletePlacement(key)
			return nil, key
		},
		"placement is decided elsewhere": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := drawKey(t)
			delete(w.placements, key)
			delete(w.selected, key)
			w.unmanaged[key] = rapid.SliceOfN(clusterNames, 0, 3).Draw(t, "clusters")
			s.SetUnmanaged(key, w.unmanaged[key])
			return nil, key
		},
	}
}

func drawKey(t *rapid.T) types.NamespacedName {
	return types.NamespacedName{
		Namespace: namespaces.Draw(t, "namespace"), Name: rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "placement"),
	}
}

// step makes a random change, calls check, and then decides some of the affected placements.
func (w *world) step(t *rapid.T, s *State, check func(name string, affected []types.NamespacedName, changed types.NamespacedName)) {
	all := changes()
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "change")
	affected, changed := all[name](t, w, s)
	check(name, affected, changed)
	slices.SortFunc(affected, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range append(affected, changed) {
		if rapid.Bool().Draw(t, "decide") {
			w.decide(s, key)
		}
	}
}
