package replay

import (
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// result returns the result of the run so far.
func (r *run) result(interrupted bool) result.Run {
	reasons := r.recorded.reasonsOfDeleted()
	pending := make(map[int32]bool, len(r.queue.pending))
	for _, number := range r.queue.pending {
		p := &r.pods[number]
		pending[number] = true
		r.totals.AddUnschedulable(float64(p.pendingSeconds + max(r.now-p.pendingSince, 0)))
		reason := r.queue.reasons[number]
		if r.autoscaler != nil {
			reason += r.autoscaler.PendingReason(number)
		}
		reasons[reason]++
		if p.hadNode {
			r.scheduledPods-- // The pod was evicted.
		}
	}
	for _, number := range r.scheduled {
		if !pending[number] {
			r.totals.AddScheduled(float64(r.pods[number].pendingSeconds))
		}
	}
	run := result.Run{
		Outcome: r.totals.Result(), Scheduled: r.scheduledPods, NotArrived: len(r.arrivals) - r.arrived,
		Reasons: reasons, Seconds: max(r.now, 0), Interrupted: interrupted,
		TimeSeries: r.timeSeries.result(), Decisions: r.decisions.result(r.input.Pods, r.now),
	}
	if r.autoscaler != nil {
		run.Scaling = r.autoscaler.Result(r.now)
	}
	run.Recorded = r.recorded.result()
	return run
}
