// Package placement is the controller of placements: it watches the objects of a hub,
// decides placements, and writes PlacementDecisions and the status of placements.
package placement

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// Adopt selects the placements that the controller decides.
type Adopt string

const (
	// AdoptAnnotated selects placements with the annotation
	// cluster.open-cluster-management.io/experimental-scheduling-disable: "true", which
	// the controller of Open Cluster Management ignores.
	AdoptAnnotated Adopt = "annotated"
	// AdoptAll selects all placements without that annotation, for hubs without another
	// controller.
	AdoptAll Adopt = "all"
)

const (
	// workers is the number of placements that are written concurrently. They are
	// decided sequentially.
	workers = 8
	// maxRetryDelay is the maximum time between two attempts to write.
	maxRetryDelay = 10 * time.Second
	// maxRequeue is the maximum time to the next decision of a placement whose decisions depend on the time:
	// the clock may jump meanwhile, also back.
	maxRequeue = 5 * time.Minute
	// statusInterval is the minimum time between two writes of the status of a placement
	// that do not change the status or reason of a condition.
	statusInterval = time.Second
)

// Controller reconciles placements.
type Controller struct {
	// Progress has a check for readiness: it fails if a decision makes no progress.
	Progress setup.Progress

	client    client.Client
	apiReader client.Reader
	recorder  events.EventRecorder
	adopt     Adopt
	state     *fleet.State
	metrics   *metrics
	now       func() time.Time
	latencies latencies

	// loading is held for writing while all objects are loaded, and for reading while
	// a change is added to the state.
	loading sync.RWMutex
	loaded  bool

	// scored has the time of the last write of scores by placement. The status has it,
	// too, but the cached status can be older than the cached decisions.
	scored sync.Map
	// reports has the last written status by placement.
	reports sync.Map
	// dropped are the fields that the hub does not store.
	dropped droppedFields
}

// New returns a controller. The apiReader is not cached.
func New(c client.Client, apiReader client.Reader, recorder events.EventRecorder, registry prometheus.Registerer, adopt Adopt) *Controller {
	return &Controller{
		client: c, apiReader: apiReader, recorder: recorder, adopt: adopt,
		state: fleet.NewState(), metrics: newMetrics(registry), now: time.Now,
	}
}

// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters;managedclustersets;managedclustersetbindings;addonplacementscores;placements,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements/status,verbs=patch
// Some API servers, for example in OpenShift, require the right on the finalizers for owner references that block the
// deletion of the owner, which PlacementDecisions have.
//
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions/status,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Register adds the controller to a manager. It starts when the kinds that it watches
// are served.
func (c *Controller) Register(m ctrl.Manager) error {
	return m.Add(&whenServed{m, c})
}

// setUp adds the controller to a manager.
func (c *Controller) setUp(ctx context.Context, m ctrl.Manager) error {
	if err := fleet.Prepare(); err != nil {
		return err
	}
	err := m.GetFieldIndexer().IndexField(ctx, &clusterv1beta1.PlacementDecision{}, placementIndex, func(o client.Object) []string {
		return []string{o.GetLabels()[clusterv1beta1.PlacementLabel]}
	})
	if err != nil {
		return err
	}
	// The controller writes the status: onStatusChange ignores its own writes.
	changes := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(m).
		Named("placement").
		Watches(&v1beta1.Placement{}, onPlacementChange(), builder.WithPredicates(changes, c.latencies.predicate())).
		Watches(&fleet.ManagedCluster{}, c.onChange(c.readCluster)).
		Watches(&clusterv1beta2.ManagedClusterSet{}, c.onChange(c.readSet)).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, c.onChange(c.readBinding)).
		Watches(&clusterv1alpha1.AddOnPlacementScore{}, c.onChange(c.readScores)).
		Watches(&clusterv1beta1.PlacementDecision{}, c.onDecisionChange()).
		Watches(&v1beta1.Placement{}, c.onStatusChange()).
		WatchesRawSource(source.Func(c.evaluateExpressions)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers, NewQueue: setup.NewFairQueue,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond,
				maxRetryDelay),
		}).
		Complete(c)
}

// Reconcile decides a placement and writes its decisions and status.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := c.load(ctx); err != nil {
		return reconcile.Result{}, err
	}
	c.latencies.start(request.NamespacedName)
	object := &v1beta1.Placement{}
	err := c.client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) {
		c.forget(request.NamespacedName)
		c.state.DeletePlacement(request.NamespacedName)
		return reconcile.Result{}, c.remove(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	existing, err := c.decisions(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !c.decides(object) {
		c.forget(request.NamespacedName)
		c.state.SetUnmanaged(request.NamespacedName, fleet.ClustersIn(existing))
		return reconcile.Result{}, nil
	}
	began := time.Now()
	now := c.now()
	result, ok := c.decide(object, existing, now)
	if !ok {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // it has just been deleted; its event follows
	}
	if result.Pending {
		return reconcile.Result{}, nil // evaluateExpressions queues the placement
	}
	c.metrics.observeDecision(time.Since(began))
	return c.apply(ctx, object, existing, result, now)
}

// decide decides a placement, see fleet.State.
func (c *Controller) decide(
	object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision, now time.Time,
) (result *fleet.Result, ok bool) {
	defer c.Progress.Begin(fmt.Sprintf("deciding placement %s/%s", object.Namespace, object.Name))()
	if !c.state.TryAddPlacement(object, fleet.ClustersIn(existing)) {
		return &fleet.Result{Pending: true}, true
	}
	return c.state.Decide(client.ObjectKeyFromObject(object), now)
}

// apply writes the decisions of a result, then the status.
func (c *Controller) apply(
	ctx context.Context, object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision, decided *fleet.Result, now time.Time,
) (reconcile.Result, error) {
	// Requeue at priority 0: only the first reconciliation after a change is urgent.
	result := reconcile.Result{Priority: new(0)}
	if decided.Policy != nil && decided.Policy.DependsOnTime() {
		result.RequeueAfter = maxRequeue
	}
	if !decided.RequeueAt.IsZero() {
		result.RequeueAfter = min(max(time.Second, decided.RequeueAt.Sub(now)), maxRequeue)
	}
	written, delay, err := c.write(ctx, object, existing, decided, now)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache is stale, or another client has written: retry.
		return reconcile.Result{RequeueAfter: changeDelay}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing decisions: %w", err)
	}
	if since, changed := c.latencies.finish(client.ObjectKeyFromObject(object)); changed && written.rewritten {
		c.metrics.observeLatency(time.Since(since))
	}
	wait, err := c.report(ctx, object, decided, written, now)
	for _, d := range []time.Duration{delay, wait} {
		if d > 0 && (result.RequeueAfter == 0 || d < result.RequeueAfter) {
			result.RequeueAfter = d
		}
	}
	return result, err
}

// decides reports whether the controller decides a placement. The decisions of a placement
// that is being deleted do not change: the garbage collector deletes or orphans them.
func (c *Controller) decides(object *v1beta1.Placement) bool {
	annotated := object.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
	return object.DeletionTimestamp == nil && annotated == (c.adopt == AdoptAnnotated)
}

// forget drops the data of a placement that is not in the state.
func (c *Controller) forget(key client.ObjectKey) {
	c.latencies.finish(key)
	c.scored.Delete(key)
	c.reports.Delete(key)
}
