package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// statusReport is a status that the controller has written.
type statusReport struct {
	uid types.UID
	// version is the resourceVersion of the written object.
	version string
	at      time.Time
	status  clusterv1beta1.PlacementStatus
}

// droppedFields are fields that the hub does not store, because its CRDs are older. They
// must not be the only reason for a write.
type droppedFields struct {
	// scores are the scores in PlacementDecisions, scoreTime is lastScoreUpdateTime in
	// the status of a placement.
	scores, scoreTime atomic.Bool
	// scoresKnown is set when scores has been determined.
	scoresKnown atomic.Bool
	// initialStatus is the status of a PlacementDecision that is created: it is written afterwards.
	initialStatus atomic.Bool
}

// observeScores determines whether the hub stores scores, after the first write of scores.
// The written object does not show it: decoding a response keeps fields that the response
// lacks.
func (c *Controller) observeScores(ctx context.Context, written *clusterv1beta1.PlacementDecision) {
	hasScore := func(d clusterv1beta1.ClusterDecision) bool { return d.Score != 0 }
	if c.dropped.scoresKnown.Load() || !slices.ContainsFunc(written.Status.Decisions, hasScore) {
		return
	}
	var stored clusterv1beta1.PlacementDecision
	err := c.apiReader.Get(ctx, client.ObjectKeyFromObject(written), &stored)
	if err != nil || stored.ResourceVersion != written.ResourceVersion {
		return // after the next write
	}
	c.dropped.scores.Store(!slices.ContainsFunc(stored.Status.Decisions, hasScore))
	c.dropped.scoresKnown.Store(true)
}

// lastReport returns the last written status of a placement, nil if there is none.
func (c *Controller) lastReport(object *v1beta1.Placement) *statusReport {
	if last, ok := c.reports.Load(client.ObjectKeyFromObject(object)); ok && last.(*statusReport).uid == object.UID {
		return last.(*statusReport)
	}
	return nil
}

// hasReported reports whether the controller has written the status of an object.
func (c *Controller) hasReported(object *v1beta1.Placement) bool {
	last := c.lastReport(object)
	return last != nil && (last.version == object.ResourceVersion || equality.Semantic.DeepEqual(last.status, object.Status))
}

// report writes the status of a placement after its decisions have been written. If only
// numbers have changed and the last write is recent, it returns the delay after which to
// try again.
func (c *Controller) report(
	ctx context.Context, object *v1beta1.Placement, result *fleet.Result, written writeResult, now time.Time,
) (time.Duration, error) {
	last := c.lastReport(object)
	if last != nil && isOlder(object.ResourceVersion, last.version) { // the cache lacks the last write
		object = object.DeepCopy()
		object.Status = *last.status.DeepCopy()
	}
	status, before := c.statusOf(object, last, result, written.decisions), object.Status.Conditions
	if last != nil {
		before = last.status.Conditions
	}
	if c.sameStatus(&object.Status, status) {
		return 0, nil
	}
	if last != nil && !transitions(before, result.Conditions) && sameGroups(last.status.DecisionGroups, status.DecisionGroups) {
		// After a change of the clock the last write can be in the future.
		if wait := last.at.Add(statusInterval).Sub(now); wait > 0 && wait <= statusInterval {
			return wait, nil
		}
	}
	stored, err := c.patchStatus(ctx, object, status)
	if err != nil || stored == nil {
		return 0, err
	}
	if status.LastScoreUpdateTime != nil {
		c.dropped.scoreTime.Store(stored.Status.LastScoreUpdateTime == nil)
	}
	c.reports.Store(client.ObjectKeyFromObject(object),
		&statusReport{uid: object.UID, version: stored.ResourceVersion, at: now, status: stored.Status})
	c.recordConditions(object, before, status.Conditions, result.Warnings)
	return 0, nil
}

// patchStatus writes a status. It returns the stored object, nil if it has been deleted.
func (c *Controller) patchStatus(
	ctx context.Context, object *v1beta1.Placement, status *clusterv1beta1.PlacementStatus,
) (*v1beta1.Placement, error) {
	changed := object.DeepCopy()
	changed.Status = *status
	patch, err := client.MergeFrom(object).Data(changed)
	if err != nil {
		return nil, err
	}
	// An empty object: decoding the response would keep fields that it lacks.
	stored := &v1beta1.Placement{}
	stored.Namespace, stored.Name = object.Namespace, object.Name
	c.metrics.countWrite("status")
	err = c.client.Status().Patch(ctx, stored, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("patching status: %w", err)
	}
	return stored, nil
}

// isOlder reports whether a version of an object precedes another version.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// statusOf returns the status of a placement after its decisions have been written. It
// restores the fields of the last report, and keeps conditions of other types.
func (c *Controller) statusOf(
	object *v1beta1.Placement, last *statusReport, result *fleet.Result, decisions []clusterv1beta1.PlacementDecision,
) *clusterv1beta1.PlacementStatus {
	status := object.Status.DeepCopy()
	if last != nil {
		status.LastScoreUpdateTime = last.status.LastScoreUpdateTime
		for _, condition := range last.status.Conditions {
			if meta.FindStatusCondition(result.Conditions, condition.Type) != nil {
				meta.RemoveStatusCondition(&status.Conditions, condition.Type)
				status.Conditions = append(status.Conditions, condition)
			}
		}
	}
	for _, condition := range result.Conditions {
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	status.NumberOfSelectedClusters = 0
	for i := range decisions {
		status.NumberOfSelectedClusters += int32(len(decisions[i].Status.Decisions))
	}
	status.DecisionGroups = groupsOf(decisions)
	if at, known := c.scored.Load(client.ObjectKeyFromObject(object)); known {
		status.LastScoreUpdateTime = &metav1.Time{Time: at.(time.Time).Truncate(time.Second)} // as it is stored
	}
	return status
}

// sameStatus reports whether writing a status would change nothing that the hub stores.
// The order of conditions does not matter.
func (c *Controller) sameStatus(before, after *clusterv1beta1.PlacementStatus) bool {
	a, b := before.DeepCopy(), after.DeepCopy()
	if c.dropped.scoreTime.Load() {
		a.LastScoreUpdateTime, b.LastScoreUpdateTime = nil, nil
	}
	for _, s := range []*clusterv1beta1.PlacementStatus{a, b} {
		slices.SortFunc(s.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	}
	return equality.Semantic.DeepEqual(a, b)
}

// transitions reports whether the status, the reason or the generation of a condition changes.
func transitions(before, after []metav1.Condition) bool {
	return slices.ContainsFunc(after, func(new metav1.Condition) bool {
		old := meta.FindStatusCondition(before, new.Type)
		return old == nil || old.Status != new.Status || old.Reason != new.Reason || old.ObservedGeneration != new.ObservedGeneration
	})
}

// sameGroups reports whether two lists of groups have the same PlacementDecisions.
func sameGroups(a, b []clusterv1beta1.DecisionGroupStatus) bool {
	return slices.EqualFunc(a, b, func(a, b clusterv1beta1.DecisionGroupStatus) bool {
		return a.DecisionGroupName == b.DecisionGroupName && slices.Equal(a.Decisions, b.Decisions)
	})
}

// groupsOf returns the groups of a status.
func groupsOf(decisions []clusterv1beta1.PlacementDecision) []clusterv1beta1.DecisionGroupStatus {
	groups := []clusterv1beta1.DecisionGroupStatus{}
	for i := range decisions {
		d := &decisions[i]
		index := int32(max(fleet.GroupIndex(d), 0)) // none, of decisions that are kept
		if len(groups) == 0 || groups[len(groups)-1].DecisionGroupIndex != index {
			name := d.Labels[clusterv1beta1.DecisionGroupNameLabel]
			groups = append(groups, clusterv1beta1.DecisionGroupStatus{DecisionGroupIndex: index, DecisionGroupName: name})
		}
		group := &groups[len(groups)-1]
		group.Decisions = append(group.Decisions, d.Name)
		group.ClustersCount += int32(len(d.Status.Decisions))
	}
	return groups
}
