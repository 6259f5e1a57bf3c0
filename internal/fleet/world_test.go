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
)

// world is what a hub has in its API server: the objects, and nothing made of
// them. It is what a State is held against.
type world struct {
	clusters   map[string]*clusterv1.ManagedCluster
	sets       map[string]*clusterv1beta2.ManagedClusterSet
	bindings   map[types.NamespacedName]*clusterv1beta2.ManagedClusterSetBinding
	scores     map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore
	placements map[types.NamespacedName]*v1beta1.Placement
	foreign    map[types.NamespacedName][]string
	has        map[types.NamespacedName]choice
	// versions tells specs apart.
	versions int64
}

// choice is what a placement has, and by which spec.
type choice struct {
	clusters   []string
	generation int64
}

func newWorld() *world {
	return &world{
		clusters: map[string]*clusterv1.ManagedCluster{}, sets: map[string]*clusterv1beta2.ManagedClusterSet{},
		bindings: map[types.NamespacedName]*clusterv1beta2.ManagedClusterSetBinding{}, scores: map[types.NamespacedName]*clusterv1alpha1.AddOnPlacementScore{},
		placements: map[types.NamespacedName]*v1beta1.Placement{}, foreign: map[types.NamespacedName][]string{}, has: map[types.NamespacedName]choice{},
	}
}

// fresh returns a State that is told all of it at once.
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
		s.SetPlacement(object)
		s.Restore(key, w.has[key].clusters, w.has[key].generation)
	}
	for key, clusters := range w.foreign {
		s.SetUnmanaged(key, clusters)
	}
	return s
}

// decide lets the state decide, and notes what comes of it.
func (w *world) decide(s *State, key types.NamespacedName) {
	v, ok := s.Decide(key, now)
	if ok && !v.KeepDecisions {
		w.has[key] = choice{strings.Fields(clustersOf(v)), v.Generation}
	}
}

// Few names and values, so that things meet.
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
		if err := yaml.Unmarshal([]byte(text), list); err != nil {
			t.Fatal(err)
		}
	}
	if effect := rapid.SampledFrom([]string{"", "", "", "NoSelect", "PreferNoSelect", "NoSelectIfNew"}).Draw(t, "effect"); effect != "" {
		object.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffect(effect), TimeAdded: metav1.NewTime(now.Add(-time.Minute))}}
	}
	if rapid.Bool().Draw(t, "claims") {
		object.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "platform", Value: zones.Draw(t, "platform")}}
	}
	object.Status.Version.Kubernetes = rapid.SampledFrom([]string{"", "v1.31.0", "v1.9.0"}).Draw(t, "version")
	object.Status.Conditions = []metav1.Condition{{Type: "Available", Status: metav1.ConditionStatus(rapid.SampledFrom([]string{"True", "Unknown"}).Draw(t, "available"))}}
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

// drawSpec returns a spec; some are misconfigured.
func drawSpec(t *rapid.T) string {
	pick := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(t, label) + "\n" }
	cel := func(text string) string {
		return "predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['" + text + "']}}}]"
	}
	policy := func(configurations string) string {
		return "prioritizerPolicy: {mode: " + rapid.SampledFrom([]string{"Additive", "Exact"}).Draw(t, "mode") + ", configurations: [" + configurations + "]}"
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
		pick("tolerations", "", "", "tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]", "tolerations: [{key: k, operator: Exists}]") +
		pick("order", "", "sortBy: Score") +
		pick("spread", "", "", `spreadPolicy: {spreadConstraints: [{topologyKey: zone, topologyKeyType: Label, maxSkew: 1, whenUnsatisfiable: DoNotSchedule}]}`) +
		pick("groups", "", `decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 50%, decisionGroups: [{groupName: one, groupClusterSelector: {labelSelector: {matchLabels: {zone: "1"}}}}]}}`)
}

// change is one of the world. It tells the state, and returns what that says of
// it; about is the placement that it is of, if it is of one.
type change func(t *rapid.T, w *world, s *State) (affected []types.NamespacedName, about types.NamespacedName)

// changes by their names.
func changes() map[string]change {
	of := func(affected []types.NamespacedName) ([]types.NamespacedName, types.NamespacedName) {
		return affected, types.NamespacedName{}
	}
	return map[string]change{
		"cluster": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := drawCluster(t)
			w.clusters[object.Name] = object
			return of(s.SetCluster(object.DeepCopy()))
		},
		"cluster in one thing": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object, other := drawCluster(t), drawCluster(t)
			if is := w.clusters[object.Name]; is != nil {
				object = is.DeepCopy()
			}
			switch rapid.IntRange(0, 4).Draw(t, "what") {
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
			return of(s.SetCluster(object.DeepCopy()))
		},
		"cluster goes": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			name := clusterNames.Draw(t, "cluster")
			delete(w.clusters, name)
			if rapid.Bool().Draw(t, "slowly") {
				object := managed(name, "set=web")
				object.DeletionTimestamp = &metav1.Time{Time: now}
				return of(s.SetCluster(object))
			}
			return of(s.DeleteCluster(name))
		},
		"heartbeat": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			if object := w.clusters[clusterNames.Draw(t, "cluster")]; object != nil {
				beat := object.DeepCopy()
				beat.ResourceVersion, beat.ManagedFields = "2", []metav1.ManagedFieldsEntry{{Manager: "agent"}}
				beat.Status.Conditions[0].LastTransitionTime = metav1.NewTime(now)
				if affected := s.SetCluster(beat); len(affected) > 0 {
					t.Fatalf("a heartbeat affects %v", affected)
				}
			}
			return of(nil)
		},
		"set": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := drawSet(t)
			w.sets[object.Name] = object
			return of(s.SetClusterSet(object))
		},
		"set goes": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			name := setNames.Draw(t, "set")
			delete(w.sets, name)
			return of(s.DeleteClusterSet(name))
		},
		"binding": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := binding(namespaces.Draw(t, "namespace"), setNames.Draw(t, "set"))
			if rapid.IntRange(0, 4).Draw(t, "misnamed") == 0 {
				object.Spec.ClusterSet = setNames.Draw(t, "another")
			}
			w.bindings[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
			return of(s.SetBinding(object))
		},
		"binding goes": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := types.NamespacedName{Namespace: namespaces.Draw(t, "namespace"), Name: setNames.Draw(t, "set")}
			delete(w.bindings, key)
			return of(s.DeleteBinding(key.Namespace, key.Name))
		},
		"scores": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			object := scored(clusterNames.Draw(t, "cluster"), addOns.Draw(t, "add-on"), map[string]int32{
				rapid.SampledFrom([]string{"x", "y"}).Draw(t, "item"): rapid.Int32Range(-101, 101).Draw(t, "value"),
			})
			if rapid.Bool().Draw(t, "ends") {
				object.Status.ValidUntil = &metav1.Time{Time: now.Add(time.Duration(rapid.IntRange(-1, 1).Draw(t, "minutes")) * time.Minute)}
			}
			w.scores[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
			return of(s.SetScores(object))
		},
		"scores go": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := types.NamespacedName{Namespace: clusterNames.Draw(t, "cluster"), Name: addOns.Draw(t, "add-on")}
			delete(w.scores, key)
			return of(s.DeleteScores(key.Namespace, key.Name))
		},
		"placement": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := drawKey(t)
			w.versions++
			object := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: types.UID(key.Name), Generation: w.versions}}
			if err := yaml.UnmarshalStrict([]byte(drawSpec(t)), &object.Spec); err != nil {
				t.Fatal(err)
			}
			w.placements[key] = object
			if clusters, foreign := w.foreign[key]; foreign { // it is handed over
				delete(w.foreign, key)
				w.has[key] = choice{clusters, 0}
			}
			s.SetPlacement(object)
			s.Restore(key, w.has[key].clusters, w.has[key].generation)
			return nil, key
		},
		"placement goes": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := drawKey(t)
			delete(w.placements, key)
			delete(w.foreign, key)
			delete(w.has, key)
			s.DeletePlacement(key)
			return nil, key
		},
		"placement elsewhere": func(t *rapid.T, w *world, s *State) ([]types.NamespacedName, types.NamespacedName) {
			key := drawKey(t)
			delete(w.placements, key)
			delete(w.has, key)
			w.foreign[key] = rapid.SliceOfN(clusterNames, 0, 3).Draw(t, "clusters")
			s.SetUnmanaged(key, w.foreign[key])
			return nil, key
		},
	}
}

func drawKey(t *rapid.T) types.NamespacedName {
	return types.NamespacedName{Namespace: namespaces.Draw(t, "namespace"), Name: rapid.SampledFrom([]string{"p", "q", "r"}).Draw(t, "placement")}
}

// step makes a random change, and then some of the decisions that it affects.
func (w *world) step(t *rapid.T, s *State, look func(name string, affected []types.NamespacedName, about types.NamespacedName)) {
	all := changes()
	name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "change")
	affected, about := all[name](t, w, s)
	look(name, affected, about)
	slices.SortFunc(affected, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range append(affected, about) {
		if rapid.Bool().Draw(t, "decide") {
			w.decide(s, key)
		}
	}
}
