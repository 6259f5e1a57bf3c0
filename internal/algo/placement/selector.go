package placement

import "slices"

// Operator is how a requirement relates a key to its values.
type Operator uint8

const (
	// In: the key is there, with one of the values.
	In Operator = iota
	// NotIn: the key is not there, or with none of the values.
	NotIn
	// Exists: the key is there.
	Exists
	// DoesNotExist: the key is not there.
	DoesNotExist
)

// Requirement is one condition on labels or claims, with the meaning that
// Kubernetes gives to it in label selectors. `matchLabels: {k: v}` is {k, In,
// [v]}.
type Requirement struct {
	Key      string
	Operator Operator
	// Values for In and NotIn, in any order; the others do not look at them.
	Values []string
}

// matches reports whether the requirement holds. An unknown operator never does.
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

// Predicate is one way for a cluster to qualify.
type Predicate struct {
	Selector
	// Match is a further condition on the cluster with this index in the fleet,
	// none if nil. It is asked last, and only where the selector matches: it is
	// meant for expressions, which cost much more. It must be a function of the
	// cluster alone.
	Match func(cluster int) bool
}

// qualifies reports whether any predicate matches; without any, all clusters do.
func (r *Request) qualifies(i int32) bool {
	if len(r.Predicates) == 0 {
		return true
	}
	c := r.Fleet[i]
	for p := range r.Predicates {
		predicate := &r.Predicates[p]
		if predicate.matches(c) && (predicate.Match == nil || predicate.Match(int(i))) {
			return true
		}
	}
	return false
}
