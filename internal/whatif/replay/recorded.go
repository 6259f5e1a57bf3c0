package replay

import (
	"context"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
)

// addPlacement adds the first node that the scheduler selected for a pod, and the recorded node of the pod. Nodes of one kind are
// interchangeable: kube-scheduler selects one of them at random.
func (r *run) addPlacement(node, recorded string) {
	number, found := r.nodeNumbers[recorded]
	switch {
	case recorded == "":
		r.placements.NeverScheduled++
	case found && r.nodes[number].kind == r.nodes[r.nodeNumbers[node]].kind:
		r.placements.Same++
	default:
		r.placements.Other++
	}
}

func (r *run) nextRemoval() int64 {
	if len(r.removals) == 0 {
		return recording.Never
	}
	return r.input.Nodes[r.removals[0]].Gone
}

// removeRecorded removes the nodes that the recording shows going. Their pods are scheduled again.
func (r *run) removeRecorded(ctx context.Context) error {
	removed := false
	for r.nextRemoval() <= r.now {
		number := r.removals[0]
		r.removals = r.removals[1:]
		if !r.nodes[number].ready {
			continue
		}
		removed = true
		if err := r.removeNode(ctx, number); err != nil {
			return err
		}
	}
	if !removed {
		return nil
	}
	return r.retryPending(ctx)
}

// placeFixed places a pod on its recorded node. If there is no such node, the pod waits.
func (r *run) placeFixed(ctx context.Context, number int32) error {
	p := &r.input.Pods[number]
	node, ok := r.nodeNumbers[p.Recorded.Node]
	if !ok || !r.nodes[node].ready {
		r.queue.add(number, "waits in the recording, or its recorded node does not exist")
		return nil
	}
	if err := r.engine.Place(ctx, p.Object, p.Recorded.Node); err != nil {
		return err
	}
	r.placed(number, p.Recorded.Node)
	return nil
}

// deletePending removes a pod that was deleted while it was pending. Other pods are not affected.
func (r *run) deletePending(number int32) {
	p, state := &r.input.Pods[number], &r.pods[number]
	i := slices.Index(r.queue.pending, number)
	if p.Recorded == nil || p.Recorded.Deleted == 0 || p.Recorded.Deleted > r.now || i < 0 {
		return
	}
	r.queue.pending = slices.Delete(r.queue.pending, i, i+1)
	r.count(p.Arrival, func(t *result.Totals) { t.AddUnschedulable(state.pendingSeconds + r.now - state.pendingSince) })
	// The reason is kept for later pods of the same shape.
	r.reasons[r.queue.reasons[number]]++
	state.scheduled = false // The pod may have been evicted.
}
