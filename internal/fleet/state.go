package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

// State is what a hub knows of its fleet, its cluster sets and its placements.
// What is set and deleted returns the placements whose answer it can change, in
// no order. It is safe for concurrent use. Objects are kept and not changed.
type State struct {
	mu sync.Mutex
	// fleet is sorted by name and never changed, but replaced: decisions keep it.
	fleet   []*placement.Cluster
	entries map[string]*entry
	// counts are how many decisions each cluster of the fleet has.
	counts []int32
	sets   map[string]*set
	// bindings are the names of bound sets by namespace.
	bindings   map[string]map[string]bool
	placements map[types.NamespacedName]*placed
}

// entry is what is known of a cluster beside what all decisions look at.
type entry struct {
	object *clusterv1.ManagedCluster
	scores map[string]*addOnScore
	// variables are what expressions see, made when one asks.
	variables map[string]any
}

// addOnScore is what an add-on says of a cluster.
type addOnScore struct {
	values map[string]int32
	until  int64
}

// placed is what is known of a placement.
type placed struct {
	uid        types.UID
	generation int64
	policy     *Policy // nil with errs
	errs       field.ErrorList
	// chosen are the clusters that it has, sorted, as a spec of generation good
	// chose them; 0 if nobody knows.
	chosen []string
	good   int64
	// feasible are the clusters that could be chosen, by their index in the fleet;
	// nil if that is not known.
	feasible []uint64
	// memos are which clusters the expressions of each predicate hold for.
	memos []map[*placement.Cluster]bool
}

// foreign reports whether the placement is decided elsewhere.
func (p *placed) foreign() bool { return p.policy == nil && len(p.errs) == 0 }

// NewState returns a hub that knows nothing.
func NewState() *State {
	return &State{
		entries: map[string]*entry{}, sets: map[string]*set{}, bindings: map[string]map[string]bool{},
		placements: map[types.NamespacedName]*placed{},
	}
}

// find returns where a cluster is in the fleet, or would be.
func (s *State) find(name string) (int, bool) {
	return slices.BinarySearchFunc(s.fleet, name, func(c *placement.Cluster, name string) int { return strings.Compare(c.Name, name) })
}

// SetCluster takes a cluster in, or what has become of it. A heartbeat changes
// nothing. One that is being deleted is as good as gone.
func (s *State) SetCluster(object *clusterv1.ManagedCluster) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	if object.DeletionTimestamp != nil {
		return s.forget(object.Name)
	}
	is := clusterOf(object)
	i, known := s.find(object.Name)
	if !known {
		s.entries[object.Name] = &entry{object: object, scores: s.takeScores(object.Name)}
		s.fleet = slices.Insert(slices.Clone(s.fleet), i, is)
		s.counts = slices.Insert(s.counts, i, s.countOf(object.Name))
		s.moved()
		return s.affected(is, nil, Existence, "")
	}
	e, was := s.entries[object.Name], s.fleet[i]
	aspects := differ(was, is)
	if aspects == 0 && sameForExpressions(e.object, object) {
		return nil
	}
	aspects |= Others
	e.object, e.variables = object, nil
	s.fleet = slices.Clone(s.fleet)
	s.fleet[i] = is
	if aspects&Labels != 0 {
		s.relabelled()
	}
	return s.affected(is, was, aspects, "")
}

// takeScores returns what add-ons have said of a cluster before it was known.
func (s *State) takeScores(name string) map[string]*addOnScore {
	if e := s.entries[name]; e != nil {
		return e.scores
	}
	return map[string]*addOnScore{}
}

// countOf returns how many placements have a cluster.
func (s *State) countOf(name string) (n int32) {
	for _, p := range s.placements {
		if _, has := slices.BinarySearch(p.chosen, name); has {
			n++
		}
	}
	return n
}

// sameForExpressions reports whether two versions of a cluster are the same in
// what is not only of interest to the API server.
func sameForExpressions(a, b *clusterv1.ManagedCluster) bool {
	return maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		a.Status.Version == b.Status.Version && equality.Semantic.DeepEqual(a.Status.Allocatable, b.Status.Allocatable) &&
		equality.Semantic.DeepEqual(a.Status.Capacity, b.Status.Capacity) &&
		equality.Semantic.DeepEqual(a.Status.ManagedNamespaces, b.Status.ManagedNamespaces) && slices.EqualFunc(a.Status.Conditions, b.Status.Conditions, func(a, b metav1.Condition) bool {
		return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason
	})
}

// DeleteCluster forgets a cluster.
func (s *State) DeleteCluster(name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.forget(name)
}

func (s *State) forget(name string) []types.NamespacedName {
	i, known := s.find(name)
	if !known {
		return nil
	}
	was := s.fleet[i]
	affected := s.affected(was, nil, Existence, "")
	s.fleet = slices.Delete(slices.Clone(s.fleet), i, i+1)
	s.counts = slices.Delete(s.counts, i, i+1)
	s.entries[name].object = nil
	if len(s.entries[name].scores) == 0 {
		delete(s.entries, name)
	}
	s.moved()
	return affected
}

// moved notes that indexes of the fleet are others now.
func (s *State) moved() {
	s.relabelled()
	for _, p := range s.placements {
		p.feasible = nil
	}
}

// relabelled notes that clusters may be in other sets now.
func (s *State) relabelled() {
	for _, set := range s.sets {
		set.members = nil
	}
}

// SetScores takes in what an add-on says of the cluster that its namespace is
// named after.
func (s *State) SetScores(object *clusterv1alpha1.AddOnPlacementScore) []types.NamespacedName {
	score := &addOnScore{values: make(map[string]int32, len(object.Status.Scores)), until: placement.Forever}
	for _, item := range object.Status.Scores {
		score.values[item.Name] = item.Value
	}
	if object.Status.ValidUntil != nil {
		score.until = object.Status.ValidUntil.Unix()
	}
	return s.changeScores(object.Namespace, object.Name, score)
}

// DeleteScores forgets what an add-on says of a cluster.
func (s *State) DeleteScores(cluster, name string) []types.NamespacedName {
	return s.changeScores(cluster, name, nil)
}

func (s *State) changeScores(cluster, name string, score *addOnScore) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[cluster]
	if e == nil {
		if score == nil {
			return nil
		}
		e = &entry{scores: map[string]*addOnScore{}}
		s.entries[cluster] = e
	}
	before := e.scores[name]
	if before == score || before != nil && score != nil && before.until == score.until && maps.Equal(before.values, score.values) {
		return nil
	}
	if e.scores[name] = score; score == nil {
		delete(e.scores, name)
	}
	e.variables = nil
	i, known := s.find(cluster)
	if !known {
		if len(e.scores) == 0 {
			delete(s.entries, cluster)
		}
		return nil
	}
	// Another object, so that what expressions said of it is asked anew.
	again := *s.fleet[i]
	s.fleet = slices.Clone(s.fleet)
	s.fleet[i] = &again
	return s.affected(&again, nil, Scores, name)
}

// SetSet takes a cluster set in.
func (s *State) SetSet(object *clusterv1beta2.ManagedClusterSet) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := newSet(object)
	if was := s.sets[object.Name]; was != nil && was.same(is) {
		return nil
	}
	s.sets[object.Name] = is
	return s.boundTo(object.Name)
}

// DeleteSet forgets a cluster set.
func (s *State) DeleteSet(name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sets, name)
	return s.boundTo(name)
}

// SetBinding takes in that a set may be used in a namespace.
func (s *State) SetBinding(object *clusterv1beta2.ManagedClusterSetBinding) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	bound := s.bindings[object.Namespace]
	if bound == nil {
		bound = map[string]bool{}
		s.bindings[object.Namespace] = bound
	}
	// A binding has the name of its set; the API says so, and one that has not does
	// not count.
	counts := object.Name == object.Spec.ClusterSet
	if bound[object.Name] == counts {
		return nil
	}
	if bound[object.Name] = counts; !counts {
		delete(bound, object.Name)
	}
	return s.in(object.Namespace)
}

// DeleteBinding forgets that a set may be used in a namespace.
func (s *State) DeleteBinding(namespace, name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.bindings[namespace][name] {
		return nil
	}
	delete(s.bindings[namespace], name)
	return s.in(namespace)
}

// SetPlacement takes a placement in and reports whether its spec is a new one.
func (s *State) SetPlacement(object *v1beta1.Placement) bool {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	s.mu.Lock()
	p := s.placements[key]
	same := p != nil && p.uid == object.UID && p.generation == object.Generation && p.generation != 0
	s.mu.Unlock()
	if same {
		return false
	}
	policy, errs := Compile(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	if p = s.placements[key]; p == nil {
		p = &placed{}
		s.placements[key] = p
	}
	if p.uid != "" && p.uid != object.UID { // another one of that name: what the first had is not its
		s.choose(p, nil)
		p.good = 0
	}
	p.uid, p.generation, p.policy, p.errs, p.feasible, p.memos = object.UID, object.Generation, policy, errs, nil, nil
	if policy != nil {
		p.memos = make([]map[*placement.Cluster]bool, len(policy.predicates))
	}
	return true
}

// DeletePlacement forgets a placement, and that it has clusters.
func (s *State) DeletePlacement(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil {
		s.choose(p, nil)
		delete(s.placements, key)
	}
}

// Resume says which clusters a placement has, as a spec of a generation chose
// them (0 if nobody knows). It counts only until something is decided here.
func (s *State) Resume(key types.NamespacedName, clusters []string, generation int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil && p.good == 0 {
		s.choose(p, sorted(clusters))
		p.good = generation
	}
}

// SetForeign takes in which clusters a placement has that is decided elsewhere:
// the others are balanced against them.
func (s *State) SetForeign(key types.NamespacedName, clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	if p == nil || !p.foreign() {
		s.choose(cmp.Or(p, &placed{}), nil)
		p = &placed{}
		s.placements[key] = p
	}
	s.choose(p, sorted(clusters))
}

// sorted returns the names in order, each once.
func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// choose makes a placement have other clusters, and counts.
func (s *State) choose(p *placed, clusters []string) {
	count := func(names []string, by int32) {
		for _, name := range names {
			if i, known := s.find(name); known {
				s.counts[i] += by
			}
		}
	}
	count(p.chosen, -1)
	p.chosen = clusters
	count(p.chosen, 1)
}

// affected returns the placements whose answer can be another because a cluster
// differs in some aspects from what it was (nil: it was the same as far as sets
// go).
func (s *State) affected(is, was *placement.Cluster, aspects Aspect, addOn string) (keys []types.NamespacedName) {
	const amounts = AllocatableCPU | AllocatableMemory | CapacityCPU | CapacityMemory | Others
	i, known := s.find(is.Name)
	for key, p := range s.placements {
		if p.policy == nil || p.policy.reads&aspects == 0 {
			continue
		}
		if aspects == Scores && !p.policy.addOns[addOn] && !p.policy.hasExpressions() {
			continue
		}
		// What is no candidate may have any amounts.
		if aspects&^(amounts|Scores) == 0 && !p.policy.hasExpressions() && p.feasible != nil && known && p.feasible[i/64]&(1<<(i%64)) == 0 {
			continue
		}
		if s.reaches(key.Namespace, p.policy, is) || was != nil && s.reaches(key.Namespace, p.policy, was) {
			keys = append(keys, key)
		}
	}
	return keys
}

// in returns the placements of a namespace.
func (s *State) in(namespace string) (keys []types.NamespacedName) {
	for key := range s.placements {
		if key.Namespace == namespace {
			keys = append(keys, key)
		}
	}
	return keys
}

// boundTo returns the placements in the namespaces that a set is bound to.
func (s *State) boundTo(set string) (keys []types.NamespacedName) {
	for key := range s.placements {
		if s.bindings[key.Namespace][set] {
			keys = append(keys, key)
		}
	}
	return keys
}

// Placements returns the names of all placements that are decided here, in order.
func (s *State) Placements() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ours []types.NamespacedName
	for key, p := range s.placements {
		if !p.foreign() {
			ours = append(ours, key)
		}
	}
	return slices.SortedFunc(slices.Values(ours), func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
}
