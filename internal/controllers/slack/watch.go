package slack

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue enqueues policies after batchPeriod.
func enqueue(q queue, names []string) {
	for _, name := range names {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, batchPeriod)
	}
}

// onChange returns a handler that calls f with an object before and after each change: before is nil if the object is created, after
// if it is deleted. An object that was deleted and created again while a watch was interrupted is both.
func onChange[T client.Object](f func(q queue, before, after T)) handler.EventHandler {
	var none T
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { f(q, none, e.Object.(T)) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetUID() == e.ObjectNew.GetUID() {
				f(q, e.ObjectOld.(T), e.ObjectNew.(T))
				return
			}
			f(q, e.ObjectOld.(T), none)
			f(q, none, e.ObjectNew.(T))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { f(q, e.Object.(T), none) },
	}
}

// podHandler returns a handler that updates pods, and enqueues the policies that this concerns.
func (c *Controller) podHandler() handler.EventHandler {
	return onChange(func(q queue, before, after *v1.Pod) {
		pod, isDeleted := cmp.Or(after, before), after == nil
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, cluster := range c.clusters {
			if isDeleted {
				cluster.DeletePod(pod)
			} else {
				cluster.SetPod(pod)
			}
		}
		c.countWait(before, after)
		var names []string
		for name, t := range c.trackers {
			if t.TakeChanged() {
				names = append(names, name)
			}
		}
		enqueue(q, names)
	})
}

// nodeHandler returns a handler that adds nodes to all trackers, before pods get them, and deletes nodes. Every plan reads all
// nodes, so that other changes only enqueue the policies.
func (c *Controller) nodeHandler() handler.EventHandler {
	return onChange(func(q queue, before, after *v1.Node) {
		switch {
		case before == nil:
			enqueue(q, c.eachTracker(func(t *policyTracker) { t.SetNode(after, c.now()) }))
		case after == nil:
			enqueue(q, c.eachTracker(func(t *policyTracker) { t.DeleteNode(before.Name) }))
		case isChanged(before, after):
			enqueue(q, c.policies())
		}
	})
}

// isChanged reports whether a node changed in a way that affects plans. Heartbeats do not.
func isChanged(old, node *v1.Node) bool {
	return resources.ReadyStatus(old) != resources.ReadyStatus(node) ||
		!equality.Semantic.DeepEqual([]any{old.Spec, old.Labels, old.Status.Allocatable, old.DeletionTimestamp},
			[]any{node.Spec, node.Labels, node.Status.Allocatable, node.DeletionTimestamp})
}

// namespaceHandler returns a handler that enqueues all policies if the labels of a namespace change, by
// which policies select namespaces.
func (c *Controller) namespaceHandler() handler.EventHandler {
	return onChange(func(q queue, before, after *v1.Namespace) {
		if before != nil && after != nil && !maps.Equal(before.Labels, after.Labels) {
			enqueue(q, c.policies())
		}
	})
}

// workloadHandler returns a handler that enqueues all policies if a workload has or had the annotation, and the policy of a workload of
// placeholder pods whose spec or label changes, that is deleted, or whose policy has no tracker.
func (c *Controller) workloadHandler() handler.EventHandler {
	return onChange(func(q queue, before, after client.Object) {
		if isAnnotated(before) || isAnnotated(after) {
			enqueue(q, c.policies())
		}
		switch {
		case cmp.Or(after, before).GetNamespace() != c.podNamespace:
		case before == nil:
			c.enqueueOwner(q, after, true)
		case after == nil || before.GetGeneration() != after.GetGeneration() ||
			before.GetLabels()[slack.PlaceholderLabel] != after.GetLabels()[slack.PlaceholderLabel]:
			c.enqueueOwner(q, before, false)
		}
	})
}

// isAnnotated reports whether an object, which may be nil, has the annotation.
func isAnnotated(object client.Object) bool { return object != nil && indexAnnotated(object) != nil }

// bufferHandler returns the handler of changes of buffers and their templates. It enqueues the policy of an object when an autoscaler
// changes the status of a buffer, another client changes or deletes the object, or the policy of a new object has no tracker.
func (c *Controller) bufferHandler() handler.EventHandler {
	return onChange(func(q queue, before, after *unstructured.Unstructured) {
		switch {
		case before == nil:
			c.enqueueOwner(q, after, true)
		case after == nil || !reflect.DeepEqual([]any{before.Object["spec"], before.Object["status"], before.GetGeneration()},
			[]any{after.Object["spec"], after.Object["status"], after.GetGeneration()}):
			c.enqueueOwner(q, before, false)
		}
	})
}

// eventHandler returns the handler of events slack.NotTriggered. It enqueues the policy of the buffer.
func (c *Controller) eventHandler() handler.EventHandler {
	return onChange(func(q queue, before, after *unstructured.Unstructured) {
		var e v1.Event
		if resources.FromUnstructured(cmp.Or(after, before).Object, &e) != nil {
			return
		}
		key := types.NamespacedName{Namespace: e.InvolvedObject.Namespace, Name: e.InvolvedObject.Name}
		var names []string
		c.eachTracker(func(t *policyTracker) {
			if slices.ContainsFunc(t.answers, func(a slack.Answer) bool { return a.Namespace == key.Namespace && a.Name == key.Name }) {
				names = append(names, t.Policy().Name)
			}
		})
		enqueue(q, names)
		c.mu.Lock()
		defer c.mu.Unlock()
		switch r, ok := slack.RefusalOf(&e, c.now()); {
		case after == nil: // after an hour
			delete(c.refusals, key)
		case ok && c.refusals[key].Time.Before(r.Time):
			c.refusals[key] = r
		}
	})
}

// enqueueOwner enqueues the policy of an object with placeholders, if it has a tracker, or if it has none and the object is new: the
// controller itself creates the objects of policies with a tracker, other policies may have been deleted while no controller was running.
func (c *Controller) enqueueOwner(q queue, object client.Object, isNew bool) {
	policy := object.GetLabels()[slack.PlaceholderLabel]
	if policy != "" && isNew != slices.Contains(c.policies(), policy) {
		enqueue(q, []string{policy})
	}
}
