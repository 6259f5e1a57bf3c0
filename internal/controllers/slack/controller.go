// Package slack reconciles ResourceSlack policies: it watches nodes, pods and workloads, computes
// plans, and writes the objects that hold the placeholders.
package slack

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// batchPeriod is the time for which changes of pods and nodes are collected before the next plan.
	batchPeriod = time.Second
	// resyncPeriod is the time between two plans without changes: a cool-down, or the grace period of a
	// node that is not ready, may have ended.
	resyncPeriod = 30 * time.Second
	// retryPeriod is the time to the next attempt if the API server or a webhook could not write an object.
	retryPeriod = 5 * time.Second
	// workers is the number of policies that are reconciled at the same time. They mostly wait for the
	// API server.
	workers = 4
	// maxBackoff limits the time to the next attempt, so that an API server is used soon after a long
	// outage.
	maxBackoff = 10 * time.Second
)

// Controller reconciles ResourceSlack policies.
type Controller struct {
	client    client.Client
	recorder  events.EventRecorder
	namespace string
	// podNamespace is the namespace of placeholder pods, empty if backend Deployment is not enabled.
	podNamespace string
	now          func() time.Time

	mu sync.Mutex
	// clusters are shared by the trackers of pools with the same devices, which are the keys.
	clusters map[string]*slack.Cluster
	trackers map[string]*policyTracker
	metrics  *metrics
	// ungated has the pods that scheduling gates have held, with the time at which the last gate was removed.
	ungated map[types.UID]time.Time
	// refusals have the last event slack.NotTriggered of each buffer.
	refusals map[types.NamespacedName]slack.Refusal
	// withoutStrategy is the time in seconds since 1970 at which the API server last refused the field provisioningStrategy of buffers.
	withoutStrategy atomic.Int64
}

// policyTracker is the tracker of one policy.
type policyTracker struct {
	*slack.Tracker
	waits podWaits
	// answers are the last reports of an autoscaler about the buffers of the policy.
	answers []slack.Answer
}

// New returns a controller that writes buffers to the namespace, and to the namespaces of workloads that are
// mirrored. Placeholder pods are in podNamespace, which must have nothing else in it; if it is empty, backend
// Deployment is not enabled. New registers its metrics with the registry.
func New(c client.Client, recorder events.EventRecorder, registry prometheus.Registerer, namespace, podNamespace string) *Controller {
	return &Controller{
		client:       c,
		recorder:     recorder,
		namespace:    namespace,
		podNamespace: podNamespace,
		now:          time.Now,
		trackers:     map[string]*policyTracker{},
		clusters:     map[string]*slack.Cluster{},
		ungated:      map[types.UID]time.Time{},
		refusals:     map[types.NamespacedName]slack.Refusal{},
		metrics:      newMetrics(registry),
	}
}

// SetClock sets the clock that plans, and the changes of schedules, follow. It must be called before Register.
func (c *Controller) SetClock(now func() time.Time) { c.now = now }

// +kubebuilder:rbac:groups="",resources=namespaces;nodes;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=podtemplates,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=autoscaling.x-k8s.io,resources=capacitybuffers,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=deployments;replicasets;statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks,verbs=get;list;watch
// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Register adds the controller to a manager.
func (c *Controller) Register(manager ctrl.Manager) error {
	objects, err := dynamic.NewForConfigAndClient(manager.GetConfig(), manager.GetHTTPClient())
	if err != nil {
		return err
	}
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](100*time.Millisecond, maxBackoff)
	builder := ctrl.NewControllerManagedBy(manager).
		Named("resourceslack").
		For(&v1alpha1.ResourceSlack{}).
		Watches(&v1.Node{}, c.nodeHandler()).
		Watches(&v1.Pod{}, c.podHandler()).
		Watches(&v1.Namespace{}, c.namespaceHandler()).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers, RateLimiter: limiter})
	for _, kind := range workloadKinds() {
		if err := manager.GetFieldIndexer().IndexField(context.Background(), kind.object, annotatedIndex, indexAnnotated); err != nil {
			return err
		}
		builder.Watches(kind.object, c.workloadHandler())
	}
	for _, resource := range []schema.GroupVersionResource{bufferResource, templateResource} {
		builder.WatchesRawSource(objectSource(objects, resource, c.bufferHandler()))
	}
	builder.WatchesRawSource(objectSource(objects, eventResource, c.eventHandler()))
	return builder.Complete(c)
}

// Reconcile writes the objects and the status of one policy.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	policy := &v1alpha1.ResourceSlack{}
	err := c.client.Get(ctx, request.NamespacedName, policy)
	if apierrors.IsNotFound(err) || err == nil && policy.DeletionTimestamp != nil {
		c.deleteTracker(request.Name)
		c.metrics.deletePolicy(request.Name)
		result, err := c.deleteObjects(ctx, request.Name)
		if err == nil && policy.Name != "" {
			err = c.reportDeleted(ctx, policy)
		}
		return result, err
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	t, err := c.trackerOf(ctx, policy)
	if invalid, ok := errors.AsType[invalidPolicyError](err); ok {
		return reconcile.Result{}, c.reportInvalid(ctx, policy, invalid)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	observed, err := c.observe(ctx, t)
	if err != nil {
		return reconcile.Result{}, err
	}
	if observed.outcome, err = c.apply(ctx, t.Policy(), observed.plan); err != nil {
		return reconcile.Result{}, err
	}
	if err := c.place(ctx, &observed); err != nil {
		return reconcile.Result{}, err
	}
	c.metrics.recordPolicy(policy.Name, observed)
	if err := c.report(ctx, policy, t, observed); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: observed.nextReconcile(c.now())}, nil
}

// invalidPolicyError is returned for an invalid policy, which the user must correct. Retrying does
// not help.
type invalidPolicyError struct{ error }

// trackerOf returns the tracker of a policy. A new tracker, which a policy with a changed pool also has, resumes from the existing
// objects of the policy, and has all pods of the cache.
func (c *Controller) trackerOf(ctx context.Context, policy *v1alpha1.ResourceSlack) (*policyTracker, error) {
	if t, err := c.existingTracker(policy); t != nil || err != nil {
		return t, err
	}
	existing, err := c.existing(ctx, policy.Name)
	if err != nil {
		return nil, err
	}
	groups, err := slack.HeldGroups(existing)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	devices := devicesOf(policy)
	cluster := c.clusters[devices]
	isNew := cluster == nil
	if isNew {
		cluster = slack.NewCluster(policy.Spec.Pool.Devices...)
	}
	tracker, err := cluster.NewTracker(policy)
	if err != nil {
		return nil, invalidPolicyError{err}
	}
	if isNew {
		if err := c.addPods(ctx, cluster); err != nil {
			return nil, err
		}
	}
	tracker.Resume(groups)
	if c.trackers[policy.Name] == nil { // else the pool has changed
		tracker.ResumePool(policy.Status.NodeShape, policy.Status.Domains)
	}
	c.close(policy.Name)
	t := &policyTracker{Tracker: tracker, waits: newPodWaits(c.now())}
	c.trackers[policy.Name], c.clusters[devices] = t, cluster
	return t, nil
}

// existingTracker returns the tracker of a policy, with the present spec, nil if there is none for its pool.
func (c *Controller) existingTracker(policy *v1alpha1.ResourceSlack) (*policyTracker, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.trackers[policy.Name]
	if t == nil || !equality.Semantic.DeepEqual(t.Policy().Spec.Pool, policy.Spec.Pool) {
		return nil, nil
	}
	// A policy that was deleted and created again has another UID.
	if known := t.Policy(); known.Generation == policy.Generation && known.UID == policy.UID {
		return t, nil
	}
	if err := t.SetPolicy(policy); err != nil {
		return nil, invalidPolicyError{err}
	}
	return t, nil
}

// devicesOf returns the devices of the pool of a policy: a key of Controller.clusters.
func devicesOf(policy *v1alpha1.ResourceSlack) string {
	return strings.Join(policy.Spec.Pool.Devices, ",")
}

// addPods adds the pods of the cache to a cluster.
func (c *Controller) addPods(ctx context.Context, cluster *slack.Cluster) error {
	var pods v1.PodList
	if err := c.client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	for i := range pods.Items {
		cluster.SetPod(&pods.Items[i])
	}
	return nil
}

// observation is the state of a policy and its pool at one time.
type observation struct {
	plan slack.Plan
	// capacity is the capacity of the pool, free the sum over its nodes, and placeable the number of placeholders
	// of the plan that fit. fitsRate is set if all placeholders fit that mirror no workload, without the ones that do.
	capacity  *slack.Capacity
	free      v1.ResourceList
	placeable int64
	fitsRate  bool
	// overlap is the first name of another policy that selects a node of the pool, empty if there is none.
	overlap string
	// outcome is the result of writing the plan.
	outcome
}

// nextReconcile returns the time after which the policy is reconciled if nothing changes: the next attempt, or the
// next change of a schedule if it is earlier.
func (o *observation) nextReconcile(now time.Time) time.Duration {
	next := cmp.Or(o.retryAfter, resyncPeriod)
	if o.plan.Schedule != nil && o.plan.Schedule.NextChange != nil {
		next = min(next, max(o.plan.Schedule.NextChange.Sub(now), time.Millisecond))
	}
	return next
}

// observe computes the plan for the current nodes and workloads.
func (c *Controller) observe(ctx context.Context, t *policyTracker) (o observation, err error) {
	var policies v1alpha1.ResourceSlackList
	if err := c.client.List(ctx, &policies); err != nil {
		return o, err
	}
	workloads, err := c.workloads(ctx)
	if err != nil {
		return o, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// Listed with the lock: a node that is deleted later is then deleted from the tracker, too.
	var nodes v1.NodeList
	if err := c.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return o, err
	}
	c.plan(t, nodes.Items, governedBy(t.Policy().Name, policies.Items, workloads), &o)
	return o, nil
}

// place counts the placeholders of an observation that fit the pool. It takes long if mirrors have much
// anti-affinity; therefore it is called after writing the objects and without the lock.
func (c *Controller) place(ctx context.Context, o *observation) error {
	namespaces, all := o.plan.AntiAffinityNamespaces()
	if all {
		namespaces = []string{v1.NamespaceAll}
	}
	var pods []*v1.Pod
	for _, namespace := range namespaces {
		var list v1.PodList
		if err := c.client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			pods = append(pods, &list.Items[i])
		}
	}
	o.placeable = o.capacity.Placeable(o.plan, pods)
	rate, count := o.plan, int64(0)
	rate.Groups = slices.DeleteFunc(slices.Clone(rate.Groups), func(g slack.Group) bool { return g.Mirror != nil })
	for _, group := range rate.Groups {
		count += group.Count
	}
	o.fitsRate = o.capacity.Placeable(rate, nil) >= count
	return nil
}

// plan computes the plan of a policy for nodes and workloads, and whether another policy selects a node
// of its pool. c.mu must be locked.
func (c *Controller) plan(t *policyTracker, nodes []v1.Node, workloads []slack.Workload, o *observation) {
	now := c.now()
	var pool []*v1.Node
	for i := range nodes {
		if t.SetNode(&nodes[i], now) {
			pool = append(pool, &nodes[i])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.trackers)) {
		other := c.trackers[name]
		selects := func(node *v1.Node) bool { return slack.InPool(node, other.Policy().Spec.Pool) }
		if other != t && slices.ContainsFunc(pool, selects) {
			o.overlap = name
			break
		}
	}
	t.SetWorkloads(workloads)
	start := time.Now()
	o.plan = t.Next(now)
	c.metrics.plans.Observe(time.Since(start).Seconds())
	o.capacity, o.free = t.Capacity(), t.Free()
}

// deleteTracker deletes the tracker of a deleted policy.
func (c *Controller) deleteTracker(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close(name)
}

// close deletes the tracker of a policy if there is one, and its cluster if no other tracker uses it. c.mu must be locked.
func (c *Controller) close(name string) {
	t := c.trackers[name]
	if t == nil {
		return
	}
	t.Close()
	delete(c.trackers, name)
	devices := devicesOf(t.Policy())
	for _, other := range c.trackers {
		if devicesOf(other.Policy()) == devices {
			return
		}
	}
	delete(c.clusters, devices)
}

// eachTracker calls f with each tracker and returns the names of the policies.
func (c *Controller) eachTracker(f func(*policyTracker)) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, t := range c.trackers {
		f(t)
		names = append(names, name)
	}
	return names
}

// policies returns the names of the policies that have a tracker.
func (c *Controller) policies() []string { return c.eachTracker(func(*policyTracker) {}) }
