package fleet

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fairqueue"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
)

// State is the state of a hub: clusters, cluster sets and placements. Methods that set
// or delete an object return the placements whose decisions can change, in no order.
// It is safe for concurrent use. It retains objects and does not change them.
type State struct {
	mu sync.Mutex
	// fleet is sorted by name. It is replaced, never changed: results refer to it.
	fleet   []*decide.Cluster
	entries map[string]*entry
	// counts has the number of decisions for each cluster of the fleet.
	counts []int32
	// decision is the memory for the next decision.
	decision *decide.Decision
	sets     map[string]*set
	// bindings has the names of bound sets by namespace.
	bindings   map[string]map[string]bool
	placements map[types.NamespacedName]*placementState
	// queue has the placements with expressions to compile or evaluate, by namespace. queued has a value if the queue may
	// have become non-empty.
	queue  *fairqueue.Levels[string, types.NamespacedName]
	queued chan struct{}
	// evaluators bounds the goroutines that compile or evaluate expressions. Half of the CPUs remain
	// for decisions without expressions.
	evaluators *semaphore.Weighted
	// maxCost is maxTotalCost. Tests lower it.
	maxCost int64
}

// entry has the data of a cluster that only some decisions use.
type entry struct {
	object *clusterv1.ManagedCluster
	// scores is replaced, never changed: value and the cluster of the fleet refer to it.
	scores map[string]*decide.AddOnScores
	// value is the cluster for expressions, nil until needed.
	value *expression.Cluster
	// limit is the limit of the cluster, nil if it has none, and capacity its capacity, nil if it reports none.
	limit    *limit
	capacity *ClusterCapacity
	// promised are the workloads of placements with promises in the cluster.
	promised []*placementWorkload
}

// placementState is the state of a placement.
type placementState struct {
	uid        types.UID
	generation int64
	policy     *placementPolicy // nil with errs
	errs       field.ErrorList
	// selected are the selected clusters, sorted, and decidedGeneration the generation
	// of the spec that selected them, 0 if unknown.
	selected          []string
	decidedGeneration int64
	// feasible is a bit set of the feasible clusters by index in the fleet; nil if
	// unknown.
	feasible []uint64
	// outcomes has the outcome of the expressions of each predicate by cluster.
	outcomes []map[*decide.Cluster]expression.Outcome
	// uncompiled is a new version that is to be compiled, nil if there is none.
	uncompiled *uncompiled
	// waiting has the expressions that are to be evaluated, nil if there are none.
	waiting *waiting
	// workload is nil if the placement names none. lacksRoom is set if it did not fit enough clusters.
	workload  *placementWorkload
	lacksRoom bool
}

// unmanaged reports whether another controller decides the placement.
func (p *placementState) unmanaged() bool { return p.policy == nil && len(p.errs) == 0 }

// maxEvaluators returns the number of goroutines that may compile or evaluate expressions.
func maxEvaluators() int64 { return int64(max(1, runtime.GOMAXPROCS(0)/2)) }

// NewState returns the state of a hub without objects.
func NewState() *State {
	return &State{
		entries: map[string]*entry{}, sets: map[string]*set{}, bindings: map[string]map[string]bool{},
		placements: map[types.NamespacedName]*placementState{},
		queue:      fairqueue.NewLevels[string, types.NamespacedName](1), queued: make(chan struct{}, 1),
		evaluators: semaphore.NewWeighted(maxEvaluators()), maxCost: maxTotalCost,
		decision: new(decide.Decision),
	}
}

// indexOf returns the index of a cluster in the fleet, or the index to insert it at.
func (s *State) indexOf(name string) (int, bool) {
	return slices.BinarySearchFunc(s.fleet, name, func(c *decide.Cluster, name string) int { return strings.Compare(c.Name, name) })
}

// SetCluster adds or updates a cluster. A cluster with a deletion timestamp is removed.
// An update of heartbeat times has no effect.
func (s *State) SetCluster(object *clusterv1.ManagedCluster) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object.DeletionTimestamp != nil {
		return s.deleteCluster(object.Name)
	}
	cluster := clusterOf(object)
	i, known := s.indexOf(object.Name)
	e := s.entry(object.Name)
	cluster.Scores = e.scores
	limit := limitOf(object)
	if !known {
		e.object, e.limit = object, limit
		s.fleet = slices.Insert(slices.Clone(s.fleet), i, cluster)
		s.counts = slices.Insert(s.counts, i, s.countOf(object.Name))
		s.resetIndexes()
		return s.affected(cluster, nil, existence, "")
	}
	old := s.fleet[i]
	fields := changedFields(old, cluster)
	if !e.limit.equals(limit) {
		fields |= capacityFields
	}
	if fields == 0 && sameForExpressions(e.object, object) {
		return nil
	}
	fields |= otherFields
	e.object, e.limit, e.value = object, limit, nil
	s.fleet = slices.Clone(s.fleet)
	s.fleet[i] = cluster
	if fields&labelFields != 0 {
		s.resetMembers()
	}
	return s.affected(cluster, old, fields, "")
}

// placementOf returns the state of a placement. A new object of its name has no decisions and promises: they belong to the deleted one.
func (s *State) placementOf(object *v1beta1.Placement) *placementState {
	p := s.placement(types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
	if p.uid != "" && p.uid != object.UID {
		s.deleteWorkload(p)
		s.setSelected(p, nil)
		p.generation, p.decidedGeneration = 0, 0
	}
	p.uid = object.UID
	return p
}

// placement returns the state of a placement and adds it if it is missing.
func (s *State) placement(key types.NamespacedName) *placementState {
	p := s.placements[key]
	if p == nil {
		p = &placementState{}
		s.placements[key] = p
	}
	return p
}

// entry returns the entry of a cluster and adds it if it is missing. Scores, capacities and promises may be set before the cluster.
func (s *State) entry(name string) *entry {
	e := s.entries[name]
	if e == nil {
		e = &entry{}
		s.entries[name] = e
	}
	return e
}

// dropIfEmpty removes the entry of a cluster if it has no data.
func (s *State) dropIfEmpty(name string) {
	if e := s.entries[name]; e.object == nil && e.capacity == nil && len(e.scores)+len(e.promised) == 0 {
		delete(s.entries, name)
	}
}

// countOf returns the number of placements that selected a cluster.
func (s *State) countOf(name string) (n int32) {
	for _, p := range s.placements {
		if _, has := slices.BinarySearch(p.selected, name); has {
			n++
		}
	}
	return n
}

// sameForExpressions reports whether two versions of a cluster are equal for
// expressions: metadata of the API server and heartbeat times are ignored.
func sameForExpressions(a, b *clusterv1.ManagedCluster) bool {
	return maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		a.Status.Version == b.Status.Version && equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		equality.Semantic.DeepEqual(a.Status.Capacity, b.Status.Capacity) &&
		equality.Semantic.DeepEqual(a.Status.ManagedNamespaces, b.Status.ManagedNamespaces) &&
		slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(a, b metav1.Condition) bool {
			return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
		})
}

// DeleteCluster removes a cluster.
func (s *State) DeleteCluster(name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.deleteCluster(name)
}

// deleteCluster is DeleteCluster for callers that hold the lock.
func (s *State) deleteCluster(name string) []types.NamespacedName {
	i, known := s.indexOf(name)
	if !known {
		return nil
	}
	affected := s.affected(s.fleet[i], nil, existence, "")
	s.fleet = slices.Delete(slices.Clone(s.fleet), i, i+1)
	s.counts = slices.Delete(s.counts, i, i+1)
	e := s.entries[name]
	e.object, e.limit, e.value = nil, nil, nil
	s.dropIfEmpty(name)
	s.resetIndexes()
	return affected
}

// resetIndexes drops everything that has indexes of the fleet.
func (s *State) resetIndexes() {
	s.resetMembers()
	for _, p := range s.placements {
		p.feasible = nil
	}
}

// resetMembers drops the members of all sets.
func (s *State) resetMembers() {
	for _, set := range s.sets {
		set.members = nil
	}
}

// SetScores adds or updates the scores of an add-on for the cluster with the name of
// its namespace.
func (s *State) SetScores(object *clusterv1alpha1.AddOnPlacementScore) []types.NamespacedName {
	score := &decide.AddOnScores{Values: make(map[string]int32, len(object.Status.Scores)), Until: decide.Forever}
	for _, item := range object.Status.Scores {
		score.Values[item.Name] = item.Value
	}
	if object.Status.ValidUntil != nil {
		score.Until = object.Status.ValidUntil.Unix()
	}
	return s.changeScores(object.Namespace, object.Name, score)
}

// DeleteScores removes an AddOnPlacementScore.
func (s *State) DeleteScores(cluster, name string) []types.NamespacedName {
	return s.changeScores(cluster, name, nil)
}

// changeScores sets or, if score is nil, removes an AddOnPlacementScore.
func (s *State) changeScores(cluster, name string, score *decide.AddOnScores) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	if score == nil && s.entries[cluster] == nil {
		return nil
	}
	e := s.entry(cluster)
	before := e.scores[name]
	if before == score || before != nil && score != nil && before.Until == score.Until && maps.Equal(before.Values, score.Values) {
		return nil
	}
	scores := maps.Clone(e.scores)
	switch {
	case score == nil && len(scores) <= 1:
		scores = nil
	case score == nil:
		delete(scores, name)
	case scores == nil:
		scores = map[string]*decide.AddOnScores{name: score}
	default:
		scores[name] = score
	}
	e.scores, e.value = scores, nil
	i, known := s.indexOf(cluster)
	if !known {
		s.dropIfEmpty(cluster)
		return nil
	}
	// A new pointer, because outcomes are by pointer: expressions are evaluated again.
	updated := *s.fleet[i]
	updated.Scores = scores
	s.fleet = slices.Clone(s.fleet)
	s.fleet[i] = &updated
	return s.affected(&updated, nil, scoreFields, name)
}

// SetClusterSet adds or updates a cluster set.
func (s *State) SetClusterSet(object *clusterv1beta2.ManagedClusterSet) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	updated := newSet(object)
	if old := s.sets[object.Name]; old != nil && old.equals(updated) {
		return nil
	}
	s.sets[object.Name] = updated
	return s.placementsBoundTo(object.Name)
}

// DeleteClusterSet removes a cluster set.
func (s *State) DeleteClusterSet(name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sets, name)
	return s.placementsBoundTo(name)
}

// SetBinding adds or updates the binding of a cluster set to a namespace.
func (s *State) SetBinding(object *clusterv1beta2.ManagedClusterSetBinding) []types.NamespacedName {
	// The API requires that a binding has the name of its set: a binding with another name is invalid.
	return s.changeBinding(object.Namespace, object.Name, object.Name == object.Spec.ClusterSet)
}

// DeleteBinding removes the binding of a cluster set to a namespace.
func (s *State) DeleteBinding(namespace, name string) []types.NamespacedName {
	return s.changeBinding(namespace, name, false)
}

// changeBinding sets whether a cluster set is bound to a namespace.
func (s *State) changeBinding(namespace, set string, isBound bool) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound, isShared := s.bindings[namespace], s.isShared()
	switch {
	case bound[set] == isBound:
		return nil
	case !isBound && len(bound) == 1:
		delete(s.bindings, namespace)
	case !isBound:
		delete(bound, set)
	case bound == nil:
		s.bindings[namespace] = map[string]bool{set: true}
	default:
		bound[set] = true
	}
	return s.placementsWhere(func(key types.NamespacedName, p *placementState) bool {
		return key.Namespace == namespace || s.isShared() != isShared && p.workload != nil // the shares of all namespaces change
	})
}
