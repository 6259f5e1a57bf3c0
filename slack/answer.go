package slack

import (
	"fmt"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// AnswerState states how far an autoscaler takes a buffer into account.
type AnswerState string

const (
	// AnswerMissing is the state of a buffer on whose current version no autoscaler has reported.
	AnswerMissing AnswerState = "Missing"
	// AnswerAccepted is the state of a buffer that is taken into account in full.
	AnswerAccepted AnswerState = "Accepted"
	// AnswerLimited is the state of a buffer of which fewer placeholders are taken into account.
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

// maxAnswerLength is the maximum length in bytes of a message of an autoscaler, which goes into
// conditions and events.
const maxAnswerLength = 400

// Answer is what an autoscaler reports about a buffer.
type Answer struct {
	// Namespace and Name are those of the buffer.
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

// bufferFields are the fields of a buffer that an answer is read from.
type bufferFields struct {
	Spec struct {
		Replicas int64 `json:"replicas"`
	} `json:"spec"`
	Status struct {
		Replicas   *int64             `json:"replicas"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// AnswerOf returns what an autoscaler reports about a CapacityBuffer. A status that cannot be read is a
// missing answer, with the error as its message.
//
// A condition that refers to an older version of the buffer is not an answer. Cluster Autoscaler states
// the version in LimitedByQuotas only, Karpenter in all conditions.
func AnswerOf(buffer *unstructured.Unstructured) Answer {
	a := Answer{Namespace: buffer.GetNamespace(), Name: buffer.GetName(), State: AnswerMissing, Replicas: -1}
	var fields bufferFields
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(buffer.Object, &fields); err != nil {
		a.Message = shorten("the status cannot be read: " + err.Error())
		return a
	}
	a.Requested = fields.Spec.Replicas
	if fields.Status.Replicas != nil {
		a.Replicas = *fields.Status.Replicas
	}
	conditions := fields.Status.Conditions
	current := func(condition *metav1.Condition) bool {
		return condition != nil && (condition.ObservedGeneration == 0 || condition.ObservedGeneration >= buffer.GetGeneration())
	}
	ready := meta.FindStatusCondition(conditions, conditionReadyForProvisioning)
	limited := meta.FindStatusCondition(conditions, conditionLimitedByQuotas)
	switch {
	case !current(ready) || ready.Status == metav1.ConditionUnknown:
		return a
	case ready.Status == metav1.ConditionFalse:
		a.State, a.Message = AnswerRefused, messageOf(ready)
		return a
	case limited != nil && !current(limited):
		return a
	case limited != nil && limited.Status == metav1.ConditionTrue:
		a.State, a.Message = AnswerLimited, messageOf(limited)
	case a.Replicas >= 0 && a.Replicas < a.Requested:
		a.State, a.Message = AnswerLimited, fmt.Sprintf("%d of %d placeholders are taken into account", a.Replicas, a.Requested)
	default:
		a.State = AnswerAccepted
	}
	a.setProvisioning(ready, meta.FindStatusCondition(conditions, conditionProvisioning))
	return a
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
	if condition.Message == "" {
		return shorten(condition.Reason)
	}
	return shorten(condition.Message)
}

// shorten cuts a text after maxAnswerLength bytes, between two characters.
func shorten(text string) string {
	const ellipsis = "..."
	if len(text) <= maxAnswerLength {
		return text
	}
	end := maxAnswerLength - len(ellipsis)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}
