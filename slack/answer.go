package slack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// AnswerState states how far an autoscaler takes a buffer into account.
type AnswerState string

const (
	// AnswerMissing is the state of a buffer on whose current version no autoscaler has reported.
	AnswerMissing AnswerState = "Missing"
	// AnswerAccepted is the state of a buffer that is taken into account in full.
	AnswerAccepted AnswerState = "Accepted"
	// AnswerLimited is the state of a buffer that is taken into account with fewer placeholders.
	AnswerLimited AnswerState = "Limited"
	// AnswerRefused is the state of a buffer that is not taken into account.
	AnswerRefused AnswerState = "Refused"
)

// Types of the conditions that autoscalers set on buffers.
const (
	conditionReadyForProvisioning = "ReadyForProvisioning"
	conditionProvisioning         = "Provisioning"
	conditionLimitedByQuotas      = "LimitedByQuotas"
)

// failureReasons are the reasons with which Cluster Autoscaler reports in Provisioning that it does not add
// placeholders to its pending pods.
var failureReasons = []string{"FailedToGetPodTemplate", "FailedToMakeFakePods", "NotReadyForProvisioning"}

// maxAnswerLength is the maximum length in bytes of a message of an autoscaler, which goes into
// conditions and events.
const maxAnswerLength = 400

// Answer is the report of an autoscaler about a buffer.
type Answer struct {
	// Namespace and Name identify the buffer.
	Namespace, Name string
	State           AnswerState
	// Requested is the number of placeholders of the buffer, and Replicas the number that the
	// autoscaler reports, -1 if it reports none.
	Requested, Replicas int64
	// Message is the reason for the state in the words of the autoscaler, at most 400 bytes. It is empty
	// if the buffer is accepted or the answer is missing.
	Message string
	// Provisioned reports whether condition Provisioning is true: Cluster Autoscaler has added the
	// placeholders to its pending pods, or they fit existing nodes according to Karpenter. It does not
	// prove that there is capacity, and may be outdated.
	Provisioned bool
	// ProvisioningMessage says why the buffer is not provisioned, in the words of the autoscaler, at most
	// 400 bytes.
	ProvisioningMessage string
	// UnprovisionedSince is the time since which an accepted or limited buffer has not been provisioned,
	// zero if it is provisioned or the time is not known.
	UnprovisionedSince time.Time
}

// String returns the state in the form "CapacityBuffer shop/web: message".
func (a *Answer) String() string {
	return fmt.Sprintf("%s %s/%s: %s", CapacityBufferKind.Kind, a.Namespace, a.Name, a.Message)
}

// AnswerOf returns the answer of an autoscaler about a CapacityBuffer. A status that cannot be read is a
// missing answer, with the error as its message.
//
// A condition that refers to an older version of the buffer is not an answer. Cluster Autoscaler states
// the version in LimitedByQuotas only, Karpenter in all conditions.
func AnswerOf(buffer *unstructured.Unstructured) Answer {
	a := Answer{Namespace: buffer.GetNamespace(), Name: buffer.GetName(), State: AnswerMissing, Replicas: -1}
	var fields capacityBuffer
	if err := resources.FromUnstructured(buffer.Object, &fields); err != nil {
		a.Message = format.Shorten("the status cannot be read: "+err.Error(), maxAnswerLength)
		return a
	}
	a.Requested, a.Replicas = fields.Spec.Replicas, ptr.Deref(fields.Status.Replicas, -1)
	a.setState(fields.Status.Conditions, buffer.GetGeneration())
	return a
}

// setState sets the fields that follow from the conditions of a buffer of a generation.
//
// Cluster Autoscaler 1.35.0 keeps only the condition that it has written last. It provisions only buffers
// that are ready: a buffer whose only condition is that it is provisioned is ready. Fewer replicas than requested
// without a quota are a report on an older version.
func (a *Answer) setState(conditions []metav1.Condition, generation int64) {
	ready := meta.FindStatusCondition(conditions, conditionReadyForProvisioning)
	limited := meta.FindStatusCondition(conditions, conditionLimitedByQuotas)
	provisioning := meta.FindStatusCondition(conditions, conditionProvisioning)
	if ready == nil && provisioning != nil && provisioning.Status == metav1.ConditionTrue {
		ready = provisioning
	}
	isLimited := limited != nil && limited.Status == metav1.ConditionTrue
	switch {
	case isCurrent(ready, generation) && ready.Status == metav1.ConditionFalse:
		a.setRefused(ready)
		return
	case isFailure(ready, provisioning):
		a.setRefused(provisioning)
		return
	case !isCurrent(ready, generation) || ready.Status == metav1.ConditionUnknown,
		limited != nil && !isCurrent(limited, generation),
		!isLimited && a.Replicas >= 0 && a.Replicas < a.Requested:
		return
	case isLimited:
		a.State, a.Message = AnswerLimited, messageOf(limited)
	default:
		a.State = AnswerAccepted
	}
	a.setProvisioning(ready, provisioning)
}

// setRefused sets the fields of a refusal. A quota that is used up refuses the pod of a dry run.
func (a *Answer) setRefused(condition *metav1.Condition) {
	a.State, a.Message = AnswerRefused, messageOf(condition)
	if strings.Contains(condition.Message, "exceeded quota") {
		a.State = AnswerLimited
	}
}

// isCurrent reports whether a condition exists and does not refer to an older generation.
func isCurrent(condition *metav1.Condition, generation int64) bool {
	return condition != nil && (condition.ObservedGeneration == 0 || condition.ObservedGeneration >= generation)
}

// isFailure reports whether Cluster Autoscaler does not add the placeholders of a buffer to its pending pods. A failure
// before the buffer became ready is outdated.
func isFailure(ready, provisioning *metav1.Condition) bool {
	return provisioning != nil && provisioning.Status == metav1.ConditionFalse && slices.Contains(failureReasons, provisioning.Reason) &&
		(ready == nil || !ready.LastTransitionTime.After(provisioning.LastTransitionTime.Time))
}

// setProvisioning sets the fields on provisioning of a buffer that is ready for it.
func (a *Answer) setProvisioning(ready, provisioning *metav1.Condition) {
	switch {
	case provisioning == nil:
		a.UnprovisionedSince = ready.LastTransitionTime.Time
	case provisioning.Status == metav1.ConditionTrue:
		a.Provisioned = true
	default:
		a.UnprovisionedSince, a.ProvisioningMessage = provisioning.LastTransitionTime.Time, messageOf(provisioning)
		if ready.LastTransitionTime.After(a.UnprovisionedSince) {
			a.UnprovisionedSince = ready.LastTransitionTime.Time
		}
	}
}

// messageOf returns the message of a condition, or its reason if it has no message.
func messageOf(condition *metav1.Condition) string {
	return format.Shorten(cmp.Or(condition.Message, condition.Reason), maxAnswerLength)
}

// Answers returns the answers of an autoscaler about existing objects of the backend, in the order of the
// objects. It returns none for backends whose placeholders are pods.
func (b *Backend) Answers(objects []unstructured.Unstructured) []Answer {
	var answers []Answer
	for i := range objects {
		if b.Virtual && objects[i].GetKind() == CapacityBufferKind.Kind {
			answers = append(answers, AnswerOf(&objects[i]))
		}
	}
	return answers
}

// NotTriggered is the reason of the event that Cluster Autoscaler records for a buffer if no node has capacity for a placeholder, and it
// can add none.
const NotTriggered = "NotTriggerScaleUp"

// Refusal is the last occurrence of an event NotTriggered.
type Refusal struct {
	Time time.Time
	// Message is the message of the event, with each reason once, at most 400 bytes.
	Message string
	// Valid is the time within which Cluster Autoscaler repeats the event: it does in each loop, but after 25 times every five minutes.
	Valid time.Duration
}

// RefusalOf returns the last occurrence of an event NotTriggered, at most now. It returns false if Cluster Autoscaler did not record it.
func RefusalOf(e *v1.Event, now time.Time) (Refusal, bool) {
	r, count := Refusal{Time: e.LastTimestamp.Time, Valid: time.Minute}, e.Count
	if e.Series != nil {
		r.Time, count = e.Series.LastObservedTime.Time, e.Series.Count
	} else if r.Time.IsZero() {
		r.Time = e.EventTime.Time
	}
	if r.Time.After(now) {
		r.Time = now
	}
	if count >= 20 {
		r.Valid = 6 * time.Minute
	}
	what, list, isList := strings.Cut(e.Message, "trigger scale-up: ")
	reasons := []string{e.Message}
	if isList { // in random order
		reasons = strings.Split(list, ",")
		for i, reason := range reasons {
			reasons[i] = strings.TrimSpace(reason)
		}
		slices.Sort(reasons)
		reasons = slices.Compact(reasons)
		reasons[0] = what + "trigger scale-up: " + reasons[0]
	}
	r.Message = format.Shorten(strings.Join(reasons, ", "), maxAnswerLength)
	return r, cmp.Or(e.ReportingController, e.Source.Component) == "cluster-autoscaler"
}
