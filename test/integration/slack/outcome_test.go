package slack

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSlackOutcome runs the controller with a required history of one second. It checks that pods that waited are in the status
// and in the metrics, that the controller recommends a policy without changing the spec, and that its recording survives a restart.
func TestSlackOutcome(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	c.Create(t, testcluster.ReadyNode("node-0", "16", "64Gi", map[string]string{"pool": "general"}))
	saved := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: testcluster.SystemNamespace, Name: "plimsoll-slack-history"}}
	c.Create(t, saved)
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	args := []string{"--controllers=slack", "--metrics-bind-address=" + metrics, "--recommend-after=1s"}
	controller := c.StartController(t, args...)
	// Without slack, placeholder hours do not change the status.
	c.Create(t, testcluster.PolicyOf("general", "0", func(s *v1alpha1.ResourceSlackSpec) {
		testcluster.InPool("general")(s)
		s.CoverBiggestPod, s.Recommend = new(false), &v1alpha1.Recommend{Wait: "p99=5s"}
	}))
	c.AwaitCondition(t, controller, "general", v1alpha1.ConditionRecommended, "NoPods")
	// schedule creates a pod whose condition states when it got its node.
	schedule := func(name string, wait time.Duration) *v1.Pod {
		t.Helper()
		pod := testcluster.RunningPod(name, "node-0", "1", "2Gi")
		c.Create(t, pod)
		before := pod.DeepCopy()
		pod.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(pod.CreationTimestamp.Add(wait)),
		}}
		if err := c.Client.Status().Patch(t.Context(), pod, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	policy := &v1alpha1.ResourceSlack{}
	await := func(message string, condition func(*v1alpha1.ResourceSlackStatus) bool) {
		t.Helper()
		defer func() {
			if t.Failed() {
				t.Logf("status %+v", policy.Status)
			}
		}()
		eventually.True(t, message, controller, func(ctx context.Context) (bool, error) {
			err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, policy)
			return err == nil && condition(&policy.Status), nil
		})
	}
	schedule("slow", 90*time.Second)
	await("no pod waited", func(s *v1alpha1.ResourceSlackStatus) bool {
		return s.Outcome != nil && s.Outcome.Waited == 1 && s.Outcome.LongestWaitSeconds == 90 && s.Outcome.Price == ""
	})
	await("no recommendation", func(s *v1alpha1.ResourceSlackStatus) bool {
		found := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionRecommended)
		return s.Recommendation != nil && s.Recommendation.Pods == 1 && found != nil && strings.HasSuffix(found.Reason, "Reached")
	})
	if policy.Spec.MinRate != "0" || policy.Spec.Minimum != nil || policy.Spec.Schedules != nil {
		t.Errorf("the spec changed: %+v", policy.Spec)
	}
	fast := schedule("fast", time.Second)
	series := func(suffix string, want int) string {
		return fmt.Sprintf("plimsoll_slack_pod_wait_seconds%s %d\n", suffix, want)
	}
	eventually.True(t, "the metrics have no second pod", controller, func(context.Context) (bool, error) {
		return testcluster.Scrape(t, metrics, `plimsoll_slack_pod_wait_seconds_count`) == series(`_count{policy="general"}`, 2), nil
	})
	atOnce := `_bucket{policy="general",le="10"}`
	if got := testcluster.Scrape(t, metrics, "plimsoll_slack_pod_wait_seconds"+atOnce); got != series(atOnce, 1) {
		t.Errorf("pods that got a node at once: %s", got)
	}
	first := policy.Status.Recommendation
	controller.Stop(t)
	if err := c.Client.Get(
		t.Context(),
		client.ObjectKeyFromObject(saved),
		saved,
	); err != nil ||
		len(saved.BinaryData["general.json.gz"]) == 0 {
		t.Fatalf("saved data %v: %v\n%s", saved.BinaryData, err, controller)
	}
	controller = c.StartController(t, args...)
	eventually.True(t, "the second in which the pod was created is not over", nil, func(context.Context) (bool, error) {
		return time.Since(fast.CreationTimestamp.Time) > 2*time.Second, nil
	})
	before := policy.Spec.DeepCopy()
	before.Recommend.Wait = "p50=1m"
	out, progress := testcluster.MustPlimsoll(t, "slack", "recommend", "general", "--write", "--wait", "p50=1m",
		"--kubeconfig", c.Kubeconfig, "--timeout", "10m")
	if !strings.Contains(out, "2 pods from "+first.From.UTC().Format(time.RFC3339)) || !strings.Contains(out, "wait p50 ") ||
		!strings.Contains(out, "no slack is needed") || !strings.Contains(progress, "spec.recommend.wait is p50=1m") {
		t.Errorf("output %s\n%s", out, progress)
	}
	await("no recommendation after a restart", func(s *v1alpha1.ResourceSlackStatus) bool {
		return s.Recommendation != nil && s.Recommendation.Goal.Wait == "p50=1m"
	})
	if diff := cmp.Diff(before, &policy.Spec); diff != "" {
		t.Errorf("spec: -want +got:\n%s", diff)
	}
	if _, stderr, exitCode := testcluster.RunPlimsoll(t, "slack", "recommend", "other", "--write", "--kubeconfig", c.Kubeconfig); exitCode != 1 ||
		!strings.Contains(stderr, `policy "other" not found`) {
		t.Errorf("exit code %d for a policy that does not exist: %s", exitCode, stderr)
	}
	if got := policy.Status.Recommendation; got.Pods != 2 || !got.From.Equal(&first.From) {
		t.Errorf("after a restart: %d pods from %s, want 2 from %s", got.Pods, got.From, first.From)
	}
	controller.Stop(t)
}
