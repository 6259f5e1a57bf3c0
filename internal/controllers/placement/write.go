package placement

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/decide"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// deleteStale deletes the PlacementDecisions of a deleted placement of the same name: their promises have ended, and a garbage collector
// would delete them later. It returns the other ones.
func (c *Controller) deleteStale(
	ctx context.Context, object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision,
) (remaining []clusterv1beta1.PlacementDecision, err error) {
	for i := range existing {
		if !fleet.IsStale(&existing[i], object.UID) {
			remaining = append(remaining, existing[i])
		} else if err := c.deleteDecision(ctx, &existing[i]); err != nil {
			return nil, err
		}
	}
	return remaining, nil
}

// deleteDecision deletes a PlacementDecision that is unchanged since it was read, if it exists.
func (c *Controller) deleteDecision(ctx context.Context, d *clusterv1beta1.PlacementDecision) error {
	c.metrics.countWrite("delete")
	return client.IgnoreNotFound(c.client.Delete(ctx, d, client.Preconditions{ResourceVersion: &d.ResourceVersion}))
}

// decisions returns the cached PlacementDecisions of a placement, in the order of their groups.
func (c *Controller) decisions(ctx context.Context, key types.NamespacedName) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	err := c.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{placementIndex: key.Name})
	slices.SortFunc(list.Items, func(a, b clusterv1beta1.PlacementDecision) int {
		return cmp.Or(cmp.Compare(fleet.GroupIndex(&a), fleet.GroupIndex(&b)), cmp.Compare(len(a.Name), len(b.Name)),
			cmp.Compare(a.Name, b.Name))
	})
	return list.Items, err
}

// writeResult is the state of the PlacementDecisions of a placement after a write.
type writeResult struct {
	decisions []clusterv1beta1.PlacementDecision
	// rewritten is set if any was written, so that its scores are current.
	rewritten bool
}

// write writes the PlacementDecisions of a result with as few writes as possible, such
// that no remaining cluster is missing in between. If only scores have changed and must
// not be written yet, it returns the delay after which to try again.
func (c *Controller) write(
	ctx context.Context, object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision, result *fleet.Result, now time.Time,
) (out writeResult, delay time.Duration, err error) {
	if result.KeepDecisions {
		return writeResult{decisions: existing}, 0, nil
	}
	if out.decisions, err = c.layout(ctx, object, existing, result.Groups); err != nil {
		return out, 0, err
	}
	steps := result.Steps(existing, out.decisions, c.dropped.scores.Load())
	if len(steps) > 0 && len(result.Steps(existing, out.decisions, true)) == 0 {
		if delay = c.scoreDelay(object, now); delay > 0 {
			return out, delay, nil
		}
	}
	for i := range steps {
		if err := c.applyStep(ctx, object, &steps[i]); err != nil {
			return out, 0, err
		}
		if !slices.ContainsFunc(steps[i+1:], func(s fleet.Step) bool { return s.Name() == steps[i].Name() }) {
			c.recordStep(object, existing, &steps[i])
		}
	}
	if out.rewritten = len(steps) > 0; out.rewritten {
		c.scored.Store(client.ObjectKeyFromObject(object), now)
		c.recordScores(object, result)
	}
	return out, 0, nil
}

// ownerOf returns the reference of a PlacementDecision to its placement.
func ownerOf(object *v1beta1.Placement) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.Kind, Name: object.Name, UID: object.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// layout returns the PlacementDecisions of a placement for groups, see fleet.Layout. It does not use reserved names.
func (c *Controller) layout(
	ctx context.Context, object *v1beta1.Placement, existing []clusterv1beta1.PlacementDecision, groups []decide.Group,
) ([]clusterv1beta1.PlacementDecision, error) {
	taken := slices.Clone(existing)
	for {
		wanted := fleet.Layout(object.Name, taken, groups)
		reserved, err := c.reservedName(ctx, object, wanted)
		if err != nil || reserved == "" {
			return wanted, err
		}
		taken = append(taken, clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: reserved}}) // in no group
	}
}

// reservedName returns the name of a PlacementDecision to be created that the cache has without the label of the
// placement, "" if there is none: it existed before the placement, or another client removed the label.
func (c *Controller) reservedName(
	ctx context.Context, object *v1beta1.Placement, wanted []clusterv1beta1.PlacementDecision,
) (string, error) {
	for i := range wanted {
		if wanted[i].ResourceVersion != "" {
			continue
		}
		var other clusterv1beta1.PlacementDecision
		err := c.client.Get(ctx, client.ObjectKey{Namespace: object.Namespace, Name: wanted[i].Name}, &other)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", err
		case other.Labels[clusterv1beta1.PlacementLabel] != object.Name:
			return other.Name, nil
		}
	}
	return "", nil
}

// scoreDelay returns the time until changed scores may be written if no other cluster
// is selected. A last write in the future, after a change of the clock, does not delay.
func (c *Controller) scoreDelay(object *v1beta1.Placement, now time.Time) time.Duration {
	spec := object.Spec.DeepCopy()
	spec.Default()
	limit, err := time.ParseDuration(spec.ScoreRateLimit)
	if err != nil {
		return 0
	}
	var last time.Time
	if written := object.Status.LastScoreUpdateTime; written != nil {
		last = written.Time
	}
	if written, ok := c.scored.Load(client.ObjectKeyFromObject(object)); ok && written.(time.Time).After(last) {
		last = written.(time.Time)
	}
	if last.After(now) {
		return 0
	}
	return last.Add(limit).Sub(now)
}

// applyStep writes one PlacementDecision, and sets step.After to the stored object.
func (c *Controller) applyStep(ctx context.Context, object *v1beta1.Placement, step *fleet.Step) error {
	if step.After == nil {
		return c.deleteDecision(ctx, step.Before)
	}
	decisions := step.After.Status.Decisions
	decision := step.Before.DeepCopy()
	if decision == nil {
		decision = step.After.DeepCopy()
		decision.Namespace = object.Namespace
		decision.OwnerReferences = []metav1.OwnerReference{ownerOf(object)}
		complete, err := c.create(ctx, decision)
		if err != nil {
			return err
		}
		if complete {
			c.observeScores(ctx, decision)
			return nil
		}
		decision.Status.Decisions = nil // the response does not show it
	}
	// First, so that no decision is without its promise after a crash.
	if before := decision.DeepCopy(); !maps.Equal(before.Annotations, step.After.Annotations) {
		decision.Annotations = step.After.Annotations
		if err := c.client.Patch(ctx, decision, client.MergeFrom(before)); err != nil {
			return err
		}
	}
	if !equality.Semantic.DeepEqual(decision.Status.Decisions, decisions) {
		decision.Status.Decisions = decisions
		c.metrics.countWrite("update")
		if err := c.client.Status().Update(ctx, decision); err != nil {
			return err
		}
		c.observeScores(ctx, decision)
	}
	*step.After = *decision // a second step needs the new version
	return nil
}

// remove deletes the decisions of a deleted placement that still have it as their owner,
// for hubs where no garbage collector runs. The API server must confirm that the
// placement does not exist and that the decisions are unchanged since the cached version:
// the garbage collector removes the owner from decisions to be orphaned. Decisions count for
// Balance as long as they exist, as in Open Cluster Management.
func (c *Controller) remove(ctx context.Context, key types.NamespacedName) error {
	existing, err := c.decisions(ctx, key)
	if err != nil || len(existing) == 0 {
		return err
	}
	c.state.SetUnmanaged(key, fleet.ClustersIn(existing))
	placement := &v1beta1.Placement{}
	if gone, err := setup.IsGone(ctx, c.apiReader, key, placement); err != nil || !gone || placement.UID != "" {
		return err
	}
	var remaining []clusterv1beta1.PlacementDecision
	for i := range existing {
		if owner := metav1.GetControllerOf(&existing[i]); owner == nil || owner.Kind != v1beta1.Kind || owner.Name != key.Name {
			remaining = append(remaining, existing[i])
			continue
		}
		err := c.deleteDecision(ctx, &existing[i])
		if apierrors.IsConflict(err) {
			remaining = append(remaining, existing[i]) // the decision has changed; its event follows
			continue
		}
		if err != nil {
			return err
		}
	}
	// At once: the next placement may be decided before the events of the deletion.
	if len(remaining) == 0 {
		c.state.DeletePlacement(key)
	} else {
		c.state.SetUnmanaged(key, fleet.ClustersIn(remaining))
	}
	return nil
}

// creationVersion is a version of PlacementDecision in the project's CRD without the subresource status, so that the object
// and its decisions are one write. The CRD of Open Cluster Management does not have it.
const creationVersion = "v1alpha1"

var creationKind = schema.GroupVersionKind{Group: clusterv1beta1.GroupName, Version: creationVersion, Kind: "PlacementDecision"}

// create creates a PlacementDecision of a placement with its decisions, if the hub serves creationVersion, or without them. It
// reports whether the hub has all of the object, and sets the resource version of the object.
func (c *Controller) create(ctx context.Context, decision *clusterv1beta1.PlacementDecision) (complete bool, err error) {
	complete, err = c.createComplete(ctx, decision)
	if err == nil && decision.ResourceVersion == "" { // not created
		c.metrics.countWrite("create")
		complete = len(decision.Status.Decisions) == 0
		err = c.client.Create(ctx, decision)
	}
	return complete, err
}

// createComplete creates a PlacementDecision with its decisions and sets its resource version. It creates nothing if the hub
// does not serve creationVersion, and reports whether the hub has stored the decisions.
func (c *Controller) createComplete(ctx context.Context, decision *clusterv1beta1.PlacementDecision) (complete bool, err error) {
	if c.dropped.initialStatus.Load() {
		return false, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(decision)
	if err != nil {
		return false, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(creationKind)
	err = c.client.Create(ctx, object)
	if resources.IsNotServed(err) {
		c.dropped.initialStatus.Store(true)
		return false, nil
	}
	c.metrics.countWrite("create")
	if err != nil {
		return false, err
	}
	decision.ResourceVersion = object.GetResourceVersion()
	_, complete, err = unstructured.NestedFieldNoCopy(object.Object, "status", "decisions")
	if !complete {
		c.dropped.initialStatus.Store(true)
	}
	return complete, err
}
