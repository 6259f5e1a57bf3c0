package slack

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/doctor"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// answerTime is the time within which the controller must report the answer of an autoscaler. It is
// shorter than the time between two plans without changes: the status of buffers is watched.
const answerTime = 20 * time.Second

// answer writes the status of a buffer as an autoscaler does, with replicas and one condition.
func answer(t *testing.T, c *testcluster.Cluster, name string, replicas int64, condition metav1.Condition) {
	t.Helper()
	buffer := &unstructured.Unstructured{}
	buffer.SetGroupVersionKind(slack.CapacityBufferKind)
	buffer.SetNamespace(testcluster.SystemNamespace)
	buffer.SetName(name)
	condition.LastTransitionTime = metav1.Now()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"replicas": replicas, "conditions": []metav1.Condition{condition}}})
	must.Succeed(t, err)
	must.Succeed(t, c.Client.Status().Patch(t.Context(), buffer, client.RawPatch(types.MergePatchType, patch)))
}

// TestSlackAnswers checks that the conditions of a policy follow the answers of an autoscaler in its buffers,
// and that plimsoll slack status and plimsoll doctor show the words of the autoscaler.
func TestSlackAnswers(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	c.Create(t, testcluster.ReadyNode("node", "16", "64Gi", nil))
	c.Create(t, testcluster.RunningPod("pod", "node", "2", "4Gi"))
	c.Create(t, testcluster.PolicyOf("general", "10%", nil))
	controller := c.StartController(t)
	c.AwaitBuffers(t, controller, map[string]string{"general-head": "1 x 2 4Gi"})
	c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	awaitSoon := func(condition, reason string) *metav1.Condition {
		t.Helper()
		var found *metav1.Condition
		eventually.TrueWithin(
			t,
			answerTime,
			20*time.Millisecond,
			condition+" is not "+reason,
			controller,
			func(ctx context.Context) (bool, error) {
				var policy v1alpha1.ResourceSlack
				if err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, &policy); err != nil {
					return false, err
				}
				found = meta.FindStatusCondition(policy.Status.Conditions, condition)
				return found != nil && found.Reason == reason, nil
			},
		)
		return found
	}
	awaitSoon(v1alpha1.ConditionAccepted, "NotAnswered")

	const refusal = `pods "general-head" is forbidden: violates PodSecurity`
	answer(t, c, "general-head", 0, metav1.Condition{
		Type: "ReadyForProvisioning", Status: metav1.ConditionFalse, Reason: "error", Message: refusal,
	})
	if got := awaitSoon(v1alpha1.ConditionAccepted, "Refused"); got.Status != metav1.ConditionFalse ||
		!strings.Contains(got.Message, refusal) {
		t.Errorf("condition %+v", got)
	}
	awaitSoon(v1alpha1.ConditionReady, "Refused")
	const event = "pod didn't trigger scale-up: 1 max node group size reached"
	c.Create(t, &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: testcluster.SystemNamespace, Name: "general-head.1"},
		InvolvedObject: v1.ObjectReference{Kind: "CapacityBuffer", Namespace: testcluster.SystemNamespace, Name: "general-head"},
		Reason:         "NotTriggerScaleUp",
		Source:         v1.EventSource{Component: "cluster-autoscaler"},
		Message:        event,
		Type:           v1.EventTypeNormal,
		LastTimestamp:  metav1.NewTime(time.Now().Add(-2 * time.Minute)),
	})
	stdout, _, exitCode := testcluster.RunPlimsoll(t, "slack", "status", "--kubeconfig", c.Kubeconfig, "-o", "json")
	for _, want := range []string{`"answer": "Refused"`, "violates PodSecurity", event} {
		if exitCode == 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, want 1 and %q in\n%s", exitCode, want, stdout)
		}
	}
	config, err := c.Config("test", "system:masters")
	must.Succeed(t, err)
	testcluster.ExpectFinding(
		t, testcluster.Examine(t, config, 0), "autoscaler", doctor.Problem, "policy general: the autoscaler refuses ",
	)

	answer(t, c, "general-head", 1, metav1.Condition{
		Type: "ReadyForProvisioning", Status: metav1.ConditionTrue, Reason: "AttributesSetSuccessfully", Message: "ready",
	})
	awaitSoon(v1alpha1.ConditionAccepted, "Accepted")
	awaitSoon(v1alpha1.ConditionReady, "Held")
	c.Create(t, &v1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: testcluster.SystemNamespace, Name: "general-head.2"},
		InvolvedObject: v1.ObjectReference{Kind: "CapacityBuffer", Namespace: testcluster.SystemNamespace, Name: "general-head"},
		Reason:         "NotTriggerScaleUp", Message: event, Type: v1.EventTypeNormal, LastTimestamp: metav1.Now(),
		ReportingController: "cluster-autoscaler", ReportingInstance: "cluster-autoscaler-0",
	})
	if got := awaitSoon(v1alpha1.ConditionReady, "NotPlaced"); !strings.Contains(got.Message, event) {
		t.Errorf("condition %+v", got)
	}
	testcluster.ExpectFinding(
		t, testcluster.Examine(t, config, 3*time.Minute), "slack", doctor.Warning, "policy general is not ready: NotPlaced: ",
	)
	controller.Stop(t)
}
