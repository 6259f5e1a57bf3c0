package fleet

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/placement"
)

// set is a cluster set.
type set struct {
	name string
	// selector of the labels of its clusters; one that cannot be read selects none,
	// and harms no other set.
	selector labels.Selector
	// members are indexes in the fleet, ascending; nil if that is not known.
	members []int32
}

func newSet(object *clusterv1beta2.ManagedClusterSet) *set {
	s := &set{name: object.Name, selector: labels.Nothing()}
	switch object.Spec.ClusterSelector.SelectorType {
	case clusterv1beta2.LabelSelector:
		if selector, err := metav1.LabelSelectorAsSelector(object.Spec.ClusterSelector.LabelSelector); err == nil {
			s.selector = selector
		}
	case clusterv1beta2.ExclusiveClusterSetLabel, "":
		s.selector = labels.SelectorFromSet(labels.Set{clusterv1beta2.ClusterSetLabel: object.Name})
	}
	return s
}

func (s *set) same(other *set) bool {
	// The one that selects nothing and the one that selects everything are both
	// written as "".
	return s.selector.String() == other.selector.String() && s.selector.Empty() == other.selector.Empty()
}

func (s *set) has(c *placement.Cluster) bool { return s.selector.Matches(labels.Set(c.Labels)) }

// of returns the clusters of the set.
func (s *set) of(fleet []*placement.Cluster) []int32 {
	if s.members == nil {
		s.members = []int32{}
		for i, c := range fleet {
			if s.has(c) {
				s.members = append(s.members, int32(i))
			}
		}
	}
	return s.members
}

// reachable returns the sets that a policy in a namespace draws on, and which of
// the names that it asks for are not bound there or do not exist.
func (s *State) reachable(namespace string, policy *Policy) (sets []*set, unbound []string) {
	if len(policy.sets) == 0 {
		for name := range s.bindings[namespace] { // their union has no order
			if set := s.sets[name]; set != nil {
				sets = append(sets, set)
			}
		}
		return sets, nil
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

// reaches reports whether a cluster is in a set that a policy draws on.
func (s *State) reaches(namespace string, policy *Policy, c *placement.Cluster) bool {
	sets, _ := s.reachable(namespace, policy)
	return slices.ContainsFunc(sets, func(set *set) bool { return set.has(c) })
}

// union returns the clusters of any of the sets, ascending.
func union(fleet []*placement.Cluster, sets []*set) []int32 {
	if len(sets) == 1 {
		return sets[0].of(fleet)
	}
	var all []int32
	for _, set := range sets {
		all = append(all, set.of(fleet)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
