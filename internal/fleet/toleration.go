package fleet

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Forever is the end of tolerations and scores that do not end.
const Forever int64 = math.MaxInt64

// TolerationOperator is the relation of a toleration to the value of a taint.
type TolerationOperator uint8

const (
	// TolerateEqual matches taints with the key and value of the toleration.
	TolerateEqual TolerationOperator = iota
	// TolerateExists matches taints with the key of the toleration and any value.
	TolerateExists
)

// Toleration allows a placement to choose clusters with a matching taint.
type Toleration struct {
	// Key is the key of the taint. "" matches all keys with TolerateExists, and none
	// with TolerateEqual, which the API does not allow.
	Key      string
	Operator TolerationOperator
	Value    string
	// Effect is the effect of the taint; AnyEffect matches all.
	Effect Effect
	// Seconds is how long the taint is tolerated after it was added, forever if nil.
	// It is ignored for NoSelectIfNew, which never removes a cluster.
	Seconds *int64
}

// matches reports whether the toleration is for a taint.
func (t *Toleration) matches(taint *Taint) bool {
	if t.Effect != AnyEffect && t.Effect != taint.Effect {
		return false
	}
	switch t.Operator {
	case TolerateEqual:
		return t.Key != "" && t.Key == taint.Key && t.Value == taint.Value
	case TolerateExists:
		return t.Key == "" || t.Key == taint.Key
	}
	return false
}

// end returns the time at which the toleration of a matching taint ends.
func (t *Toleration) end(taint *Taint) int64 {
	if t.Seconds == nil || taint.Effect == NoSelectIfNew {
		return Forever
	}
	return resources.Add(taint.Added, *t.Seconds)
}

// toleratedUntil returns the time at which the last matching toleration of a taint
// ends, math.MinInt64 if none matches.
func toleratedUntil(taint *Taint, tolerations []Toleration) int64 {
	last := int64(math.MinInt64)
	for i := range tolerations {
		if t := &tolerations[i]; t.matches(taint) {
			last = max(last, t.end(taint))
		}
	}
	return last
}

// checkTaints returns the index of the first taint that makes a cluster
// infeasible, or -1; whether a PreferNoSelect taint is not tolerated; and the time
// at which the first toleration ends, Forever if none does. If the cluster is
// infeasible, the other taints do not matter.
func (r *Request) checkTaints(c *Cluster, chosen bool) (taintIndex int32, avoided bool, until int64) {
	until = Forever
	for i := range c.Taints {
		taint := &c.Taints[i]
		if taint.Effect == NoSelectIfNew && chosen {
			continue
		}
		end := toleratedUntil(taint, r.Tolerations)
		switch {
		case end == Forever:
		case r.Now < end:
			until = min(until, end)
		case taint.Effect == PreferNoSelect:
			avoided = true
		default:
			return int32(i), false, Forever
		}
	}
	return -1, avoided, until
}
