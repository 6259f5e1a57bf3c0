// Package slack keeps the placeholders of ResourceSlack policies: it watches
// nodes and pods, plans, and writes what the backend wants.
package slack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// settle is how long changes of pods and nodes are gathered before the next
	// plan.
	settle = time.Second
	// recheck is the time between two plans where nothing happens: a node's grace
	// may be over, or a cool-down.
	recheck = 30 * time.Second
	// workers is how many policies are looked at at the same time: most of it is
	// waiting for the API server.
	workers = 4
	// longestWait bounds the time to the next try of what fails again and again: an
	// API server that was away for long is not to be waited for when it is back.
	longestWait = 10 * time.Second
)

// Controller reconciles policies.
type Controller struct {
	client    client.Client
	recorder  events.EventRecorder
	namespace string
	now       func() time.Time

	mu       sync.Mutex
	trackers map[string]*tracked
	metrics  *metrics
}

// tracked is what is known of one policy.
type tracked struct {
	*slack.Tracker
	generation int64
	// empty: no node is of the pool. Only the one who plans knows.
	empty bool
}

// New returns a controller that writes into the namespace, and into those of
// workloads that want to be mirrored. Its metrics are in the registry.
func New(c client.Client, recorder events.EventRecorder, registry prometheus.Registerer, namespace string) *Controller {
	return &Controller{
		client: c, recorder: recorder, namespace: namespace, now: time.Now,
		trackers: map[string]*tracked{}, metrics: newMetrics(registry),
	}
}

// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling.x-k8s.io,resources=capacitybuffers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,namespace=plimsoll-system,resources=deployments,verbs=create;patch;delete
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,resourceNames=plimsoll-placeholder,verbs=get;create;patch
// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks,verbs=get;list;watch
// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Register makes a manager run the controller.
func (c *Controller) Register(manager ctrl.Manager) error {
	builder := ctrl.NewControllerManagedBy(manager).
		Named("resourceslack").
		For(&v1alpha1.ResourceSlack{}).
		Watches(&v1.Node{}, c.whenNodesChange()).
		Watches(&v1.Pod{}, c.whenPodsChange()).
		WatchesRawSource(source.Func(c.findOrphans)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, longestWait)})
	for _, kind := range workloadKinds() {
		if err := manager.GetFieldIndexer().IndexField(context.Background(), kind.object, annotated, indexAnnotated); err != nil {
			return err
		}
		builder.Watches(kind.object, c.whenWorkloadsChange())
	}
	return builder.Complete(c)
}

// Reconcile makes the cluster have the placeholders of one policy.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policy := &v1alpha1.ResourceSlack{}
	err := c.client.Get(ctx, request.NamespacedName, policy)
	if apierrors.IsNotFound(err) || err == nil && policy.DeletionTimestamp != nil {
		c.forget(request.Name)
		c.metrics.forget(request.Name)
		return reconcile.Result{}, c.remove(ctx, request.Name)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	t, err := c.track(ctx, policy)
	if m, ok := errors.AsType[mistake](err); ok {
		// What was held before stays.
		return reconcile.Result{}, c.reportInvalid(ctx, policy, m)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	is, err := c.observe(ctx, t)
	if err != nil {
		return reconcile.Result{}, err
	}
	is.applyErr = c.apply(ctx, t, is.plan)
	if is.applyErr != nil && !meta.IsNoMatchError(is.applyErr) && !isForeign(is.applyErr) {
		return reconcile.Result{}, is.applyErr
	}
	c.metrics.report(policy.Name, is)
	if err := c.report(ctx, policy, is); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: recheck}, nil
}

// mistake is an error of a policy, which the user has to mend, and no fault.
type mistake struct{ error }

// track returns the tracker of a policy, made from all pods there are if it is
// new.
func (c *Controller) track(ctx context.Context, policy *v1alpha1.ResourceSlack) (*tracked, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.trackers[policy.Name]; t != nil {
		if t.generation == policy.Generation {
			return t, nil
		}
		if err := t.SetPolicy(policy); err != nil {
			return nil, mistake{err}
		}
		t.generation = policy.Generation
		return t, nil
	}
	tracker, err := slack.NewTracker(policy)
	if err != nil {
		return nil, mistake{err}
	}
	held, err := c.held(ctx, policy.Name)
	if err != nil {
		return nil, err
	}
	if len(held) > 0 {
		tracker.Resume(held)
	}
	var pods v1.PodList
	if err := c.client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range pods.Items {
		tracker.SetPod(&pods.Items[i])
	}
	t := &tracked{Tracker: tracker, generation: policy.Generation}
	c.trackers[policy.Name] = t
	return t, nil
}

// state is what is known of a policy's pool at one time.
type state struct {
	plan slack.Plan
	// free is what the pool has to spare, room how many of the plan's placeholders
	// have a place in it.
	free v1.ResourceList
	room int64
	// overlap is the name of another policy with a node of this pool, if there is
	// one.
	overlap string
	// applyErr is why the plan could not be written, if that is for the user to
	// mend.
	applyErr error
}

// observe plans, over the nodes and workloads as they are now.
func (c *Controller) observe(ctx context.Context, t *tracked) (is state, err error) {
	var nodes v1.NodeList
	if err := c.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return is, err
	}
	var policies v1alpha1.ResourceSlackList
	if err := c.client.List(ctx, &policies); err != nil {
		return is, err
	}
	workloads, err := c.workloads(ctx)
	if err != nil {
		return is, err
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	t.empty = true
	for i := range nodes.Items {
		if !t.SetNode(&nodes.Items[i], now) {
			continue
		}
		t.empty = false
		if is.overlap != "" {
			continue
		}
		for name, other := range c.trackers {
			if other != t && slack.InPool(&nodes.Items[i], other.Policy().Spec.Pool) && (is.overlap == "" || name < is.overlap) {
				is.overlap = name
			}
		}
	}
	t.SetWorkloads(governedBy(t.Policy().Name, policies.Items, workloads))
	began := time.Now()
	is.plan = t.Next(now)
	c.metrics.planned(time.Since(began))
	is.free, is.room = t.Free(), t.Room(is.plan)
	return is, nil
}

// forget drops what is known of a policy that is gone.
func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.trackers, name)
}

// all calls f for every tracker and returns the policies' names.
func (c *Controller) all(f func(*slack.Tracker)) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.trackers {
		f(t.Tracker)
		names = append(names, name)
	}
	return names
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// enqueue makes policies be looked at when changes have settled.
func enqueue(q queue, names []string) {
	for _, name := range names {
		q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKey{Name: name}}, settle)
	}
}

// whenPodsChange keeps the trackers' counts.
func (c *Controller) whenPodsChange() handler.EventHandler {
	set := func(object client.Object, q queue) {
		if pod, ok := object.(*v1.Pod); ok {
			enqueue(q, c.all(func(t *slack.Tracker) { t.SetPod(pod) }))
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { set(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { set(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			if pod, ok := e.Object.(*v1.Pod); ok {
				enqueue(q, c.all(func(t *slack.Tracker) { t.DeletePod(pod) }))
			}
		},
	}
}

// whenNodesChange forgets nodes that are gone; the others are looked at with
// every plan.
func (c *Controller) whenNodesChange() handler.EventHandler {
	touch := func(q queue) { enqueue(q, c.all(func(*slack.Tracker) {})) }
	return handler.Funcs{
		CreateFunc: func(_ context.Context, _ event.CreateEvent, q queue) { touch(q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if changed(e.ObjectOld, e.ObjectNew) {
				touch(q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			enqueue(q, c.all(func(t *slack.Tracker) { t.DeleteNode(e.Object.GetName()) }))
		},
	}
}

// changed reports whether a node changed in what a plan looks at; heartbeats do
// not.
func changed(before, after client.Object) bool {
	old, ok := before.(*v1.Node)
	node, also := after.(*v1.Node)
	if !ok || !also {
		return true
	}
	return facts.ReadyStatus(old) != facts.ReadyStatus(node) || old.Spec.Unschedulable != node.Spec.Unschedulable ||
		fmt.Sprint(old.Spec.Taints, old.Labels, old.Status.Allocatable, old.DeletionTimestamp) != fmt.Sprint(node.Spec.Taints, node.Labels, node.Status.Allocatable, node.DeletionTimestamp)
}
