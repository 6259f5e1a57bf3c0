package placement

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/workqueue"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	capacityv1alpha1 "github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// changeDelay is how long changes are collected before a placement is decided.
const changeDelay = 100 * time.Millisecond

// placementIndex is the index of PlacementDecisions by placement.
const placementIndex = "placement"

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// onChange returns a handler that updates the state and queues the placements that a
// change affects. It reads the cache, because the object in an event can be older.
func (c *Controller) onChange() handler.EventHandler {
	handle := func(ctx context.Context, object client.Object, q queue) {
		c.loading.Lock()
		defer c.loading.Unlock()
		if !c.loaded {
			return // load reads the object
		}
		keys, err := c.read(ctx, object)
		if err != nil {
			log.FromContext(ctx).Error(err, "Failed to read a changed object from the cache", "name", object.GetName())
		}
		for _, key := range keys {
			c.changes.LoadOrStore(key, time.Now())
			q.AddAfter(reconcile.Request{NamespacedName: key}, changeDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { handle(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { handle(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { handle(ctx, e.Object, q) },
	}
}

// onPlacementChange returns a handler that queues changed placements first and new placements last: many placements that
// are created at once do not delay changes. A new placement is queued after changeDelay: its first decision, which
// prioritizer Steady prefers from then on, takes clusters and bindings into account that are created together with it.
func (c *Controller) onPlacementChange() handler.EventHandler {
	add := func(object client.Object, q queue, priority int, delay time.Duration) {
		c.changes.LoadOrStore(client.ObjectKeyFromObject(object), time.Now())
		setup.AddWithPriority(q, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}, priority, delay)
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) {
			add(e.Object, q, handler.LowPriority, changeDelay)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q, setup.ChangePriority, 0) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { add(e.Object, q, setup.ChangePriority, 0) },
	}
}

// onDecisionChange returns a handler that queues the placement of a PlacementDecision,
// because another client may have written it. The delay makes sure that the cache has
// the status that this controller writes after the decisions.
func (c *Controller) onDecisionChange() handler.EventHandler {
	handle := func(object client.Object, q queue) {
		if name := object.GetLabels()[clusterv1beta1.PlacementLabel]; name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}, changeDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { handle(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			handle(e.ObjectOld, q)
			handle(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { handle(e.Object, q) },
	}
}

// onStatusChange returns a handler that queues a placement whose status another client
// has written.
func (c *Controller) onStatusChange() handler.EventHandler {
	return handler.Funcs{UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
		before, ok := e.ObjectOld.(*v1beta1.Placement)
		after, also := e.ObjectNew.(*v1beta1.Placement)
		if ok && also && !equality.Semantic.DeepEqual(before.Status, after.Status) && !c.hasReported(after) {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(after)}, changeDelay)
		}
	}}
}

// read updates the state from the cached version of an object. It returns the affected placements.
func (c *Controller) read(ctx context.Context, object client.Object) ([]types.NamespacedName, error) {
	key, cached := client.ObjectKeyFromObject(object), object.DeepCopyObject().(client.Object)
	err := c.client.Get(ctx, key, cached)
	isDeleted := apierrors.IsNotFound(err)
	if err != nil && !isDeleted {
		return nil, err
	}
	switch cached := cached.(type) {
	case *fleet.ManagedCluster:
		if isDeleted {
			return c.state.DeleteCluster(key.Name), nil
		}
		return c.state.SetCluster(&cached.ManagedCluster), nil
	case *clusterv1beta2.ManagedClusterSet:
		if isDeleted {
			return c.state.DeleteClusterSet(key.Name), nil
		}
		return c.state.SetClusterSet(cached), nil
	case *clusterv1beta2.ManagedClusterSetBinding:
		if isDeleted {
			return c.state.DeleteBinding(key.Namespace, key.Name), nil
		}
		return c.state.SetBinding(cached), nil
	case *clusterv1alpha1.AddOnPlacementScore:
		if isDeleted {
			return c.state.DeleteScores(key.Namespace, key.Name), nil
		}
		return c.state.SetScores(cached), nil
	case *fleet.ClusterCapacity:
		switch {
		case key.Name != capacityv1alpha1.Name:
			return nil, nil
		case isDeleted:
			return c.state.DeleteCapacity(key.Namespace), nil
		}
		return c.state.SetCapacity(cached), nil
	}
	return nil, fmt.Errorf("found %T: not a kind that decisions depend on", object)
}

// load reads all objects once, before the first decision: a placement must not lose a
// cluster that has not been read yet. Placements and their decisions are not read from the cache, which may lack the last
// promises of the controller before.
func (c *Controller) load(ctx context.Context) error {
	c.loading.Lock()
	defer c.loading.Unlock()
	if c.loaded {
		return nil
	}
	objects, err := fleet.Read(func(list fleet.ObjectList) error {
		switch list := list.(type) {
		case *clusterv1beta1.PlacementDecisionList:
			return c.apiReader.List(ctx, list)
		case *v1beta1.PlacementList:
			return c.apiReader.List(ctx, list)
		}
		return c.client.List(ctx, list)
	})
	if err != nil {
		return err
	}
	placements, promises := objects.Placements, objects.Promises()
	objects.Placements = nil // each is compiled when it is reconciled
	c.state = objects.State()
	c.readings.Clear()             // of an attempt that failed
	for _, p := range placements { // the promises of all placements count for the first decision
		if _, err := c.readWorkload(ctx, p, c.now()); err != nil {
			return err
		}
		key := client.ObjectKeyFromObject(p)
		c.state.RestorePromises(key, promises[key])
	}
	c.loaded = true
	return nil
}

// evaluateExpressions starts to evaluate the CEL expressions of pending placements and to
// queue the placements when their decision can be made.
func (c *Controller) evaluateExpressions(ctx context.Context, q queue) error {
	go func() {
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			return c.load(ctx) == nil, nil // Reconcile reports the error
		})
		for err == nil {
			key, ok := c.state.EvaluateNext(ctx)
			if !ok {
				return
			}
			q.Add(reconcile.Request{NamespacedName: key})
		}
	}()
	return nil
}

// reading is a successful read of the object that the workload of a placement refers to.
type reading struct {
	// version is the version of the placement that names the object.
	version string
	at      time.Time
}

// readWorkload updates the workload of a placement in the state. If it is an object that another client can change, it returns the time
// after which to read it again, at most maxRequeue: in between, a decision does not read it. It returns an error if the object could not
// be read for a reason that may pass.
func (c *Controller) readWorkload(ctx context.Context, p *v1beta1.Placement, now time.Time) (time.Duration, error) {
	key, object := client.ObjectKeyFromObject(p), fleet.ReferenceOf(p)
	if object == nil {
		c.readings.Delete(key)
		c.state.SetWorkload(p, nil, nil)
		return 0, nil
	}
	version := fmt.Sprint(p.UID, " ", p.Generation, " ", p.Annotations[v1beta1.AnnotationWorkload])
	if last, known := c.readings.Load(key); known && last.(reading).version == version {
		if age := now.Sub(last.(reading).at); age >= 0 && age < maxRequeue {
			return maxRequeue - age, nil
		}
	}
	err := c.apiReader.Get(ctx, client.ObjectKeyFromObject(object), object)
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), resources.IsNotServed(err):
		c.readings.Delete(key)
		c.state.SetWorkload(p, nil, err) // which reports the error
	case err != nil:
		return maxRequeue, fmt.Errorf("reading the workload: %w", err)
	default:
		c.readings.Store(key, reading{version, now})
		c.state.SetWorkload(p, object, nil)
	}
	return maxRequeue, nil
}
