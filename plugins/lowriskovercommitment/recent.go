package lowriskovercommitment

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// amounts are amounts of the two measured resources, in millicores and bytes.
type amounts struct{ cpu, memory float64 }

// unmeasured returns the expected use of pods that a reading of load does not include: their requests,
// or kube-scheduler's default for containers without requests. Load is an average over a window; of a
// pod that arrived during the window, the missing fraction is added.
func unmeasured(sums *noderes.Sums, reading load.Reading) amounts {
	var sum amounts
	sums.Pods(func(pod *v1.Pod, cpu, memory int64) {
		if fraction := missingFraction(pod, reading.Time, reading.Window); fraction > 0 {
			sum.cpu += fraction * float64(cpu)
			sum.memory += fraction * float64(memory)
		}
	})
	return sum
}

// missingFraction returns the fraction of a window, given by its end and its length, during which the
// pod was not yet on its node, in [0, 1].
func missingFraction(pod *v1.Pod, end time.Time, window time.Duration) float64 {
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
