package slack

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// newBuffer returns a buffer of three placeholders of policy general with conditions of the form
// "Type=Status message".
func newBuffer(name string, replicas int64, conditions ...string) *unstructured.Unstructured {
	var list []any
	for _, condition := range conditions {
		kind, rest, _ := strings.Cut(condition, "=")
		status, message, _ := strings.Cut(rest, " ")
		list = append(list, map[string]any{"type": kind, "status": status, "message": message})
	}
	buffer := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"replicas": replicas, "conditions": list},
	}}
	buffer.SetGroupVersionKind(slack.CapacityBufferKind)
	buffer.SetNamespace("shop")
	buffer.SetName(name)
	buffer.SetLabels(map[string]string{slack.PlaceholderLabel: "general"})
	return buffer
}

// newEvent returns an event of a buffer.
func newEvent(name, buffer, reason, message string, at time.Time) *v1.Event {
	return &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "shop", Name: name},
		InvolvedObject: v1.ObjectReference{Kind: "CapacityBuffer", Namespace: "shop", Name: buffer},
		Reason:         reason, Message: message, LastTimestamp: metav1.NewTime(at),
		Source: v1.EventSource{Component: "cluster-autoscaler"},
	}
}

// TestBuffers checks the rows of the table for buffers that an autoscaler accepts, limits, refuses, has not
// reported on, and cannot add nodes for.
func TestBuffers(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	index := func(field func(*v1.Event) string) client.IndexerFunc {
		return func(object client.Object) []string { return []string{field(object.(*v1.Event))} }
	}
	c := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(
		newBuffer("accepted", 3, "ReadyForProvisioning=True ready", "Provisioning=True"),
		newBuffer("waiting", 3, "ReadyForProvisioning=True ready", "Provisioning=False 2/3 virtual pods required new capacity, 0 failed"),
		newBuffer("limited", 1, "ReadyForProvisioning=True ready", "LimitedByQuotas=True limited from 3 to 1", "Provisioning=True"),
		newBuffer("refused", 0, "ReadyForProvisioning=False violates PodSecurity"), newBuffer("silent", 3),
		newBuffer("stuck", 3, "ReadyForProvisioning=True ready", "Provisioning=True"),
		newEvent("old", "stuck", slack.NotTriggered, "old", at.Add(-time.Hour)),
		newEvent("refused", "refused", slack.NotTriggered, "no group", at),
		newEvent("new", "stuck", slack.NotTriggered, "1 max node group size reached", at),
		newEvent("other", "accepted", "Other", "other", at),
	).WithIndex(&v1.Event{}, "involvedObject.kind", index(func(e *v1.Event) string { return e.InvolvedObject.Kind })).
		WithIndex(&v1.Event{}, "reason", index(func(e *v1.Event) string { return e.Reason })).Build()
	buffers := readBuffers(t.Context(), c, nil, func(warning string) { t.Error(warning) })
	type row struct{ Name, Answer, Provisioned, Message string }
	var got []row
	for i := range buffers["general"] {
		b := &buffers["general"][i]
		got = append(got, row{b.Name, b.answer(), yesOrNo(b.Provisioned), b.message("")})
	}
	want := []row{
		{"refused", "refused", "no", "violates PodSecurity; NotTriggerScaleUp at 2026-11-22T12:00:00Z: no group"},
		{"limited", "limited to 1", "yes", "limited from 3 to 1"},
		{"silent", "no answer", "no", ""},
		{"stuck", "accepted", "yes", "NotTriggerScaleUp at 2026-11-22T12:00:00Z: 1 max node group size reached"},
		{"waiting", "accepted", "no", "2/3 virtual pods required new capacity, 0 failed"},
		{"accepted", "accepted", "yes", ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	var out strings.Builder
	printBuffers(&out, &base.Output{}, []statusResult{{Policy: "general", Buffers: buffers["general"]}})
	if !strings.Contains(out.String(), "\nshop/refused: violates PodSecurity; NotTriggerScaleUp at") ||
		!strings.Contains(out.String(), "\nshop/stuck: NotTriggerScaleUp at") {
		t.Error(out.String())
	}
	// A policy whose placeholders fit: events are outdated, except those of buffers that are not accepted.
	general := v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	general.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionProvisioned, Status: metav1.ConditionTrue}}
	for _, fits := range []bool{false, true} {
		general.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at)
		if fits {
			general.Status.Conditions[0].LastTransitionTime = metav1.NewTime(at.Add(time.Second))
		}
		var names []string
		for _, b := range readBuffers(t.Context(), c, []v1alpha1.ResourceSlack{general}, func(string) {})["general"] {
			if len(b.Events) > 0 {
				names = append(names, b.Name)
			}
		}
		if got := strings.Join(names, " "); got != map[bool]string{false: "refused stuck", true: "refused"}[fits] {
			t.Errorf("placeholders fit %t: events of %q", fits, got)
		}
	}
	out.Reset()
	printBuffers(&out, &base.Output{}, []statusResult{{Policy: "general", Buffers: make([]bufferStatus, maxBufferRows+7)}})
	if !strings.Contains(out.String(), "\n7 more buffers: ") {
		t.Error(out.String())
	}
}

// TestUnreadableBuffers checks that the status of policies is shown if buffers cannot be read.
func TestUnreadableBuffers(t *testing.T) {
	c := failingReader{errors.New("forbidden")}
	var warnings []string
	if got := readBuffers(t.Context(), c, nil, func(w string) { warnings = append(warnings, w) }); got != nil || len(warnings) != 1 ||
		warnings[0] != "buffers are not shown: forbidden" {
		t.Errorf("buffers %v, warnings %q", got, warnings)
	}
}

// failingReader is a client whose lists fail.
type failingReader struct{ err error }

func (f failingReader) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return f.err
}

func (f failingReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return f.err
}
