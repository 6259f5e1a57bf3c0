package fleet

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
)

// set is a cluster set.
type set struct {
	// selector selects the clusters by label. An invalid selector selects none.
	selector labels.Selector
	// members are indexes in the fleet, ascending; nil if they must be computed.
	members []int32
}

// newSet converts a cluster set.
func newSet(object *clusterv1beta2.ManagedClusterSet) *set {
	s := &set{selector: labels.Nothing()}
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

// equals reports whether two sets select the same clusters.
func (s *set) equals(other *set) bool {
	// labels.Nothing and labels.Everything both have the string "".
	return s.selector.String() == other.selector.String() && s.selector.Empty() == other.selector.Empty()
}

// selects reports whether a cluster is in the set.
func (s *set) selects(c *decide.Cluster) bool { return s.selector.Matches(labels.Set(c.Labels)) }

// clusters returns the indexes of the clusters in the set.
func (s *set) clusters(fleet []*decide.Cluster) []int32 {
	if s.members == nil {
		s.members = []int32{}
		for i, c := range fleet {
			if s.selects(c) {
				s.members = append(s.members, int32(i))
			}
		}
	}
	return s.members
}

// union returns the clusters in any of the sets, ascending.
func union(fleet []*decide.Cluster, sets []*set) []int32 {
	if len(sets) == 1 {
		return sets[0].clusters(fleet)
	}
	var all []int32
	for _, set := range sets {
		all = append(all, set.clusters(fleet)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
