package fleet

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// SetClusterSet adds or updates a cluster set.
func (s *State) SetClusterSet(object *clusterv1beta2.ManagedClusterSet) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, updated := s.sets[object.Name], newSet(object)
	if old != nil && old.equals(updated) {
		return nil
	}
	s.sets[object.Name] = updated
	return s.placementsOf(object.Name, old, updated)
}

// DeleteClusterSet removes a cluster set.
func (s *State) DeleteClusterSet(name string) []types.NamespacedName {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.sets[name]
	delete(s.sets, name)
	return s.placementsOf(name, old)
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
	bound := s.bindings[namespace]
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
	return s.placementsSharing(func(of string) bool { return of == namespace }, s.sets[set])
}

// placementsOf returns the placements that a change of a set, which has these versions, can change.
func (s *State) placementsOf(name string, versions ...*set) []types.NamespacedName {
	return s.placementsSharing(func(namespace string) bool { return s.bindings[namespace][name] }, versions...)
}

// placementsSharing returns the placements in some namespaces, and the ones with a workload that can select a cluster of sets, nil for
// none: after a change of the sets or of their bindings, other numbers of namespaces share their clusters.
func (s *State) placementsSharing(isIn func(namespace string) bool, sets ...*set) []types.NamespacedName {
	s.sharers = nil
	isShared := make([]bool, len(s.fleet))
	for _, set := range sets {
		if set != nil {
			for _, i := range set.clusters(s.fleet) {
				isShared[i] = true
			}
		}
	}
	return s.placementsWhere(func(key types.NamespacedName, p *placementState) bool {
		if isIn(key.Namespace) || p.workload == nil || p.policy == nil {
			return isIn(key.Namespace)
		}
		sets, _ := s.setsOf(key.Namespace, p.policy)
		return slices.ContainsFunc(sets, func(set *set) bool {
			return slices.ContainsFunc(set.clusters(s.fleet), func(i int32) bool { return isShared[i] })
		})
	})
}

// globalSetNamespace is the namespace to which Open Cluster Management itself binds the set of all clusters.
const globalSetNamespace = "open-cluster-management-global-set"

// sharersOf returns the number of namespaces that are bound to cluster sets with a cluster, at least 1.
func (s *State) sharersOf(cluster string) int64 {
	if s.sharers == nil {
		s.sharers = make([]int64, len(s.fleet))
		for namespace := range s.bindings {
			if namespace != globalSetNamespace {
				for _, i := range union(s.fleet, s.boundSets(namespace)) {
					s.sharers[i]++
				}
			}
		}
	}
	if i, known := s.indexOf(cluster); known {
		return max(s.sharers[i], 1)
	}
	return 1
}

// setsOf returns the cluster sets of a policy in a namespace, and the names in its
// clusterSets of sets that do not exist or are not bound to the namespace.
func (s *State) setsOf(namespace string, policy *placementPolicy) (sets []*set, unbound []string) {
	if len(policy.sets) == 0 {
		return s.boundSets(namespace), nil
	}
	for _, name := range policy.sets {
		if set := s.sets[name]; set != nil && s.bindings[namespace][name] {
			sets = append(sets, set)
		} else {
			unbound = append(unbound, name)
		}
	}
	return sets, unbound
}

// boundSets returns the cluster sets that are bound to a namespace, in no order. Bindings
// of sets that do not exist do not count.
func (s *State) boundSets(namespace string) (sets []*set) {
	for name := range s.bindings[namespace] {
		if set := s.sets[name]; set != nil {
			sets = append(sets, set)
		}
	}
	return sets
}

// contains reports whether a cluster is in a cluster set of a policy.
func (s *State) contains(namespace string, policy *placementPolicy, c *decide.Cluster) bool {
	sets, _ := s.setsOf(namespace, policy)
	return slices.ContainsFunc(sets, func(set *set) bool { return set.selects(c) })
}
