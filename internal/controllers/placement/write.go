package placement

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// decisions returns the PlacementDecisions of a placement that the cache knows.
func (c *Controller) decisions(ctx context.Context, key types.NamespacedName) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	err := c.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingFields{ofPlacement: key.Name})
	return list.Items, err
}

// outcome is what has been written of a verdict.
type outcome struct {
	slices []fleet.Slice
	// rewritten: something was, and so the scores in the decisions are new.
	rewritten bool
}

// write makes the PlacementDecisions be what a verdict says, with the fewest
// writes, and such that no cluster that stays is missing between two of them.
// again is when to look once more because scores alone have changed that must
// not be written yet.
func (c *Controller) write(ctx context.Context, object *v1beta1.Placement, there []clusterv1beta1.PlacementDecision, verdict *fleet.Verdict, now time.Time) (out outcome, again time.Duration, err error) {
	before := slicesOf(there)
	if verdict.Keep {
		return outcome{slices: before}, 0, nil
	}
	out = outcome{slices: fleet.Layout(object.Name, before, verdict.Groups)}
	steps := fleet.Steps(before, out.slices, false)
	if len(fleet.Steps(before, out.slices, true)) == 0 && len(steps) > 0 {
		if again = untilScores(object, now); again > 0 {
			return out, again, nil
		}
	}
	for _, step := range steps {
		if err := c.take(ctx, object, there, step); err != nil {
			return out, 0, err
		}
	}
	out.rewritten = len(steps) > 0
	return out, 0, nil
}

// untilScores returns how long scores may not be written that choose no other
// cluster.
func untilScores(object *v1beta1.Placement, now time.Time) time.Duration {
	spec := object.Spec.DeepCopy()
	spec.Default()
	limit, err := time.ParseDuration(spec.ScoreRateLimit)
	if err != nil || object.Status.LastScoreUpdateTime == nil {
		return 0
	}
	return object.Status.LastScoreUpdateTime.Add(limit).Sub(now)
}

// take takes one step.
func (c *Controller) take(ctx context.Context, object *v1beta1.Placement, there []clusterv1beta1.PlacementDecision, step fleet.Step) error {
	decision := &clusterv1beta1.PlacementDecision{}
	for i := range there {
		if there[i].Name == step.Slice.Name {
			decision = &there[i]
		}
	}
	if step.Delete {
		c.metrics.wrote("delete")
		return client.IgnoreNotFound(c.client.Delete(ctx, decision, client.Preconditions{ResourceVersion: &decision.ResourceVersion}))
	}
	if decision.Name == "" {
		decision.ObjectMeta = metav1.ObjectMeta{
			Name: step.Slice.Name, Namespace: object.Namespace, Labels: step.Slice.Labels(object.Name),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.Kind, Name: object.Name, UID: object.UID,
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		}
		c.metrics.wrote("create")
		if err := c.client.Create(ctx, decision); apierrors.IsAlreadyExists(err) {
			return c.makeRoom(ctx, object, client.ObjectKeyFromObject(decision), err)
		} else if err != nil {
			return err
		}
	}
	decision = decision.DeepCopy()
	decision.Status.Decisions = step.Slice.Decisions
	c.metrics.wrote("update")
	if err := c.client.Status().Update(ctx, decision); err != nil {
		return err
	}
	for i := range there {
		if there[i].Name == decision.Name {
			there[i] = *decision // of the new version, for a second step
		}
	}
	return nil
}

// makeRoom looks at what has the name of a PlacementDecision that could not be
// created. If it is one that the cache has not heard of yet, exists is returned.
// If it is one of the placement that has lost its label, so that nobody finds it,
// it is deleted; the next try creates it. If it is somebody else's it is in the
// way.
func (c *Controller) makeRoom(ctx context.Context, object *v1beta1.Placement, key client.ObjectKey, exists error) error {
	var there clusterv1beta1.PlacementDecision
	if err := c.live.Get(ctx, key, &there); err != nil {
		return err
	}
	if there.Labels[clusterv1beta1.PlacementLabel] == object.Name {
		return exists
	}
	if !metav1.IsControlledBy(&there, object) {
		return fmt.Errorf("PlacementDecision %s is there and not of this placement: delete or rename it", key.Name)
	}
	c.metrics.wrote("delete")
	if err := c.client.Delete(ctx, &there, client.Preconditions{ResourceVersion: &there.ResourceVersion}); client.IgnoreNotFound(err) != nil {
		return err
	}
	return exists
}

// remove deletes the decisions of a placement that is gone. Where there is a
// garbage collector, it does so, too. What the cache has heard is not enough to
// delete by.
func (c *Controller) remove(ctx context.Context, key types.NamespacedName) error {
	there, err := c.decisions(ctx, key)
	if err != nil || len(there) == 0 {
		return err
	}
	var placement v1beta1.Placement
	err = c.live.Get(ctx, key, &placement)
	switch {
	case err == nil && placement.DeletionTimestamp == nil:
		return nil // it is back, and its event comes
	case err != nil && (!apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)):
		return err
	}
	for i := range there {
		if owner := metav1.GetControllerOf(&there[i]); owner == nil || owner.Kind != v1beta1.Kind || owner.Name != key.Name {
			continue
		}
		c.metrics.wrote("delete")
		if err := c.client.Delete(ctx, &there[i]); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return nil
}
