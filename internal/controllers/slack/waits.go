package slack

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// scheduledAt returns the time at which a scheduler gave a pod its node (condition PodScheduled). It is zero for pods that do not
// count: pods without a node, placeholders, pods that only reserve capacity, pods of DaemonSets and static pods.
func scheduledAt(pod *v1.Pod) (at time.Time) {
	if pod.Spec.NodeName == "" || pod.Labels[slack.PlaceholderLabel] != "" || resources.IsNodeBound(pod) || resources.IsSpare(pod) {
		return at
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// podWaits recognizes the pods that got a node of a pool for the first time. It is not safe for concurrent use.
type podWaits struct {
	// from is the time since which pods are counted.
	from time.Time
	// counted are the counted pods that exist.
	counted sets.Set[types.UID]
}

func newPodWaits(now time.Time) podWaits {
	return podWaits{now.Truncate(time.Second), sets.Set[types.UID]{}}
}

// count counts a pod that is on a node of the pool, at the first of its events after it got the node. It reports whether it did, and
// how long the pod waited since its creation, or since the last scheduling gate was removed; ungated is zero if there was none. The
// clock of a scheduler may be behind the clock of the API server.
func (w *podWaits) count(pod *v1.Pod, ungated time.Time) (wait time.Duration, isFirst bool) {
	scheduled, arrival := scheduledAt(pod), pod.CreationTimestamp.Time
	if scheduled.IsZero() || scheduled.Before(w.from) || w.counted.Has(pod.UID) {
		return 0, false
	}
	if ungated.After(arrival) {
		arrival = ungated.Truncate(time.Second)
	}
	wait = max(0, scheduled.Sub(arrival))
	w.counted.Insert(pod.UID)
	return wait, true
}

// countWait counts a pod after an event, in the pools of its node. c.mu must be locked.
func (c *Controller) countWait(before, after *v1.Pod) {
	pod, isDeleted := after, after == nil
	if isDeleted {
		pod = before
	}
	if before != nil && len(before.Spec.SchedulingGates) > 0 && len(pod.Spec.SchedulingGates) == 0 {
		c.ungated[pod.UID] = c.now()
	}
	for name, t := range c.trackers {
		if t.HasNode(pod.Spec.NodeName) {
			if wait, isFirst := t.waits.count(pod, c.ungated[pod.UID]); isFirst {
				c.metrics.waits.WithLabelValues(name).Observe(wait.Seconds())
			}
		}
		if isDeleted {
			t.waits.counted.Delete(pod.UID)
		}
	}
	if isDeleted {
		delete(c.ungated, pod.UID)
	}
}
