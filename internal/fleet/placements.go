package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
)

// SetPlacement adds or updates a placement. It reports whether its spec is new.
func (s *State) SetPlacement(object *v1beta1.Placement) bool {
	key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
	if s.isCompiled(key, object) {
		return false
	}
	policy, errs := compilePolicy(object)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placementOf(object)
	p.generation, p.policy, p.errs = object.Generation, policy, errs
	p.feasible, p.outcomes, p.uncompiled = nil, nil, nil
	if policy != nil {
		p.outcomes = make([]map[*decide.Cluster]expression.Outcome, len(policy.request.Predicates))
	}
	return true
}

// isCompiled reports whether the spec of a placement equals the spec in the state.
func (s *State) isCompiled(key types.NamespacedName, object *v1beta1.Placement) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placements[key]
	return p != nil && p.uid == object.UID && p.generation == object.Generation && p.generation != 0
}

// DeletePlacement removes a placement and its decisions.
func (s *State) DeletePlacement(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.placements[key]; p != nil {
		s.deleteWorkload(p)
		s.setSelected(p, nil)
		delete(s.placements, key)
	}
}

// SetUnmanaged sets the clusters in the decisions of a placement that another
// controller decides. Prioritizer Balance counts them.
func (s *State) SetUnmanaged(key types.NamespacedName, clusters []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.placement(key)
	s.setSelected(p, sorted(clusters))
	*p = placementState{selected: p.selected, workload: p.workload}
	if w := p.workload; w != nil { // its pods in these clusters count
		promises := maps.Clone(w.promises)
		maps.DeleteFunc(promises, func(cluster string, _ podPromise) bool { return !slices.Contains(clusters, cluster) })
		s.setPromises(w, promises)
	}
}

// sorted returns the names in order, without duplicates.
func sorted(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// setSelected changes the selected clusters of a placement and the counts.
func (s *State) setSelected(p *placementState, clusters []string) {
	add := func(names []string, n int32) {
		for _, name := range names {
			if i, known := s.indexOf(name); known {
				s.counts[i] += n
			}
		}
	}
	add(p.selected, -1)
	p.selected = clusters
	add(p.selected, 1)
}

// placementsWhere returns the placements for which a function returns true.
func (s *State) placementsWhere(isTrue func(types.NamespacedName, *placementState) bool) (keys []types.NamespacedName) {
	for key, p := range s.placements {
		if isTrue(key, p) {
			keys = append(keys, key)
		}
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

// placementsBoundTo returns the placements in the namespaces that a set is bound to.
func (s *State) placementsBoundTo(set string) []types.NamespacedName {
	return s.placementsWhere(func(key types.NamespacedName, _ *placementState) bool { return s.bindings[key.Namespace][set] })
}

// Placements returns the names of the placements that are decided here, sorted.
func (s *State) Placements() []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := s.placementsWhere(func(_ types.NamespacedName, p *placementState) bool { return !p.unmanaged() })
	slices.SortFunc(keys, func(a, b types.NamespacedName) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return keys
}
