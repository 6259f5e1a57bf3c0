package decide

import (
	"math"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Forever is the end of tolerations and scores that do not end.
const Forever int64 = math.MaxInt64

// tolerates reports whether a toleration is for a taint. An empty key matches all keys with operator Exists, and none with
// Equal, which the API does not allow.
func tolerates(t *clusterv1beta1.Toleration, taint *clusterv1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	switch t.Operator {
	case clusterv1beta1.TolerationOpEqual, "":
		return t.Key != "" && t.Key == taint.Key && t.Value == taint.Value
	case clusterv1beta1.TolerationOpExists:
		return t.Key == "" || t.Key == taint.Key
	}
	return false
}

// endOf returns the time at which the toleration of a matching taint ends. The limit does not apply to NoSelectIfNew, which
// never removes a cluster.
func endOf(t *clusterv1beta1.Toleration, taint *clusterv1.Taint) int64 {
	if t.TolerationSeconds == nil || taint.Effect == clusterv1.TaintEffectNoSelectIfNew {
		return Forever
	}
	return resources.Add(taint.TimeAdded.Unix(), *t.TolerationSeconds)
}

// toleratedUntil returns the time at which the last matching toleration of a taint
// ends, math.MinInt64 if none matches.
func toleratedUntil(taint *clusterv1.Taint, tolerations []clusterv1beta1.Toleration) int64 {
	last := int64(math.MinInt64)
	for i := range tolerations {
		if t := &tolerations[i]; tolerates(t, taint) {
			last = max(last, endOf(t, taint))
		}
	}
	return last
}

// checkTaints returns the index of the first taint that makes a cluster
// infeasible, or -1; whether a PreferNoSelect taint is not tolerated; and the time
// at which the first toleration ends, Forever if none ends. If the cluster is
// infeasible, the other taints do not matter.
func (r *Request) checkTaints(c *Cluster, chosen bool) (taintIndex int32, avoided bool, until int64) {
	until = Forever
	for i := range c.Taints {
		taint := &c.Taints[i]
		if taint.Effect == clusterv1.TaintEffectNoSelectIfNew && chosen {
			continue
		}
		end := toleratedUntil(taint, r.Tolerations)
		switch {
		case end == Forever:
		case r.Now < end:
			until = min(until, end)
		case taint.Effect == clusterv1.TaintEffectPreferNoSelect:
			avoided = true
		default:
			return int32(i), false, Forever
		}
	}
	return -1, avoided, until
}
