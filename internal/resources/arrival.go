package resources

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
)

// Arrival is the time at which a pod was bound to its node, in microseconds since 1970.
type Arrival int64

const (
	// notBound is the arrival of a pod that the scheduler has assumed and not yet bound.
	notBound Arrival = math.MaxInt64
	// unknownArrival is the arrival of a pod that was never pending, such as a pod of a hand-written manifest.
	unknownArrival Arrival = math.MinInt64
)

// ArrivalOf returns the arrival of a pod.
func ArrivalOf(pod *v1.Pod) Arrival {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			if c.LastTransitionTime.IsZero() {
				return unknownArrival
			}
			return Arrival(c.LastTransitionTime.UnixMicro())
		}
	}
	switch {
	case pod.Status.StartTime != nil:
		return Arrival(pod.Status.StartTime.UnixMicro())
	case !pod.CreationTimestamp.IsZero() && (pod.Status.Phase == v1.PodPending || pod.Status.Phase == ""):
		return notBound
	}
	return unknownArrival
}

// MissingFraction returns the fraction of a window, given by its end and its length, during which the
// pod was not yet on its node, in [0, 1].
func (a Arrival) MissingFraction(end time.Time, window time.Duration) float64 {
	switch {
	case a == unknownArrival:
		return 0
	case a == notBound, a >= Arrival(end.Truncate(time.Second).UnixMicro()): // API times are whole seconds
		return 1
	case window <= 0:
		return 0
	}
	return min(max(1-end.Sub(time.UnixMicro(int64(a))).Seconds()/window.Seconds(), 0), 1)
}
