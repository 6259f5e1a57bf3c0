package placement

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"
)

// Forever is the instant that never comes: the end of what does not end.
const Forever int64 = math.MaxInt64

// TolerationOperator is how a toleration relates its key to its value.
type TolerationOperator uint8

const (
	// TolerateEqual: the taint has the toleration's key and value.
	TolerateEqual TolerationOperator = iota
	// TolerateExists: the taint has the toleration's key, with any value.
	TolerateExists
)

// Toleration lets a placement choose clusters in spite of a taint.
type Toleration struct {
	// Key of the taint; "" with TolerateExists matches all keys, and with
	// TolerateEqual, which the API forbids, none.
	Key      string
	Operator TolerationOperator
	Value    string
	// Effect of the taint; AnyEffect matches all.
	Effect Effect
	// Seconds after the taint was added for which it is tolerated; for ever if nil.
	// They do not count against NoSelectIfNew, which never drops a cluster.
	Seconds *int64
}

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

// end returns the instant at which the toleration of a taint that it matches
// ends.
func (t *Toleration) end(taint *Taint) int64 {
	if t.Seconds == nil || taint.Effect == NoSelectIfNew {
		return Forever
	}
	return saturate.Add(taint.Added, *t.Seconds)
}

// toleratedUntil returns the instant at which the last of the tolerations of a
// taint ends; if none matches it has always been over.
func toleratedUntil(taint *Taint, tolerations []Toleration) int64 {
	last := int64(math.MinInt64)
	for i := range tolerations {
		if t := &tolerations[i]; t.matches(taint) {
			last = max(last, t.end(taint))
		}
	}
	return last
}

// repelled says what the taints of a cluster do to a placement: the index of the
// first that rules it out, or -1; whether it is to be avoided; and the instant
// at which one of its tolerations ends, Forever if none does. Once a taint rules
// the cluster out, the others cannot change that.
func (r *Request) repelled(c *Cluster, chosen bool) (by int32, avoided bool, until int64) {
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
