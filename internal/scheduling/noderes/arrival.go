package noderes

import (
	"time"

	v1 "k8s.io/api/core/v1"
)

// MissingFraction returns the fraction of a window, given by its end and its length, during which the
// pod was not yet on its node, in [0, 1].
func MissingFraction(pod *v1.Pod, end time.Time, window time.Duration) float64 {
	arrival, known := arrivalTime(pod)
	switch {
	case !known:
		return 0
	case arrival.IsZero(), !arrival.Before(end.Truncate(time.Second)): // API times are whole seconds
		return 1
	case window <= 0:
		return 0
	}
	return min(max(1-end.Sub(arrival).Seconds()/window.Seconds(), 0), 1)
}

// arrivalTime returns the time at which a pod was bound to its node. It is zero for a pod that the
// scheduler has assumed and not yet bound. It is unknown for pods that were never pending, such as
// those of a hand-written manifest.
func arrivalTime(pod *v1.Pod) (arrival time.Time, known bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			return c.LastTransitionTime.Time, !c.LastTransitionTime.IsZero()
		}
	}
	if pod.Status.StartTime != nil {
		return pod.Status.StartTime.Time, true
	}
	assumed := !pod.CreationTimestamp.IsZero() && (pod.Status.Phase == v1.PodPending || pod.Status.Phase == "")
	return time.Time{}, assumed
}
