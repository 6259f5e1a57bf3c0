package placement

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// report writes the status of a placement after its decisions have been written.
func (c *Controller) report(
	ctx context.Context, object *v1beta1.Placement, result *fleet.Result, written writeResult, now time.Time,
) error {
	status := object.Status.DeepCopy()
	for _, condition := range result.Conditions {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	if !result.KeepDecisions {
		status.NumberOfSelectedClusters = int32(result.Selected())
		status.DecisionGroups = groupsOf(written.slices)
		if written.rewritten || status.LastScoreUpdateTime == nil {
			status.LastScoreUpdateTime = &metav1.Time{Time: now}
		}
	}
	if status.DecisionGroups == nil {
		status.DecisionGroups = []clusterv1beta1.DecisionGroupStatus{}
	}
	if equality.Semantic.DeepEqual(object.Status, *status) {
		return nil
	}
	changed := object.DeepCopy()
	changed.Status = *status
	c.metrics.countWrite("status")
	if err := c.client.Status().Patch(ctx, changed, client.MergeFrom(object)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching status: %w", err)
	}
	c.recordEvents(object, status)
	return nil
}

// groupsOf returns the groups of a status.
func groupsOf(slices []fleet.Slice) (groups []clusterv1beta1.DecisionGroupStatus) {
	for _, s := range slices {
		if len(groups) == 0 || groups[len(groups)-1].DecisionGroupIndex != int32(s.Index) {
			groups = append(groups, clusterv1beta1.DecisionGroupStatus{DecisionGroupIndex: int32(s.Index), DecisionGroupName: s.Group})
		}
		group := &groups[len(groups)-1]
		group.Decisions = append(group.Decisions, s.Name)
		group.ClustersCount += int32(len(s.Decisions))
	}
	return groups
}

// recordEvents records events for the changes of a status.
func (c *Controller) recordEvents(object *v1beta1.Placement, status *clusterv1beta1.PlacementStatus) {
	if before := object.Status.NumberOfSelectedClusters; before != status.NumberOfSelectedClusters {
		c.recorder.Eventf(object, nil, v1.EventTypeNormal, "DecisionUpdate", "Decide", "selected %d clusters (was %d)",
			status.NumberOfSelectedClusters, before)
	}
	setup.RecordConditions(c.recorder, object, object.Status.Conditions, status.Conditions, eventType)
}

// eventType returns the type of the event for a changed condition, "" for none: a
// new placement without problems only reports its decisions.
func eventType(before, after *metav1.Condition) string {
	// PlacementMisconfigured is the condition that is False in a healthy placement.
	healthy := (after.Status == metav1.ConditionTrue) != (after.Type == clusterv1beta1.PlacementConditionMisconfigured)
	switch {
	case !healthy:
		return v1.EventTypeWarning
	case before == nil:
		return ""
	}
	return v1.EventTypeNormal
}
