package fleet

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Selector matches clusters that meet all of its requirements; the zero value
// matches all clusters.
type Selector struct {
	Labels, Claims []metav1.LabelSelectorRequirement
}

// matches reports whether a cluster meets all requirements.
func (s *Selector) matches(c *Cluster) bool {
	for i := range s.Labels {
		if !meets(c.Labels, &s.Labels[i]) {
			return false
		}
	}
	for i := range s.Claims {
		if !meets(c.Claims, &s.Claims[i]) {
			return false
		}
	}
	return true
}

// meets reports whether labels or claims meet a requirement. No set meets an unknown operator.
func meets(set map[string]string, r *metav1.LabelSelectorRequirement) bool {
	value, found := set[r.Key]
	switch r.Operator {
	case metav1.LabelSelectorOpIn:
		return found && slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpNotIn:
		return !found || !slices.Contains(r.Values, value)
	case metav1.LabelSelectorOpExists:
		return found
	case metav1.LabelSelectorOpDoesNotExist:
		return !found
	}
	return false
}

// Predicate is a condition on clusters.
type Predicate struct {
	Selector
	// Match is a further condition on the cluster with an index in the fleet, none if
	// nil. It is only called for clusters that the selector matches, because
	// expressions are slow. Its result must only depend on the cluster.
	Match func(cluster int) bool
}
