package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// Reasons of conditions, in addition to slack.Backend.UnavailableReason.
const (
	reasonHeld          = "Held"
	reasonInvalid       = "InvalidPolicy"
	reasonNameTaken     = "NameTaken"
	reasonWriteFailed   = "WriteFailed"
	reasonDisabled      = "BackendDisabled"
	reasonNotFeasible   = "NotFeasible"
	reasonPoolEmpty     = "PoolEmpty"
	reasonPlanned       = "Planned"
	reasonCoolDown      = "CoolDown"
	reasonPoolsOverlap  = "PoolsOverlap"
	reasonAvailable     = "Available"
	reasonProvisioning  = "Provisioning"
	reasonNothingWanted = "NothingWanted"
	reasonAccepted      = "Accepted"
	reasonRefused       = "Refused"
	reasonLimited       = "Limited"
	reasonNotAnswered   = "NotAnswered"
	reasonNotPlaced     = "NotPlaced"
	reasonDeleted       = "Deleted"
)

// reportInvalid reports that a policy is invalid. Existing placeholders remain.
func (c *Controller) reportInvalid(ctx context.Context, policy *v1alpha1.ResourceSlack, invalid error) error {
	status := policy.Status.DeepCopy()
	status.Schedule = nil // its next change does not happen
	for _, condition := range []string{v1alpha1.ConditionFeasible, v1alpha1.ConditionReady} {
		setCondition(status, policy, metav1.Condition{
			Type: condition, Status: metav1.ConditionFalse, Reason: reasonInvalid, Message: invalid.Error(),
		})
	}
	return c.writeStatus(ctx, policy, status)
}

// reportDeleted reports that a policy that is being deleted, but has a finalizer, has no placeholders.
func (c *Controller) reportDeleted(ctx context.Context, policy *v1alpha1.ResourceSlack) error {
	status := &v1alpha1.ResourceSlackStatus{Conditions: slices.DeleteFunc(slices.Clone(policy.Status.Conditions),
		func(c metav1.Condition) bool { return c.Type != v1alpha1.ConditionReady })}
	setCondition(status, policy, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reasonDeleted,
		Message: "the policy is being deleted: it has no placeholders",
	})
	return c.writeStatus(ctx, policy, status)
}

// inMebibytes returns amounts with the memory rounded up to whole mebibytes: a tenth of 16Gi is 1639Mi, not 1717986919.
func inMebibytes(list v1.ResourceList) v1.ResourceList {
	memory, found := list[v1.ResourceMemory]
	if !found {
		return list
	}
	const mebibyte = 1 << 20
	list = maps.Clone(list)
	list[v1.ResourceMemory] = *resource.NewQuantity((memory.Value()+mebibyte-1)/mebibyte*mebibyte, resource.BinarySI)
	return list
}

// report writes the status of a policy after an observation.
func (c *Controller) report(ctx context.Context, policy *v1alpha1.ResourceSlack, t *policyTracker, o observation) error {
	status := policy.Status.DeepCopy()
	c.mu.Lock()
	t.answers = o.answers
	isMirror := func(a slack.Answer) bool { return slack.IsMirrorName(a.Name) }
	rate := slices.DeleteFunc(slices.Clone(o.answers), isMirror)
	mirrors := slices.DeleteFunc(slices.Clone(o.answers), func(a slack.Answer) bool { return !isMirror(a) })
	fits := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionProvisioned)
	unplacedMirrors := c.unplaced(mirrors, fits)
	if fits != nil && fits.Status != metav1.ConditionTrue && o.fitsRate { // for how long is not known
		fits = &metav1.Condition{Status: metav1.ConditionTrue}
	}
	unplaced := c.unplaced(rate, fits)
	c.mu.Unlock()
	plan := o.plan
	status.Base, status.Target = inMebibytes(plan.Base), inMebibytes(plan.Target)
	status.Total, status.Available = inMebibytes(plan.Total), inMebibytes(o.free)
	status.Schedule, status.NodeShape = plan.Schedule, plan.NodeShape
	status.Domains, status.PerDomain = nil, 0
	if plan.Spread != nil {
		status.Domains, status.PerDomain = plan.Spread.Domains, plan.Spread.PerDomain
	}
	status.Placeholders, status.Mirrored, status.Placed, status.Requests = 0, 0, o.placeable, nil
	for _, group := range plan.Groups {
		status.Placeholders += group.Count
		switch {
		case group.Mirror != nil:
			status.Mirrored += group.Count
		case !group.Head && group.Devices == "":
			status.Requests = group.Requests
		}
	}
	summary := fmt.Sprintf("target %s: %s %s %s, %d %s, %s are free", resources.CPUAndMemory(plan.Target),
		format.Of(status.Placeholders, "placeholder"), format.Form(status.Placeholders, "requests", "request"),
		resources.CPUAndMemory(plan.Total), o.placeable, format.Form(o.placeable, "fits", "fit"), resources.CPUAndMemory(o.free))
	if o.placeable < status.Placeholders {
		left := o.capacity.LargestFree()
		summary += fmt.Sprintf(", on one node at most %s CPU and %s memory", format.Cores(left.CPU), format.Bytes(left.Memory))
	}
	backend := slack.BackendOf(policy)
	accepted := acceptedCondition(o.answers)
	if o.ignoresStrategy {
		accepted.Message += "; spec.provisioningStrategy is not passed on: the installed CapacityBuffer has no such field"
	}
	conditions := []metav1.Condition{
		feasibleCondition(plan, summary), provisionedCondition(status, summary),
		readyCondition(backend, o, acceptedCondition(rate), unplaced, summary),
	}
	if mirrors := mirrorsCondition(o, status.Mirrored, unplacedMirrors); mirrors.Message != "" {
		conditions = append(conditions, mirrors)
	}
	if backend.Virtual && !o.unavailable {
		conditions = append(conditions, accepted)
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(old metav1.Condition) bool {
		return !slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type == old.Type })
	})
	for _, condition := range conditions {
		setCondition(status, policy, condition)
	}
	return c.writeStatus(ctx, policy, status)
}

// feasibleCondition returns the condition Feasible of a plan.
func feasibleCondition(plan slack.Plan, summary string) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionFeasible, Status: metav1.ConditionTrue, Reason: reasonPlanned,
		Message: cmp.Or(joinReasons(plan.Reasons), summary),
	}
	switch {
	case plan.NoNodes:
		condition.Status, condition.Reason = metav1.ConditionUnknown, reasonPoolEmpty
	case !plan.Feasible:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonNotFeasible
	case plan.CoolDown:
		condition.Reason = reasonCoolDown
	}
	return condition
}

// mirrorsCondition returns the condition MirrorsFeasible of a plan with a number of mirrors, some of which the autoscaler cannot place. It
// has no message if no workload requests placeholders.
func mirrorsCondition(o observation, mirrors int64, unplaced []string) metav1.Condition {
	condition := metav1.Condition{
		Type: v1alpha1.ConditionMirrorsFeasible, Status: metav1.ConditionFalse, Reason: reasonNotFeasible,
		Message: joinReasons(o.plan.MirrorReasons),
	}
	switch {
	case !o.plan.MirrorsFeasible:
		return condition
	case len(o.mirrorFailures) > 0:
		condition.Reason, condition.Message = reasonOfFailures(o.mirrorFailures)
		return condition
	case len(unplaced) > 0:
		condition.Reason, condition.Message = reasonNotPlaced, notPlaced+joinReasons(unplaced)
		return condition
	case condition.Message == "" && mirrors > 0:
		condition.Message = format.Of(mirrors, "placeholder") + " as requested by workloads"
	}
	condition.Status, condition.Reason = metav1.ConditionTrue, reasonPlanned
	return condition
}

// provisionedCondition returns the condition Provisioned for the numbers of placeholders in a status.
func provisionedCondition(status *v1alpha1.ResourceSlackStatus, summary string) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionProvisioned, Status: metav1.ConditionTrue, Message: summary}
	switch {
	case status.Placeholders == 0:
		condition.Reason = reasonNothingWanted
	case status.Placed >= status.Placeholders:
		condition.Reason = reasonAvailable
	default:
		condition.Status, condition.Reason = metav1.ConditionFalse, reasonProvisioning
	}
	return condition
}

// acceptedCondition returns the condition Accepted for the answers of an autoscaler about the buffers.
func acceptedCondition(answers []slack.Answer) metav1.Condition {
	texts := map[slack.AnswerState][]string{}
	for i := range answers {
		texts[answers[i].State] = append(texts[answers[i].State], answers[i].String())
	}
	refused, limited, missing := texts[slack.AnswerRefused], texts[slack.AnswerLimited], len(texts[slack.AnswerMissing])
	condition := metav1.Condition{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse}
	switch {
	case len(refused) > 0:
		condition.Reason, condition.Message = reasonRefused, "the autoscaler refuses "+joinReasons(append(refused, limited...))
	case len(limited) > 0:
		condition.Reason, condition.Message = reasonLimited, "the autoscaler limits "+joinReasons(limited)
	case missing > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, reasonNotAnswered
		condition.Message = "no autoscaler has reported on " + format.Part(missing, len(answers), "buffer")
	case len(answers) == 0:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reasonNothingWanted, "there are no buffers"
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, reasonAccepted
		condition.Message = "the autoscaler takes " + format.Of(len(answers), "buffer") + " into account in full"
	}
	return condition
}

// staleTime is the time for which a condition of a buffer may be outdated: Karpenter evaluates buffers every 30 seconds.
const staleTime = time.Minute

// unplaced describes the accepted buffers for whose placeholders the autoscaler has no capacity, given the last condition Provisioned:
// what the autoscaler reported before it became true is outdated. c.mu must be locked.
func (c *Controller) unplaced(answers []slack.Answer, provisioned *metav1.Condition) (texts []string) {
	if provisioned == nil || provisioned.Status != metav1.ConditionTrue {
		return nil
	}
	now, since := c.now(), provisioned.LastTransitionTime.Time
	for _, a := range answers {
		r := c.refusals[types.NamespacedName{Namespace: a.Namespace, Name: a.Name}]
		switch {
		case !r.Time.Before(since) && now.Sub(r.Time) < r.Valid:
			a.Message = r.Message
		case now.Sub(since) >= staleTime:
			a.Message = a.ProvisioningMessage
		}
		if a.State == slack.AnswerAccepted && a.Message != "" {
			texts = append(texts, a.String())
		}
	}
	return texts
}

// notPlaced begins the message about buffers that the autoscaler cannot place.
const notPlaced = "all placeholders fit the nodes, but not according to the autoscaler: "

// readyCondition returns the condition Ready: the first cause for which slack is not available, given what the autoscaler says about its
// buffers. What mirrors of workloads lack is no cause: whoever writes a workload would decide whether the policy is ready.
func readyCondition(backend *slack.Backend, o observation, accepted metav1.Condition, unplaced []string, summary string) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	reasons := joinReasons(o.plan.Reasons)
	switch {
	case o.disabled:
		condition.Reason = reasonDisabled
		condition.Message = fmt.Sprintf("spec.backend: %s is not enabled: set --placeholder-namespace of plimsoll-controller "+
			"(controller.placeholderNamespace of the chart) to a namespace that has nothing else in it", backend.Name)
	case o.unavailable:
		condition.Reason, condition.Message = backend.UnavailableReason, backend.UnavailableMessage
	case len(o.failures) > 0:
		condition.Reason, condition.Message = reasonOfFailures(o.failures)
	case o.overlap != "":
		condition.Reason = reasonPoolsOverlap
		condition.Message = "policy " + o.overlap + " selects nodes of the same pool: the free capacity of these nodes counts for both " +
			"policies"
	case o.plan.NoNodes:
		condition.Reason, condition.Message = reasonPoolEmpty, reasons
	case !o.plan.Feasible:
		condition.Reason, condition.Message = reasonNotFeasible, reasons
	case backend.Virtual && accepted.Status == metav1.ConditionFalse:
		condition.Reason, condition.Message = accepted.Reason, accepted.Message
	case !o.fitsRate:
		condition.Reason, condition.Message = reasonProvisioning, summary
	case len(unplaced) > 0:
		condition.Reason, condition.Message = reasonNotPlaced, notPlaced+joinReasons(unplaced)
	default:
		condition.Status, condition.Reason, condition.Message = metav1.ConditionTrue, reasonHeld, summary
	}
	return condition
}

// reasonOfFailures returns the reason and message for objects that could not be written.
func reasonOfFailures(failures []error) (reason, message string) {
	reason = reasonNameTaken
	var texts []string
	for _, err := range failures {
		if texts = append(texts, err.Error()); !errors.Is(err, errUnmanaged) {
			reason = reasonWriteFailed
		}
	}
	return reason, joinReasons(texts)
}

// setCondition sets a condition for the current generation of the policy.
func setCondition(status *v1alpha1.ResourceSlackStatus, policy *v1alpha1.ResourceSlack, condition metav1.Condition) {
	condition.ObservedGeneration = policy.Generation
	condition.Message = format.Shorten(condition.Message, maxMessageLength)
	meta.SetStatusCondition(&status.Conditions, condition)
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
		switch {
		case after.Reason == reasonNotAnswered:
			return "" // the state of each new buffer
		case after.Status != metav1.ConditionTrue:
			return v1.EventTypeWarning
		}
		return v1.EventTypeNormal
	})
	return nil
}

const (
	// maxReasons is the number of reasons in a message.
	maxReasons = 5
	// maxMessageLength is the length in bytes of the message of a condition. The API permits 32,768.
	maxMessageLength = 4096
)

// joinReasons joins the first reasons, and the number of remaining reasons.
func joinReasons(reasons []string) string { return format.Abbreviate(reasons, maxReasons, "; ") }
