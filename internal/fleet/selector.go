package fleet

import "slices"

// Operator is how a requirement relates a key to its values.
type Operator uint8

const (
	// In requires the key with one of the values.
	In Operator = iota
	// NotIn requires that the key is absent or has none of the values.
	NotIn
	// Exists requires the key.
	Exists
	// DoesNotExist requires that the key is absent.
	DoesNotExist
)

// Requirement is a condition on labels or claims, as in label selectors of
// Kubernetes. `matchLabels: {k: v}` is {k, In, [v]}.
type Requirement struct {
	Key      string
	Operator Operator
	// Values are those of In and NotIn, in any order; the other operators ignore them.
	Values []string
}

// matches reports whether labels or claims meet the requirement. No set meets an
// unknown operator.
func (r *Requirement) matches(set map[string]string) bool {
	value, found := set[r.Key]
	switch r.Operator {
	case In:
		return found && slices.Contains(r.Values, value)
	case NotIn:
		return !found || !slices.Contains(r.Values, value)
	case Exists:
		return found
	case DoesNotExist:
		return !found
	}
	return false
}

// Selector matches clusters that meet all of its requirements; the zero value
// matches all clusters.
type Selector struct {
	Labels, Claims []Requirement
}

// matches reports whether a cluster meets all requirements.
func (s *Selector) matches(c *Cluster) bool {
	for i := range s.Labels {
		if !s.Labels[i].matches(c.Labels) {
			return false
		}
	}
	for i := range s.Claims {
		if !s.Claims[i].matches(c.Claims) {
			return false
		}
	}
	return true
}

// Predicate is a condition on clusters.
type Predicate struct {
	Selector
	// Match is a further condition on the cluster with an index in the fleet, none if
	// nil. It is only called for clusters that the selector matches, because
	// expressions are slow. Its result must only depend on the cluster.
	Match func(cluster int) bool
}
