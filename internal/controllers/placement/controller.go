// Package placement keeps the decisions of placements over managed clusters: it
// watches the fleet, decides, and writes PlacementDecisions and status.
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
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// Adopt says which placements the controller decides.
type Adopt string

const (
	// AdoptAnnotated: those that are taken from a hub's own controller by the
	// annotation cluster.open-cluster-management.io/experimental-scheduling-disable:
	// "true".
	AdoptAnnotated Adopt = "annotated"
	// AdoptAll: every one, for hubs without another controller.
	AdoptAll Adopt = "all"
)

const (
	// workers is how many placements are written at a time. They are decided one
	// after the other.
	workers = 8
	// longestWait is the most between two tries to write.
	longestWait = 10 * time.Second
)

// Controller reconciles placements.
type Controller struct {
	client   client.Client
	live     client.Reader
	recorder events.EventRecorder
	adopt    Adopt
	state    *fleet.State
	metrics  *metrics
	now      func() time.Time
	delays   delays

	// loading is held for writing while all there is is read for the first time,
	// and for reading while a change is taken in.
	loading sync.RWMutex
	loaded  bool

	// scored are the times at which scores have been written, by placement: its
	// status says so too, but the cache learns that later than it learns of the
	// decisions.
	scored sync.Map
}

// New returns a controller. live reads past the cache.
func New(c client.Client, live client.Reader, recorder events.EventRecorder, registry prometheus.Registerer, adopt Adopt) *Controller {
	return &Controller{
		client: c, live: live, recorder: recorder, adopt: adopt,
		state: fleet.NewState(), metrics: newMetrics(registry), now: time.Now,
	}
}

// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=managedclusters;managedclustersets;managedclustersetbindings;addonplacementscores;placements,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placements/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=cluster.open-cluster-management.io,resources=placementdecisions/status,verbs=update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Register makes a manager run the controller, once the kinds that it watches are
// served.
func (c *Controller) Register(m ctrl.Manager) error {
	return m.Add(&whenServed{m, c})
}

// setUp adds the controller to a manager.
func (c *Controller) setUp(ctx context.Context, m ctrl.Manager) error {
	err := m.GetFieldIndexer().IndexField(ctx, &clusterv1beta1.PlacementDecision{}, ofPlacement, func(o client.Object) []string {
		return []string{o.GetLabels()[clusterv1beta1.PlacementLabel]}
	})
	if err != nil {
		return err
	}
	// Status is our own to write: only what users change is looked at.
	users := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	return ctrl.NewControllerManagedBy(m).
		Named("placement").
		For(&v1beta1.Placement{}, builder.WithPredicates(users, c.delays.noting())).
		Watches(&clusterv1.ManagedCluster{}, c.whenChanged(c.readCluster)).
		Watches(&clusterv1beta2.ManagedClusterSet{}, c.whenChanged(c.readSet)).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, c.whenChanged(c.readBinding)).
		Watches(&clusterv1alpha1.AddOnPlacementScore{}, c.whenChanged(c.readScores)).
		Watches(&clusterv1beta1.PlacementDecision{}, c.whenDecisionsChange()).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, longestWait),
		}).
		Complete(c)
}

// Reconcile decides one placement and writes what has become of it.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if err := c.load(ctx); err != nil {
		return reconcile.Result{}, err
	}
	c.delays.decide(request.NamespacedName)
	object := &v1beta1.Placement{}
	err := c.client.Get(ctx, request.NamespacedName, object)
	if apierrors.IsNotFound(err) || err == nil && object.DeletionTimestamp != nil && c.adopted(object) {
		c.delays.done(request.NamespacedName)
		c.state.DeletePlacement(request.NamespacedName)
		return reconcile.Result{}, c.remove(ctx, request.NamespacedName)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	there, err := c.decisions(ctx, request.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !c.adopted(object) {
		c.delays.done(request.NamespacedName)
		c.state.SetForeign(request.NamespacedName, fleet.ClustersIn(there))
		return reconcile.Result{}, nil
	}
	c.state.AddPlacement(object, fleet.ClustersIn(there))
	began := time.Now()
	now := c.now()
	verdict, ok := c.state.Decide(request.NamespacedName, now)
	if !ok {
		return reconcile.Result{Requeue: true}, nil //nolint:staticcheck // it has gone this moment; its event says the rest
	}
	c.metrics.decided(time.Since(began))
	return c.carryOut(ctx, object, there, verdict, now)
}

// carryOut writes what comes of a verdict, and the status when that is done.
func (c *Controller) carryOut(ctx context.Context, object *v1beta1.Placement, there []clusterv1beta1.PlacementDecision, verdict *fleet.Verdict, now time.Time) (reconcile.Result, error) {
	result := reconcile.Result{}
	if !verdict.RequeueAt.IsZero() {
		result.RequeueAfter = max(time.Second, verdict.RequeueAt.Sub(now))
	}
	written, again, err := c.write(ctx, object, there, verdict, now)
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		// The cache is behind, or somebody else has written: look again.
		return reconcile.Result{RequeueAfter: settle}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("writing decisions: %w", err)
	}
	if since, changed := c.delays.done(client.ObjectKeyFromObject(object)); changed && written.rewritten {
		c.metrics.waited(time.Since(since))
	}
	if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
		result.RequeueAfter = again
	}
	return result, c.report(ctx, object, verdict, written, now)
}

// adopted reports whether a placement is one of ours to decide.
func (c *Controller) adopted(object *v1beta1.Placement) bool {
	return c.adopt == AdoptAll || object.Annotations[clusterv1beta1.PlacementDisableAnnotation] == "true"
}
