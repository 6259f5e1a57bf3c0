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

// placementsBoundTo returns the placements in the namespaces that a set is bound to.
func (s *State) placementsBoundTo(set string) []types.NamespacedName {
	return s.placementsWhere(func(key types.NamespacedName, _ *placementState) bool { return s.bindings[key.Namespace][set] })
}

// globalSetNamespace is the namespace to which Open Cluster Management itself binds the set of all clusters.
const globalSetNamespace = "open-cluster-management-global-set"

// isShared reports whether several namespaces are bound to cluster sets.
func (s *State) isShared() bool {
	n := len(s.bindings)
	if _, isBound := s.bindings[globalSetNamespace]; isBound {
		n--
	}
	return n > 1
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
