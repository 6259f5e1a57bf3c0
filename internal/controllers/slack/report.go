package slack

import (
	"cmp"
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// Reasons of conditions, in addition to slack.Backend.UnavailableReason.
const (
	reasonHeld          = "Held"
	reasonInvalid       = "InvalidPolicy"
	reasonNameTaken     = "NameTaken"
	reasonNotFeasible   = "NotFeasible"
	reasonPlanned       = "Planned"
	reasonPoolsOverlap  = "PoolsOverlap"
	reasonAvailable     = "Available"
	reasonProvisioning  = "Provisioning"
	reasonNothingWanted = "NothingWanted"
)

// reportInvalid reports that a policy is invalid. Existing placeholders remain.
func (c *Controller) reportInvalid(ctx context.Context, policy *v1alpha1.ResourceSlack, invalid error) error {
	status := policy.Status.DeepCopy()
	setCondition(status, policy, v1alpha1.ConditionFeasible, false, reasonInvalid, invalid.Error())
	setCondition(status, policy, v1alpha1.ConditionReady, false, reasonInvalid, invalid.Error())
	return c.writeStatus(ctx, policy, status)
}

// report writes the status of a policy after an observation.
func (c *Controller) report(ctx context.Context, policy *v1alpha1.ResourceSlack, o observation) error {
	status := policy.Status.DeepCopy()
	plan := o.plan
	status.Base, status.Target, status.Total, status.Available = plan.Base, plan.Target, plan.Total, o.free
	status.Placeholders, status.Mirrored, status.Placed, status.Requests = 0, 0, o.placeable, nil
	for _, group := range plan.Groups {
		status.Placeholders += group.Count
		switch {
		case group.Mirror != nil:
			status.Mirrored += group.Count
		case !group.Head:
			status.Requests = group.Requests
		}
	}
	reasons := joinReasons(plan.Reasons)
	summary := fmt.Sprintf("target %s: %d placeholders request %s, %d of them fit, %s are free",
		format(plan.Target), status.Placeholders, format(plan.Total), o.placeable, format(o.free))
	if plan.Feasible {
		setCondition(status, policy, v1alpha1.ConditionFeasible, true, reasonPlanned, cmp.Or(reasons, summary))
	} else {
		setCondition(status, policy, v1alpha1.ConditionFeasible, false, reasonNotFeasible, reasons)
	}
	provisioned := o.placeable >= status.Placeholders
	switch {
	case status.Placeholders == 0:
		setCondition(status, policy, v1alpha1.ConditionProvisioned, true, reasonNothingWanted, summary)
	case provisioned:
		setCondition(status, policy, v1alpha1.ConditionProvisioned, true, reasonAvailable, summary)
	default:
		setCondition(status, policy, v1alpha1.ConditionProvisioned, false, reasonProvisioning, summary)
	}
	switch {
	case isUnmanaged(o.applyErr):
		setCondition(status, policy, v1alpha1.ConditionReady, false, reasonNameTaken, o.applyErr.Error())
	case o.applyErr != nil:
		backend := slack.BackendOf(policy)
		setCondition(status, policy, v1alpha1.ConditionReady, false, backend.UnavailableReason, backend.UnavailableMessage)
	case o.overlap != "":
		setCondition(status, policy, v1alpha1.ConditionReady, false, reasonPoolsOverlap,
			fmt.Sprintf("policy %s selects nodes of the same pool: the free capacity of these nodes counts for both policies", o.overlap))
	case !plan.Feasible:
		setCondition(status, policy, v1alpha1.ConditionReady, false, reasonNotFeasible, reasons)
	case !provisioned:
		setCondition(status, policy, v1alpha1.ConditionReady, false, reasonProvisioning, summary)
	default:
		setCondition(status, policy, v1alpha1.ConditionReady, true, reasonHeld, summary)
	}
	return c.writeStatus(ctx, policy, status)
}

// setCondition sets a condition for the current generation of the policy.
func setCondition(status *v1alpha1.ResourceSlackStatus, policy *v1alpha1.ResourceSlack, condition string, isTrue bool, reason,
	message string,
) {
	value := metav1.ConditionFalse
	if isTrue {
		value = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: condition, Status: value, Reason: reason, Message: message, ObservedGeneration: policy.Generation,
	})
}

// writeStatus writes a changed status, and records an event for each condition whose status or
// reason changed.
func (c *Controller) writeStatus(ctx context.Context, policy *v1alpha1.ResourceSlack, status *v1alpha1.ResourceSlackStatus) error {
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

// maxReasons is the number of reasons in a message.
const maxReasons = 5

// joinReasons joins the first reasons, and the number of the remaining ones.
func joinReasons(reasons []string) string { return facts.Abbreviate(reasons, maxReasons, "; ") }

// format returns a list in the form "1500m CPU and 2048Mi memory".
func format(list v1.ResourceList) string {
	return fmt.Sprintf("%s CPU and %dMi memory", list.Cpu(), (list.Memory().Value()+1<<20-1)>>20)
}
