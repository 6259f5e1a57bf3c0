package slack

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// atOnce is the longest wait of a pod whose node existed: times of the API are whole seconds, and kube-scheduler retries
	// a pod, for example after it has preempted placeholders, within 10 seconds. Machines take longer to boot.
	atOnce = 10 * time.Second
	// outcomeHours is the length of the period of an outcome, and outcomeInterval the shortest time between two changes of
	// status.outcome.
	outcomeHours    = 24
	outcomeInterval = 5 * time.Minute
)

// scheduledAt returns the time at which a scheduler gave a pod its node (condition PodScheduled). It is zero for pods that do not
// count in an outcome: pods without a node, placeholders, pods that only reserve capacity, pods of DaemonSets and static pods.
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

// podWaits counts the pods that got a node of a pool. It is not safe for concurrent use.
type podWaits struct {
	// from is the time since which pods are counted.
	from time.Time
	// hours are the numbers of pods by the hour since 1970 in which they got their node, and by the seconds for which they waited.
	hours map[int64]map[int64]int64
	// counted are the counted pods that exist.
	counted sets.Set[types.UID]
}

func newPodWaits(now time.Time) podWaits {
	return podWaits{now.Truncate(time.Second), map[int64]map[int64]int64{}, sets.Set[types.UID]{}}
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
	hour := scheduled.Unix() / 3600
	if w.hours[hour] == nil {
		w.hours[hour] = map[int64]int64{}
	}
	w.hours[hour][int64(wait/time.Second)]++
	w.counted.Insert(pod.UID)
	return wait, true
}

// outcome returns the outcome of the last 24 hours, nil if no pod got a node in them.
func (w *podWaits) outcome(now time.Time) *v1alpha1.Outcome {
	first := now.Unix()/3600 - outcomeHours + 1
	maps.DeleteFunc(w.hours, func(hour int64, _ map[int64]int64) bool { return hour < first })
	o, waits := &v1alpha1.Outcome{From: metav1.NewTime(w.from), To: metav1.Unix(now.Unix(), 0)}, map[int64]int64{}
	if begin := metav1.Unix(first*3600, 0); o.From.Before(&begin) {
		o.From = begin
	}
	for _, hour := range w.hours {
		for seconds, n := range hour {
			waits[seconds] += n
			if time.Duration(seconds)*time.Second > atOnce {
				o.Waited += n
			} else {
				o.AtOnce += n
			}
		}
	}
	all := o.AtOnce + o.Waited
	if all == 0 {
		return nil
	}
	seen := int64(0)
	for _, seconds := range slices.Sorted(maps.Keys(waits)) {
		if 100*seen < 99*all {
			o.P99WaitSeconds = seconds
		}
		seen += waits[seconds]
		o.LongestWaitSeconds = seconds
	}
	return o
}

// nextOutcome returns the outcome for a status that has the outcome before: the same one within outcomeInterval, or if only the
// period has changed.
func (w *podWaits) nextOutcome(before *v1alpha1.Outcome, now time.Time) *v1alpha1.Outcome {
	if before != nil && now.Sub(before.To.Time).Abs() < outcomeInterval {
		return before
	}
	after := w.outcome(now)
	if before == nil || after == nil {
		return after
	}
	same := *after
	same.From, same.To = before.From, before.To
	if same == *before {
		return before
	}
	return after
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
