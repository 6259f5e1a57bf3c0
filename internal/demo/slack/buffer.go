package slack

import (
	"context"
	"errors"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// buffer is a CapacityBuffer as the stand-in reads it.
type buffer struct {
	object   *unstructured.Unstructured
	template string
	replicas int64
	status   bufferStatus
}

// bufferStatus is the status that the stand-in reports.
type bufferStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	Replicas   int64              `json:"replicas"`
}

// readBuffer returns the fields of a CapacityBuffer.
func readBuffer(object *unstructured.Unstructured) (buffer, error) {
	b := buffer{object: object}
	var templateErr, replicasErr, statusErr error
	b.template, _, templateErr = unstructured.NestedString(object.Object, "spec", "podTemplateRef", "name")
	b.replicas, _, replicasErr = unstructured.NestedInt64(object.Object, "spec", "replicas")
	if status, ok := object.Object["status"].(map[string]any); ok {
		statusErr = runtime.DefaultUnstructuredConverter.FromUnstructured(status, &b.status)
	}
	return b, errors.Join(templateErr, replicasErr, statusErr)
}

// acknowledge reports in the status that the buffer is valid and that its placeholders are included in
// the passes. It writes only changes.
func (b *buffer) acknowledge(ctx context.Context, c client.Client, now time.Time) error {
	changed := b.status.Replicas != b.replicas
	b.status.Replicas = b.replicas
	for _, kind := range []string{"ReadyForProvisioning", "Provisioning"} {
		changed = apimeta.SetStatusCondition(&b.status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "StandIn", Message: "the stand-in for an autoscaler includes the buffer",
			ObservedGeneration: b.object.GetGeneration(), LastTransitionTime: metav1.NewTime(now),
		}) || changed
	}
	if !changed {
		return nil
	}
	status, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&b.status)
	if err != nil {
		return err
	}
	b.object.Object["status"] = status
	return client.IgnoreNotFound(c.Status().Update(ctx, b.object))
}
