package slack

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// answered returns a buffer of three placeholders and generation 2 with a status in JSON.
func answered(t testing.TB, status string) *unstructured.Unstructured {
	t.Helper()
	buffer := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"namespace": "shop", "name": "web", "generation": int64(2)},
		"spec":     map[string]any{"replicas": int64(3)},
	}}
	var content map[string]any
	must.Succeed(t, json.Unmarshal([]byte(status), &content))
	buffer.Object["status"] = content
	return buffer
}

// TestAnswerOf checks the conditions that Cluster Autoscaler and Karpenter write. Cluster Autoscaler states
// the generation in LimitedByQuotas only.
func TestAnswerOf(t *testing.T) {
	noonText, since := noon.UTC().Format(time.RFC3339), noon.UTC()
	for name, tc := range map[string]struct {
		status string
		want   Answer
	}{
		"no status": {`{}`, Answer{State: AnswerMissing, Replicas: -1}},
		"accepted by Cluster Autoscaler, added to the pending pods": {
			`{"replicas": 3, "conditions": [{"type": "ReadyForProvisioning", "status": "True", "message": "ready"},
				{"type": "LimitedByQuotas", "status": "False", "observedGeneration": 2}, {"type": "Provisioning", "status": "True"}]}`,
			Answer{State: AnswerAccepted, Replicas: 3, Provisioned: true},
		},
		"accepted, not yet added": {
			`{"replicas": 3, "conditions": [{"type": "ReadyForProvisioning", "status": "True", "lastTransitionTime": "` + noonText + `"}]}`,
			Answer{State: AnswerAccepted, Replicas: 3, UnprovisionedSince: since},
		},
		"only the last condition, written by Cluster Autoscaler 1.35.0": {
			`{"replicas": 3, "conditions": [{"type": "Provisioning", "status": "True", "reason": "FakePodsInjected"}]}`,
			Answer{State: AnswerAccepted, Replicas: 3, Provisioned: true},
		},
		"not ready, written by Cluster Autoscaler 1.35.0": {
			`{"replicas": 3, "conditions": [{"type": "Provisioning", "status": "False", "reason": "NotReadyForProvisioning"}]}`,
			Answer{State: AnswerRefused, Replicas: 3, Message: "NotReadyForProvisioning"},
		},
		"accepted, but Cluster Autoscaler has lost its copy of the template": {
			`{"replicas": 3, "conditions": [{"type": "ReadyForProvisioning", "status": "True"}, {"type": "Provisioning", "status": "False",
				"reason": "FailedToGetPodTemplate", "lastTransitionTime": "` + noonText + `", "message": "failed to get pod template"}]}`,
			Answer{State: AnswerRefused, Replicas: 3, Message: "failed to get pod template"},
		},
		"a quota that is used up": {
			`{"conditions": [{"type": "ReadyForProvisioning", "status": "False", "lastTransitionTime": "` + noonText + `",
				"message": "pods \"web\" is forbidden: exceeded quota: team, requested: cpu=1"}]}`,
			Answer{
				State: AnswerLimited, Replicas: -1,
				Message: `pods "web" is forbidden: exceeded quota: team, requested: cpu=1`,
			},
		},
		"accepted after a failure": {
			`{"replicas": 3, "conditions": [{"type": "ReadyForProvisioning", "status": "True", "lastTransitionTime": "` + noonText + `"},
				{"type": "Provisioning", "status": "False", "reason": "FailedToMakeFakePods", "message": "failed"}]}`,
			Answer{State: AnswerAccepted, Replicas: 3, ProvisioningMessage: "failed", UnprovisionedSince: since},
		},
		"refused": {
			`{"conditions": [{"type": "ReadyForProvisioning", "status": "False", "reason": "error", "message": "pods is forbidden"},
				{"type": "LimitedByQuotas", "status": "False", "observedGeneration": 1}, {"type": "Provisioning", "status": "True"}]}`,
			Answer{State: AnswerRefused, Replicas: -1, Message: "pods is forbidden"},
		},
		"limited by a quota": {
			`{"replicas": 1, "conditions": [{"type": "ReadyForProvisioning", "status": "True"}, {"type": "Provisioning", "status": "True"},
				{"type": "LimitedByQuotas", "status": "True", "observedGeneration": 2, "message": "limited from 3 to 1 due to quotas: q"}]}`,
			Answer{State: AnswerLimited, Replicas: 1, Message: "limited from 3 to 1 due to quotas: q", Provisioned: true},
		},
		"the quota was checked for an older version": {
			`{"replicas": 1, "conditions": [{"type": "ReadyForProvisioning", "status": "True"},
				{"type": "LimitedByQuotas", "status": "False", "observedGeneration": 1}]}`,
			Answer{State: AnswerMissing, Replicas: 1},
		},
		"Karpenter refused an older version": {
			`{"conditions": [{"type": "ReadyForProvisioning", "status": "False", "observedGeneration": 1, "message": "gone"}]}`,
			Answer{State: AnswerMissing, Replicas: -1},
		},
		"Karpenter adds nodes": {
			`{"replicas": 3, "conditions": [{"type": "ReadyForProvisioning", "status": "True", "observedGeneration": 2},
				{"type": "Provisioning", "status": "False", "reason": "RequiresNewCapacity", "observedGeneration": 2,
				"lastTransitionTime": "` + noonText + `", "message": "2/3 virtual pods required new capacity, 1 failed"}]}`,
			Answer{
				State: AnswerAccepted, Replicas: 3, UnprovisionedSince: since,
				ProvisioningMessage: "2/3 virtual pods required new capacity, 1 failed",
			},
		},
		"unknown": {`{"conditions": [{"type": "ReadyForProvisioning", "status": "Unknown"}]}`, Answer{State: AnswerMissing, Replicas: -1}},
	} {
		tc.want.Namespace, tc.want.Name, tc.want.Requested = "shop", "web", 3
		got := AnswerOf(answered(t, tc.status))
		got.UnprovisionedSince = got.UnprovisionedSince.UTC()
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if got := AnswerOf(answered(t, `{"conditions": "none"}`)); got.State != AnswerMissing ||
		!strings.Contains(got.Message, "cannot be read") {
		t.Errorf("a status of another type: %+v", got)
	}
}

// TestAnswers checks that answers are read from buffers only.
func TestAnswers(t *testing.T) {
	buffer := answered(t, `{}`)
	buffer.SetGroupVersionKind(CapacityBufferKind)
	template := answered(t, `{}`)
	template.SetKind("PodTemplate")
	objects := []unstructured.Unstructured{*template, *buffer}
	if got := capacityBufferBackend.Answers(objects); len(got) != 1 || got[0].String() != "CapacityBuffer shop/web: " {
		t.Errorf("answers %v, want that of the buffer", got)
	}
	if got := deploymentBackend.Answers(objects); got != nil {
		t.Errorf("backend Deployment has answers %v", got)
	}
}

// TestRefusalOf checks that each reason of an event is shown once, that no event is from the future, and that events of others do not
// count.
func TestRefusalOf(t *testing.T) {
	const real = "capacity buffer 4 fake pods didn't trigger scale-up: 1 max node group size reached, 5 node(s) didn't match Pod's node " +
		"affinity/selector,5 node(s) didn't match Pod's node affinity/selector,1 max node group size reached"
	for message, want := range map[string]string{
		real: "capacity buffer 4 fake pods didn't trigger scale-up: 1 max node group size reached, " +
			"5 node(s) didn't match Pod's node affinity/selector",
		"pod didn't trigger scale-up: 2 b, 1 a, 1 a": "pod didn't trigger scale-up: 1 a, 2 b",
		"pod didn't trigger scale-up: ":              "pod didn't trigger scale-up: ",
		"other, text":                                "other, text",
	} {
		for component, isRead := range map[string]bool{"cluster-autoscaler": true, "me": false, "": false} {
			e := &v1.Event{
				Message: message, LastTimestamp: metav1.NewTime(noon.AddDate(73, 0, 0)), Source: v1.EventSource{Component: component},
			}
			got, ok := RefusalOf(e, noon)
			if ok != isRead || got.Message != want || !got.Time.Equal(noon) {
				t.Errorf("%s: %+v, %v, want %s, %v", component, got, ok, want, isRead)
			}
		}
	}
}

// FuzzAnswerOf checks that no status of a buffer causes a panic or a long message.
func FuzzAnswerOf(f *testing.F) {
	f.Add([]byte(`{"replicas": 1, "conditions": [{"type": "ReadyForProvisioning", "status": "True"}]}`))
	f.Add([]byte(`{"replicas": "1e999999999"}`))
	f.Add([]byte(`{"conditions": [{"type": "ReadyForProvisioning", "status": "False", "message": "` + strings.Repeat("é", 300) + `"}]}`))
	f.Fuzz(func(t *testing.T, status []byte) {
		var content any
		if json.Unmarshal(status, &content) != nil {
			return
		}
		buffer := answered(t, `{}`)
		buffer.Object["status"] = content
		got := AnswerOf(buffer)
		for _, message := range []string{got.Message, got.ProvisioningMessage} {
			if len(message) > maxAnswerLength || utf8.Valid(status) && !utf8.ValidString(message) {
				t.Errorf("message %q of %d bytes", message, len(message))
			}
		}
	})
}
