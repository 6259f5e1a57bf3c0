package placement

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
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

// nameTaken is the name of a PlacementDecision that is not of the placement it is
// named after: it was there before, or somebody has taken its label away.
type nameTaken string

func (n nameTaken) Error() string {
	return "PlacementDecision " + string(n) + " is not labelled as one of the placement"
}

// write makes the PlacementDecisions be what a verdict says, with the fewest
// writes, and such that no cluster that stays is missing between two of them.
// again is when to look once more because scores alone have changed that must
// not be written yet.
func (c *Controller) write(ctx context.Context, object *v1beta1.Placement, there []clusterv1beta1.PlacementDecision, verdict *fleet.Verdict, now time.Time) (out outcome, again time.Duration, err error) {
	if verdict.Keep {
		return outcome{slices: slicesOf(there)}, 0, nil
	}
	var strangers []fleet.Slice
	for {
		out, again, err = c.writeBeside(ctx, object, there, strangers, verdict, now)
		taken, ok := errors.AsType[nameTaken](err)
		if !ok {
			return out, again, err
		}
		strangers = append(strangers, fleet.Slice{Name: string(taken), Index: -1}) // of no group
	}
}

// writeBeside writes beside PlacementDecisions whose names are not to be had.
func (c *Controller) writeBeside(ctx context.Context, object *v1beta1.Placement, there []clusterv1beta1.PlacementDecision, strangers []fleet.Slice, verdict *fleet.Verdict, now time.Time) (out outcome, again time.Duration, err error) {
	before := slicesOf(there)
	out = outcome{slices: fleet.Layout(object.Name, append(strangers, before...), verdict.Groups)}
	steps := fleet.Steps(before, out.slices, false)
	if len(fleet.Steps(before, out.slices, true)) == 0 && len(steps) > 0 {
		if again = c.untilScores(object, now); again > 0 {
			return out, again, nil
		}
	}
	for _, step := range steps {
		if err := c.take(ctx, object, there, step); err != nil {
			return out, 0, err
		}
	}
	if out.rewritten = len(steps) > 0; out.rewritten {
		c.scored.Store(client.ObjectKeyFromObject(object), now)
	}
	return out, 0, nil
}

// untilScores returns how long scores may not be written that choose no other
// cluster.
func (c *Controller) untilScores(object *v1beta1.Placement, now time.Time) time.Duration {
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
	return last.Add(limit).Sub(now)
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
		if err := c.create(ctx, object.Name, decision); err != nil {
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

// create creates a PlacementDecision of a placement; the error is nameTaken if
// there is another one of its name, which nobody says is of this placement.
func (c *Controller) create(ctx context.Context, placement string, decision *clusterv1beta1.PlacementDecision) error {
	err := c.client.Create(ctx, decision)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	var other clusterv1beta1.PlacementDecision
	if c.live.Get(ctx, client.ObjectKeyFromObject(decision), &other) == nil && other.Labels[clusterv1beta1.PlacementLabel] != placement {
		return nameTaken(decision.Name)
	}
	return err
}

// remove deletes the decisions of a placement that is gone. Where there is a
// garbage collector, it does so, too. What the cache has heard is not enough to
// delete by.
func (c *Controller) remove(ctx context.Context, key types.NamespacedName) error {
	c.scored.Delete(key)
	there, err := c.decisions(ctx, key)
	if err != nil || len(there) == 0 {
		return err
	}
	if gone, err := setup.IsGone(ctx, c.live, key, &v1beta1.Placement{}); err != nil || !gone {
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
