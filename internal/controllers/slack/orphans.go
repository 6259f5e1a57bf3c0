package slack

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// orphanInterval is the time between two searches for objects whose policy was deleted, which may
// have happened while no controller was running.
const orphanInterval = time.Minute

// orphanPriority is the priority of requests for deleted policies, below the priorities of existing policies.
const orphanPriority = handler.LowPriority - 1

// enqueueOrphans enqueues, until ctx ends, the policies that have objects but no tracker.
func (c *Controller) enqueueOrphans(ctx context.Context, q queue) error {
	go wait.UntilWithContext(ctx, func(ctx context.Context) {
		names, err := c.owners(ctx)
		if err != nil {
			log.FromContext(ctx).Error(err, "Listing objects of deleted policies failed")
		}
		names.Delete(c.policies()...)
		for name := range names {
			request := reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}
			setup.AddWithPriority(q, request, orphanPriority, 0)
		}
	}, orphanInterval)
	return nil
}

// owners returns the names of the policies that have objects.
func (c *Controller) owners(ctx context.Context) (sets.Set[string], error) {
	names := sets.New[string]()
	for _, kind := range c.kinds() {
		list, err := c.list(ctx, kind, client.HasLabels{slack.PlaceholderLabel})
		if err != nil {
			return names, err
		}
		for i := range list {
			names.Insert(list[i].GetLabels()[slack.PlaceholderLabel])
		}
	}
	return names.Delete(""), nil
}

// deleteObjects deletes the objects of a deleted policy. The result states when to continue.
func (c *Controller) deleteObjects(ctx context.Context, policy string) (result reconcile.Result, err error) {
	if len(policy) > v1alpha1.MaxNameLength {
		return result, nil // the policy was invalid and never had objects
	}
	object := &unstructured.Unstructured{} // read from the API server rather than the cache
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	if gone, err := setup.IsGone(ctx, c.client, client.ObjectKey{Name: policy}, object); err != nil || !gone {
		return result, err
	}
	existing, err := c.existing(ctx, policy)
	if err != nil {
		return result, err
	}
	w := newWriter(c, existing, nil)
	for i := range existing {
		if err := w.delete(ctx, &existing[i]); err != nil {
			return result, err
		}
	}
	if w.postponed {
		result.RequeueAfter = batchPeriod
	}
	return result, errors.Join(w.failures...)
}
