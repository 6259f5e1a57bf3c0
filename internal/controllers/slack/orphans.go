package slack

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// orphanCheck is the time between two looks for objects whose policy is gone: it
// may have gone while no controller was there to see it.
const orphanCheck = time.Minute

// tidying comes after all policies that are there.
const tidying = handler.LowPriority - 1

// findOrphans makes the policies be looked at that have objects and are not
// followed, at once and again and again until ctx ends.
func (c *Controller) findOrphans(ctx context.Context, q queue) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		names, err := c.owners(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Looking for objects whose policy is gone")
		}
		names.Delete(c.all(func(*slack.Tracker) {})...)
		for name := range names {
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
			if ordered, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
				ordered.AddWithOpts(priorityqueue.AddOpts{Priority: new(tidying)}, request)
			} else {
				q.Add(request)
			}
		}
	}, orphanCheck)
	return nil
}

// owners returns the names of the policies whose objects there are.
func (c *Controller) owners(ctx context.Context) (sets.Set[string], error) {
	names := sets.New[string]()
	for _, kind := range kinds {
		list := listOf(kind)
		err := c.client.List(ctx, list, append(c.within(kind), client.HasLabels{slack.PlaceholderLabel})...)
		if meta.IsNoMatchError(err) {
			continue // there cannot be any
		}
		if err != nil {
			return names, err
		}
		for i := range list.Items {
			if c.isOurs(&list.Items[i]) {
				names.Insert(list.Items[i].GetLabels()[slack.PlaceholderLabel])
			}
		}
	}
	return names.Delete(""), nil
}

// remove deletes the objects of a policy that is gone.
func (c *Controller) remove(ctx context.Context, policy string) error {
	if len(policy) > v1alpha1.MaxNameLength {
		return nil // it was never held
	}
	object := &unstructured.Unstructured{} // unstructured objects are not cached
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	if gone, err := setup.IsGone(ctx, c.client, client.ObjectKey{Name: policy}, object); err != nil || !gone {
		return err
	}
	return c.prune(ctx, policy, nil)
}
