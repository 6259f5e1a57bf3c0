package fleet

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

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

// countOf returns the number of placements that selected a cluster.
func (s *State) countOf(name string) (n int32) {
	for _, p := range s.placements {
		if _, has := slices.BinarySearch(p.selected, name); has {
			n++
		}
	}
	return n
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

// resetMembers drops the members of all sets, and the namespaces that share them.
func (s *State) resetMembers() {
	s.sharers = nil
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

// SetCapacity sets the capacity of a cluster, and returns the placements whose decisions can change.
func (s *State) SetCapacity(object *ClusterCapacity) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeCapacity(object.Namespace, object)
}

// DeleteCapacity removes the capacity of a cluster.
func (s *State) DeleteCapacity(cluster string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changeCapacity(cluster, nil)
}

func (s *State) changeCapacity(cluster string, object *ClusterCapacity) (keys []types.NamespacedName) {
	e := s.entry(cluster)
	if e.capacity != nil {
		for _, p := range s.placements {
			if p.workload != nil {
				delete(p.workload.fits, e.capacity.Summary)
			}
		}
	}
	e.capacity = object
	s.dropIfEmpty(cluster)
	if i, known := s.indexOf(cluster); known {
		keys = s.affected(s.fleet[i], nil, capacityFields, "")
	}
	return keys
}

// affected returns the placements whose decisions can change because some fields of a
// cluster changed. old is the cluster before the change, nil if it was in the same
// sets; addOn is the name of changed scores.
func (s *State) affected(cluster, old *decide.Cluster, fields fieldMask, addOn string) []types.NamespacedName {
	const feasibleOnly = amountFields | otherFields | scoreFields
	i, known := s.indexOf(cluster.Name)
	return s.placementsWhere(func(key types.NamespacedName, p *placementState) bool {
		switch {
		case p.policy == nil, p.policy.fields&fields == 0 && (p.workload == nil || fields&capacityFields == 0):
			return false
		case fields == scoreFields && !p.policy.addOns[addOn] && !p.policy.hasExpressions():
			return false
		// Amounts and scores of clusters that are not feasible do not matter.
		case fields&^feasibleOnly == 0 && !p.policy.hasExpressions() && p.feasible != nil && known && p.feasible[i/64]&(1<<(i%64)) == 0:
			return false
		}
		return s.contains(key.Namespace, p.policy, cluster) || old != nil && s.contains(key.Namespace, p.policy, old)
	})
}
