package slack

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
)

// Reasons of conditions.
const (
	reasonHeld          = "Held"
	reasonInvalid       = "InvalidPolicy"
	reasonNameTaken     = "NameTaken"
	reasonNoBuffers     = "CapacityBufferMissing"
	reasonNotFeasible   = "NotFeasible"
	reasonPlanned       = "Planned"
	reasonPoolsOverlap  = "PoolsOverlap"
	reasonAvailable     = "Available"
	reasonProvisioning  = "Provisioning"
	reasonNothingWanted = "NothingWanted"
)

// reportInvalid says what is wrong with a policy. What was held before stays.
func (c *Controller) reportInvalid(ctx context.Context, policy *v1alpha1.ResourceSlack, problem error) error {
	status := policy.Status.DeepCopy()
	set(status, policy, v1alpha1.ConditionFeasible, false, reasonInvalid, problem.Error())
	set(status, policy, v1alpha1.ConditionReady, false, reasonInvalid, problem.Error())
	return c.write(ctx, policy, status)
}

// report writes what a plan has come to.
func (c *Controller) report(ctx context.Context, policy *v1alpha1.ResourceSlack, is state) error {
	status := policy.Status.DeepCopy()
	plan := is.plan
	status.Base, status.Target, status.Total, status.Available = plan.Base, plan.Target, plan.Total, is.free
	status.Placeholders, status.Mirrored, status.Placed, status.Requests = 0, 0, is.room, nil
	for _, group := range plan.Groups {
		status.Placeholders += group.Count
		switch {
		case group.Mirror != nil:
			status.Mirrored += group.Count
		case !group.Head:
			status.Requests = group.Requests
		}
	}
	reasons := summary(plan.Reasons)
	numbers := fmt.Sprintf("%s are wanted, %d placeholders hold %s, there is room for %d of them and %s are to spare",
		amounts(plan.Target), status.Placeholders, amounts(plan.Total), is.room, amounts(is.free))
	if plan.Feasible {
		set(status, policy, v1alpha1.ConditionFeasible, true, reasonPlanned, cmp.Or(reasons, numbers))
	} else {
		set(status, policy, v1alpha1.ConditionFeasible, false, reasonNotFeasible, reasons)
	}
	provisioned := is.room >= status.Placeholders
	switch {
	case status.Placeholders == 0:
		set(status, policy, v1alpha1.ConditionProvisioned, true, reasonNothingWanted, numbers)
	case provisioned:
		set(status, policy, v1alpha1.ConditionProvisioned, true, reasonAvailable, numbers)
	default:
		set(status, policy, v1alpha1.ConditionProvisioned, false, reasonProvisioning, numbers)
	}
	switch {
	case isForeign(is.applyErr):
		set(status, policy, v1alpha1.ConditionReady, false, reasonNameTaken, is.applyErr.Error())
	case is.applyErr != nil:
		set(status, policy, v1alpha1.ConditionReady, false, reasonNoBuffers,
			"the cluster has no CapacityBuffers (autoscaling.x-k8s.io/v1beta1): turn them on in the autoscaler, or use backend Deployment")
	case is.overlap != "":
		set(status, policy, v1alpha1.ConditionReady, false, reasonPoolsOverlap, fmt.Sprintf("policy %s has nodes of this pool, too: their slack is reckoned twice", is.overlap))
	case !plan.Feasible:
		set(status, policy, v1alpha1.ConditionReady, false, reasonNotFeasible, reasons)
	case !provisioned:
		set(status, policy, v1alpha1.ConditionReady, false, reasonProvisioning, numbers)
	default:
		set(status, policy, v1alpha1.ConditionReady, true, reasonHeld, numbers)
	}
	return c.write(ctx, policy, status)
}

// set sets a condition.
func set(status *v1alpha1.ResourceSlackStatus, policy *v1alpha1.ResourceSlack, condition string, is bool, reason, message string) {
	value := metav1.ConditionFalse
	if is {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: condition, Status: value, Reason: reason, Message: message, ObservedGeneration: policy.Generation,
	})
}

// write writes a status unless it is there, and an event where a condition
// changed.
func (c *Controller) write(ctx context.Context, policy *v1alpha1.ResourceSlack, status *v1alpha1.ResourceSlackStatus) error {
	status.ObservedGeneration = policy.Generation
	if equality.Semantic.DeepEqual(policy.Status, *status) {
		return nil
	}
	changed := policy.DeepCopy()
	changed.Status = *status
	if err := c.client.Status().Patch(ctx, changed, client.MergeFrom(policy)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching status: %w", err)
	}
	setup.RecordConditions(c.recorder, policy, policy.Status.Conditions, status.Conditions, func(_, after *metav1.Condition) string {
		if after.Status != metav1.ConditionTrue {
			return v1.EventTypeWarning
		}
		return v1.EventTypeNormal
	})
	return nil
}

// summary joins reasons, the first ones if there are many: a message has an end.
func summary(reasons []string) string {
	const most = 5
	if len(reasons) > most {
		return fmt.Sprintf("%s; and %d more", strings.Join(reasons[:most], "; "), len(reasons)-most)
	}
	return strings.Join(reasons, "; ")
}

// amounts writes a list for people.
func amounts(list v1.ResourceList) string {
	return fmt.Sprintf("%s CPU and %dMi", list.Cpu(), (list.Memory().Value()+1<<20-1)>>20)
}
