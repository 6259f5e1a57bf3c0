package lowriskovercommitment

import (
	"time"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// amounts are of the two resources that load is measured of: millicores and
// bytes.
type amounts struct{ cpu, memory float64 }

// unmeasured returns what the pods of a node that came too late for a reading
// will use beside it: their requests, or what kube-scheduler takes a container
// to use that requests nothing. Load is an average of the past. Of a pod that
// came in the middle of the reading's window it has a part; the rest is added.
func unmeasured(node fwk.NodeInfo, reading load.Reading) amounts {
	var sum amounts
	for _, info := range node.GetPods() {
		share := missing(info.GetPod(), reading.Time, reading.Window)
		if share == 0 {
			continue
		}
		pod := info.CalculateResource()
		sum.cpu += share * float64(pod.Non0CPU)
		sum.memory += share * float64(pod.Non0Mem)
	}
	return sum
}

// missing returns the part of the window that ended at an instant in which the
// pod was not on its node, in [0, 1].
func missing(pod *v1.Pod, end time.Time, window time.Duration) float64 {
	came, known := arrival(pod)
	switch {
	case !known:
		return 0
	case came.IsZero(), !came.Before(end.Truncate(time.Second)): // API times are whole seconds
		return 1
	case window <= 0:
		return 0
	}
	return min(max(1-end.Sub(came).Seconds()/window.Seconds(), 0), 1)
}

// arrival returns when a pod came to its node: zero for one that the scheduler
// has just placed, of which the API server knows nothing yet. It is unknown of
// pods that never were pending in a cluster, such as those of a hand-written
// manifest.
func arrival(pod *v1.Pod) (at time.Time, known bool) {
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
