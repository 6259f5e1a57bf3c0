package replay

import (
	"container/heap"
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// queue has the pending pods, the oldest first.
type queue struct {
	pending []int32
	// unschedulableShapes are the shapes that have fit on no node since resources for them were
	// last freed, each with the number of a pod.
	unschedulableShapes map[int]int32
	// reasons why each pod is pending, from its last attempt.
	reasons map[int32]string
	// retry is set if resources were freed, so that pods have to be attempted again.
	retry bool
	// hasAffinity is set if a pending pod requires affinity to other pods, so that it
	// may fit after another pod was placed.
	hasAffinity bool
}

func newQueue() queue {
	return queue{unschedulableShapes: map[int]int32{}, reasons: map[int32]string{}}
}

// add adds a pod at the end.
func (q *queue) add(number int32, reason string) {
	q.pending = append(q.pending, number)
	q.reasons[number] = reason
}

// resourcesFreed records that a node has more free resources. Shapes that fit into them and pods
// without a shape are attempted again.
func (q *queue) resourcesFreed(pods []recording.InputPod, n *node) {
	q.retry = q.retry || len(q.pending) > 0
	for shape, number := range q.unschedulableShapes {
		if pods[number].Requests.FitsIn(n.free) {
			delete(q.unschedulableShapes, shape)
		}
	}
}

// retryPending attempts the pending pods again until no more resources are freed.
func (r *run) retryPending(ctx context.Context) error {
	for r.queue.retry && !r.interrupted() {
		pending := r.queue.pending
		r.queue.pending, r.queue.retry, r.queue.hasAffinity = nil, false, false
		for i, number := range pending {
			if r.interrupted() {
				r.queue.pending = append(r.queue.pending, pending[i:]...)
				break
			}
			if err := r.attempt(ctx, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// attempt schedules a pod, or adds it to the queue if it does not fit on any node.
func (r *run) attempt(ctx context.Context, number int32) error {
	p := &r.input.Pods[number]
	if p.Recorded != nil && p.Recorded.Fixed {
		return r.placeFixed(ctx, number)
	}
	if other, unschedulable := r.queue.unschedulableShapes[p.Shape]; unschedulable {
		r.queue.add(number, r.queue.reasons[other])
		return nil
	}
	name, err := r.engine.Schedule(ctx, p.Object, "")
	switch {
	case errors.Is(err, engine.ErrUnschedulable):
		r.queue.add(number, engine.Reasons(err))
		if p.Shape != 0 {
			r.queue.unschedulableShapes[p.Shape] = number
		}
		r.queue.hasAffinity = r.queue.hasAffinity || requiresPodAffinity(p.Object)
		return nil
	case err != nil:
		return err
	}
	if p.Recorded != nil && !r.pods[number].hadNode {
		r.addPlacement(name, p.Recorded.Node)
	}
	r.placed(number, name)
	return nil
}

// placed updates the state of a pod that was placed on a node.
func (r *run) placed(number int32, name string) {
	delete(r.queue.reasons, number)
	state := &r.pods[number]
	state.pendingSeconds += r.now - state.pendingSince
	if !state.hadNode && !r.hasLoad {
		r.unmeasured++
	}
	state.scheduled = true
	r.place(number, r.nodeNumbers[name], r.now)
	if r.options.Placed != nil {
		r.options.Placed(r.input.Pods[number].Object.Name, name)
	}
	r.queue.retry = r.queue.retry || r.queue.hasAffinity
}

// requiresPodAffinity reports whether a pod requires affinity to other pods.
func requiresPodAffinity(pod *v1.Pod) bool {
	affinity := pod.Spec.Affinity
	return affinity != nil && affinity.PodAffinity != nil && len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}

// completion is the second at which a pod ends.
type completion struct {
	second int64
	pod    int32
}

// completions are the future completions as a heap, ordered by second and then by
// pod number.
type completions []completion

// Len implements heap.Interface.
func (c completions) Len() int { return len(c) }

// Less implements heap.Interface.
func (c completions) Less(i, j int) bool {
	return c[i].second < c[j].second || c[i].second == c[j].second && c[i].pod < c[j].pod
}

// Swap implements heap.Interface.
func (c completions) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *completions) Push(x any) { *c = append(*c, x.(completion)) }

// Pop implements heap.Interface.
func (c *completions) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// add adds a completion.
func (c *completions) add(second int64, pod int32) { heap.Push(c, completion{second, pod}) }

// next returns the second of the next completion, recording.Never if there is none.
func (c completions) next() int64 {
	if len(c) == 0 {
		return recording.Never
	}
	return c[0].second
}

// popUntil removes the next completion up to a second, and returns its pod. It
// returns false if there is none.
func (c *completions) popUntil(second int64) (int32, bool) {
	if c.next() > second {
		return 0, false
	}
	return heap.Pop(c).(completion).pod, true
}
