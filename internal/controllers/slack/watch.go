package slack

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue enqueues policies after batchPeriod.
func enqueue(q queue, names []string) {
	for _, name := range names {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, batchPeriod)
	}
}

// podHandler returns a handler that updates pods, and enqueues the policies that this concerns.
func (c *Controller) podHandler() handler.EventHandler {
	set := func(object client.Object, q queue, isDeleted bool) {
		pod, ok := object.(*v1.Pod)
		if !ok {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, cluster := range c.clusters {
			if isDeleted {
				cluster.DeletePod(pod)
			} else {
				cluster.SetPod(pod)
			}
		}
		c.observeGates(pod)
		p, isRecorded := c.recordOf(pod, isDeleted)
		var names []string
		for name, t := range c.trackers {
			if isRecorded {
				c.record(t, pod, p)
			}
			if t.TakeChanged() {
				names = append(names, name)
			}
		}
		if isDeleted {
			delete(c.ungated, idOf(pod))
		}
		enqueue(q, names)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { set(e.Object, q, false) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { set(e.ObjectNew, q, false) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { set(e.Object, q, true) },
	}
}

// nodeHandler returns a handler that adds nodes to all trackers, before pods get them, and deletes nodes. Every plan reads all
// nodes, so that other changes only enqueue the policies.
func (c *Controller) nodeHandler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			if node, ok := e.Object.(*v1.Node); ok {
				enqueue(q, c.eachTracker(func(t *policyTracker) { t.SetNode(node, c.now()) }))
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if isChanged(e.ObjectOld, e.ObjectNew) {
				enqueue(q, c.policies())
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			enqueue(q, c.eachTracker(func(t *policyTracker) { t.DeleteNode(e.Object.GetName()) }))
		},
	}
}

// isChanged reports whether a node changed in a way that affects plans. Heartbeats do not.
func isChanged(before, after client.Object) bool {
	old, oldOK := before.(*v1.Node)
	node, nodeOK := after.(*v1.Node)
	if !oldOK || !nodeOK {
		return true
	}
	return resources.ReadyStatus(old) != resources.ReadyStatus(node) || old.Spec.Unschedulable != node.Spec.Unschedulable ||
		fmt.Sprint(old.Spec.Taints, old.Labels, old.Status.Allocatable, old.DeletionTimestamp) !=
			fmt.Sprint(node.Spec.Taints, node.Labels, node.Status.Allocatable, node.DeletionTimestamp)
}
