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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/expression"
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
	client    client.Client
	apiReader client.Reader
	recorder  events.EventRecorder
	adopt     Adopt
	state     *fleet.State
	metrics   *metrics
	now       func() time.Time

	// loading is held while all objects are loaded or a change is added to the state.
	loading sync.Mutex
	loaded  bool

	// changes has the time of the first change of each placement that no decision has taken into account.
	changes sync.Map

	// scored has the time of the last write of scores by placement. The status has it,
	// too, but the cached status can be older than the cached decisions.
	scored sync.Map
	// reports has the last written status by placement.
	reports sync.Map
	// readings has the last reading of the object that the workload refers to, by placement.
	readings sync.Map
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
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions/status,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// +kubebuilder:rbac:groups=plimsoll.dev,resources=clustercapacities,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=get
// +kubebuilder:rbac:groups=apps,resources=deployments,verbs=get
// +kubebuilder:rbac:groups=work.open-cluster-management.io,resources=manifestworks,verbs=get

// Register adds the controller to a manager. It starts when the kinds that it watches
// are served.
func (c *Controller) Register(m ctrl.Manager) error {
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		if err := waitUntilServed(ctx, m); err != nil {
			return nil //nolint:nilerr // the context has ended
		}
		return c.setUp(ctx, m)
	}))
}

// setUp adds the controller to a manager.
func (c *Controller) setUp(ctx context.Context, m ctrl.Manager) error {
	if err := expression.Prepare(); err != nil {
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
	b := ctrl.NewControllerManagedBy(m).
		Named("placement").
		Watches(&v1beta1.Placement{}, c.onPlacementChange(), builder.WithPredicates(changes)).
		Watches(&fleet.ManagedCluster{}, c.onChange()).
		Watches(&clusterv1beta2.ManagedClusterSet{}, c.onChange()).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, c.onChange()).
		Watches(&clusterv1alpha1.AddOnPlacementScore{}, c.onChange()).
		Watches(&clusterv1beta1.PlacementDecision{}, c.onDecisionChange()).
		Watches(&v1beta1.Placement{}, c.onStatusChange()).
		WatchesRawSource(source.Func(c.evaluateExpressions))
	if checkServed(m, &fleet.ClusterCapacity{}) == nil {
		b = b.Watches(&fleet.ClusterCapacity{}, c.onChange())
	}
	return b.
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
	since, _ := c.changes.LoadAndDelete(request.NamespacedName)
	result, done, err := c.reconcile(ctx, request.NamespacedName, since)
	if since != nil && !done { // the next decision takes the change into account
		c.changes.Store(request.NamespacedName, since)
	}
	return result, err
}

// reconcile is Reconcile after all objects have been loaded. since is the time of the first change of the placement, nil if
// there is none; done reports whether the decisions that take it into account have been written.
func (c *Controller) reconcile(ctx context.Context, key types.NamespacedName, since any) (result reconcile.Result, done bool, err error) {
	object := &v1beta1.Placement{}
	err = c.client.Get(ctx, key, object)
	if apierrors.IsNotFound(err) {
		c.forget(key)
		c.state.DeletePlacement(key)
		return result, true, c.remove(ctx, key)
	}
	if err != nil {
		return result, false, err
	}
	existing, err := c.decisions(ctx, key)
	if err != nil {
		return result, false, err
	}
	if !c.decides(object) {
		c.forget(key)
		c.state.SetUnmanaged(key, fleet.ClustersIn(existing))
		return result, true, nil
	}
	existing, err = c.deleteStale(ctx, object, existing)
	if apierrors.IsConflict(err) { // the cache is stale
		return reconcile.Result{RequeueAfter: changeDelay}, false, nil
	}
	if err != nil {
		return result, false, fmt.Errorf("deleting decisions: %w", err)
	}
	return c.decide(ctx, object, existing, since)
}

// decide decides a placement with existing decisions, and writes its decisions and status.
func (c *Controller) decide(
	ctx context.Context, object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision, since any,
) (result reconcile.Result, done bool, err error) {
	began, key := time.Now(), client.ObjectKeyFromObject(object)
	now := c.now()
	reread, err := c.readWorkload(ctx, object, now)
	if err != nil {
		return result, false, err
	}
	if !c.state.TryAddPlacement(object, fleet.ClustersIn(existing)) {
		return result, false, nil // evaluateExpressions queues the placement
	}
	decided, ok := c.state.Decide(key, now)
	if !ok {
		return reconcile.Result{Requeue: true}, false, nil //nolint:staticcheck // it has just been deleted; its event follows
	}
	if decided.Pending {
		return result, false, nil // evaluateExpressions queues the placement
	}
	c.metrics.decisions.Observe(time.Since(began).Seconds())
	written, delay, err := c.write(ctx, object, existing, decided, now)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache is stale, or another client has written: retry.
		return reconcile.Result{RequeueAfter: changeDelay}, false, nil
	}
	if err != nil {
		return result, false, fmt.Errorf("writing decisions: %w", err)
	}
	if at, changed := since.(time.Time); changed && written.rewritten {
		c.metrics.latency.Observe(time.Since(at).Seconds())
	}
	wait, err := c.report(ctx, object, decided, written, now)
	return requeue(decided, now, delay, wait, reread), true, err
}

// requeue returns when a decided placement is reconciled again: after any of the delays, and when its decision can change.
func requeue(decided *fleet.Result, now time.Time, delays ...time.Duration) reconcile.Result {
	// Requeue at priority 0: only the first reconciliation after a change is urgent.
	result := reconcile.Result{Priority: new(0)}
	// Promises end, and ClusterCapacities become too old.
	if decided.Promises != nil || decided.Policy != nil && decided.Policy.DependsOnTime() {
		result.RequeueAfter = maxRequeue
	}
	if !decided.RequeueAt.IsZero() {
		result.RequeueAfter = min(max(time.Second, decided.RequeueAt.Sub(now)), maxRequeue)
	}
	for _, d := range delays {
		if d > 0 && (result.RequeueAfter == 0 || d < result.RequeueAfter) {
			result.RequeueAfter = d
		}
	}
	return result
}

// decides reports whether the controller decides a placement. The decisions of a placement
// that is being deleted do not change: the garbage collector deletes or orphans them.
func (c *Controller) decides(object *v1beta1.Placement) bool {
	annotated := object.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
	return object.DeletionTimestamp == nil && annotated == (c.adopt == AdoptAnnotated)
}

// forget drops the data of a placement that is not in the state.
func (c *Controller) forget(key client.ObjectKey) {
	c.scored.Delete(key)
	c.reports.Delete(key)
	c.readings.Delete(key)
}

// metrics are the metrics of the controller.
type metrics struct {
	decisions prometheus.Histogram
	latency   prometheus.Histogram
	writes    *prometheus.CounterVec
}

// newMetrics returns metrics that are registered.
func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		decisions: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "decision_duration_seconds",
			Help:    "[ALPHA] Duration of decisions, including the wait for other decisions, without reading and writing objects.",
			Buckets: prometheus.ExponentialBuckets(1e-5, 4, 10),
		}),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "latency_seconds",
			Help:    "[ALPHA] Time from receiving a change to having written the decisions that take it into account.",
			Buckets: prometheus.ExponentialBuckets(0.05, 2, 12),
		}),
		writes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "plimsoll", Subsystem: "placement", Name: "writes_total",
			Help: "[ALPHA] Attempted writes by verb: create, update (decisions in the status) and delete of PlacementDecisions, " +
				"and status of placements.",
		}, []string{"verb"}),
	}
	registry.MustRegister(m.decisions, m.latency, m.writes)
	return m
}

func (m *metrics) countWrite(verb string) { m.writes.WithLabelValues(verb).Inc() }

// servedInterval is the time between two checks whether the kinds are served.
const servedInterval = 10 * time.Second

// waitUntilServed waits until all kinds of the controller are served, or the context ends. A
// cluster that is not a hub serves none of them, which is not an error.
func waitUntilServed(ctx context.Context, m ctrl.Manager) error {
	logged := false
	return wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
		missing := checkServed(m, &v1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}, &fleet.ManagedCluster{},
			&clusterv1beta2.ManagedClusterSet{}, &clusterv1beta2.ManagedClusterSetBinding{}, &clusterv1alpha1.AddOnPlacementScore{})
		if missing != nil && !logged {
			log.FromContext(ctx).Info(
				"Placements are not decided because the cluster does not serve all kinds of an Open Cluster Management hub",
				"missing", missing.Error())
			logged = true
		}
		return missing == nil, nil
	})
}

// checkServed returns an error that names the first kind of the objects that the API server does not serve.
func checkServed(m ctrl.Manager, objects ...runtime.Object) error {
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, m.GetScheme())
		if err == nil {
			_, err = m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
