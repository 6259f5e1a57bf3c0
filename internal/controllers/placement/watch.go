package placement

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// settle is how long changes are gathered before placements are decided anew.
const settle = 100 * time.Millisecond

// ofPlacement is the index of PlacementDecisions by the placement they are of.
const ofPlacement = "placement"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// whenChanged takes a change in, as the cache has it: what an event carries may
// be older than what was read before it. read returns the placements that it can
// matter to; these alone are queued.
func (c *Controller) whenChanged(read func(context.Context, client.ObjectKey) ([]types.NamespacedName, error)) handler.EventHandler {
	take := func(ctx context.Context, object client.Object, q queue) {
		c.loading.RLock()
		defer c.loading.RUnlock()
		if !c.loaded {
			return // it is read with all the others
		}
		keys, err := read(ctx, client.ObjectKeyFromObject(object))
		if err != nil {
			log.FromContext(ctx).Error(err, "Reading a change from the cache", "name", object.GetName())
		}
		for _, key := range keys {
			c.delays.changed(key, time.Now())
			q.AddAfter(reconcile.Request{NamespacedName: key}, settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { take(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { take(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { take(ctx, e.Object, q) },
	}
}

// whenDecisionsChange queues the placement that they are of: somebody else may
// have written them. Mostly it was this controller, which goes on to write the
// status: that is to be in the cache, too, when the placement is looked at again.
func (c *Controller) whenDecisionsChange() handler.EventHandler {
	take := func(object client.Object, q queue) {
		if name := object.GetLabels()[clusterv1beta1.PlacementLabel]; name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}, settle)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { take(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			take(e.ObjectOld, q)
			take(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { take(e.Object, q) },
	}
}

func (c *Controller) readCluster(ctx context.Context, key client.ObjectKey) ([]types.NamespacedName, error) {
	var object clusterv1.ManagedCluster
	if err := c.client.Get(ctx, key, &object); apierrors.IsNotFound(err) {
		return c.state.DeleteCluster(key.Name), nil
	} else if err != nil {
		return nil, err
	}
	return c.state.SetCluster(&object), nil
}

func (c *Controller) readSet(ctx context.Context, key client.ObjectKey) ([]types.NamespacedName, error) {
	var object clusterv1beta2.ManagedClusterSet
	if err := c.client.Get(ctx, key, &object); apierrors.IsNotFound(err) {
		return c.state.DeleteSet(key.Name), nil
	} else if err != nil {
		return nil, err
	}
	return c.state.SetSet(&object), nil
}

func (c *Controller) readBinding(ctx context.Context, key client.ObjectKey) ([]types.NamespacedName, error) {
	var object clusterv1beta2.ManagedClusterSetBinding
	if err := c.client.Get(ctx, key, &object); apierrors.IsNotFound(err) {
		return c.state.DeleteBinding(key.Namespace, key.Name), nil
	} else if err != nil {
		return nil, err
	}
	return c.state.SetBinding(&object), nil
}

func (c *Controller) readScores(ctx context.Context, key client.ObjectKey) ([]types.NamespacedName, error) {
	var object clusterv1alpha1.AddOnPlacementScore
	if err := c.client.Get(ctx, key, &object); apierrors.IsNotFound(err) {
		return c.state.DeleteScores(key.Namespace, key.Name), nil
	} else if err != nil {
		return nil, err
	}
	return c.state.SetScores(&object), nil
}

// load reads all there is, once, before anything is decided: a placement must not
// lose a cluster because nobody has heard of it yet.
func (c *Controller) load(ctx context.Context) error {
	c.loading.RLock()
	loaded := c.loaded
	c.loading.RUnlock()
	if loaded {
		return nil
	}
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.loaded {
		return nil
	}
	objects, err := fleet.Read(func(list fleet.ObjectList) error { return c.client.List(ctx, list) })
	if err != nil {
		return err
	}
	c.state = objects.State(c.adopted)
	c.loaded = true
	return nil
}

// slicesOf returns PlacementDecisions as the fleet lays them out.
func slicesOf(there []clusterv1beta1.PlacementDecision) (out []fleet.Slice) {
	for i := range there {
		out = append(out, fleet.SliceOf(&there[i]))
	}
	return out
}
