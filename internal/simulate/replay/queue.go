package replay

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/engine"
)

// queue has the pods that fit no node, the one that came first at the front.
type queue struct {
	waiting []int32
	// stuck are the shapes that fit nowhere since something was last freed for
	// them, each with one of its pods.
	stuck map[int]int32
	// why each pod waits, as the scheduler put it when it last tried.
	why map[int32]string
	// changed: something was freed, so that pods are to be tried again.
	changed bool
	// attracted: one of the pods that wait has to be near others, so that it may fit
	// as soon as another pod has been placed.
	attracted bool
}

func newQueue() queue { return queue{stuck: map[int]int32{}, why: map[int32]string{}} }

// freed notes that a node has something free that it had not. Shapes that it has
// room for are tried again; so are pods without a shape, for which there may be
// more to it than room.
func (q *queue) freed(pods []Pod, n *node) {
	q.changed = q.changed || len(q.waiting) > 0
	for shape, number := range q.stuck {
		needs := pods[number].Needs
		if n.slots > 0 && needs.CPU <= n.free.CPU && needs.Memory <= n.free.Memory && needs.GPU <= n.free.GPU {
			delete(q.stuck, shape)
		}
	}
}

// retry tries the pods again that wait, until nothing changes any more.
func (r *run) retry(ctx context.Context) error {
	for r.queue.changed && !r.interrupted() {
		waiting := r.queue.waiting
		r.queue.waiting, r.queue.changed, r.queue.attracted = nil, false, false
		for i, number := range waiting {
			if r.interrupted() {
				r.queue.waiting = append(r.queue.waiting, waiting[i:]...)
				break
			}
			if err := r.try(ctx, number); err != nil {
				return err
			}
		}
	}
	return nil
}

// try lets the scheduler find a node for a pod; if there is none, the pod waits.
func (r *run) try(ctx context.Context, number int32) error {
	p := &r.Pods[number]
	if like, stuck := r.queue.stuck[p.Shape]; stuck {
		r.queue.waiting = append(r.queue.waiting, number)
		r.queue.why[number] = r.queue.why[like]
		return r.decisions.stuck(ctx, r, number)
	}
	if err := r.decisions.before(ctx, r, number); err != nil {
		return err
	}
	name, err := r.engine.Schedule(ctx, p.Object, "")
	switch {
	case errors.Is(err, engine.ErrUnschedulable):
		r.queue.waiting = append(r.queue.waiting, number)
		r.queue.why[number] = engine.Reasons(err)
		if p.Shape != 0 {
			r.queue.stuck[p.Shape] = number
		}
		r.queue.attracted = r.queue.attracted || attracted(p.Object)
		return r.decisions.stuck(ctx, r, number)
	case err != nil:
		return err
	}
	delete(r.queue.why, number)
	r.decisions.placed(r, number, name)
	is := &r.pods[number]
	is.waited += r.now - is.waits
	if !is.placed {
		r.scheduled++
	}
	if !is.found {
		is.found, r.found = true, append(r.found, number)
	}
	r.place(number, r.byName[name], r.now)
	if r.Placed != nil {
		r.Placed(p.Object.Name, name)
	}
	r.queue.changed = r.queue.changed || r.queue.attracted
	return nil
}

// attracted reports whether a pod has to be near others.
func attracted(pod *v1.Pod) bool {
	affinity := pod.Spec.Affinity
	return affinity != nil && affinity.PodAffinity != nil && len(affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0
}
