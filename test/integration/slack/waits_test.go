package slack

import (
	"context"
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSlackWaits checks that pods that waited, and pods that did not, are in the metrics.
func TestSlackWaits(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	c.Create(t, testcluster.ReadyNode("node-0", "16", "64Gi", map[string]string{"pool": "general"}))
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	controller := c.StartController(t, "--controllers=slack", "--metrics-bind-address="+metrics)
	c.Create(t, testcluster.PolicyOf("general", "0", testcluster.InPool("general")))
	c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	// schedule creates a pod whose condition states when it got its node.
	schedule := func(name string, wait time.Duration) {
		t.Helper()
		pod := testcluster.RunningPod(name, "node-0", "1", "2Gi")
		c.Create(t, pod)
		before := pod.DeepCopy()
		pod.Status.Conditions = []v1.PodCondition{{
			Type: v1.PodScheduled, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(pod.CreationTimestamp.Add(wait)),
		}}
		must.Succeed(t, c.Client.Status().Patch(t.Context(), pod, client.MergeFrom(before)))
	}
	schedule("slow", 90*time.Second)
	schedule("fast", time.Second)
	series := func(suffix string, want int) string {
		return fmt.Sprintf("plimsoll_slack_pod_wait_seconds%s %d\n", suffix, want)
	}
	eventually.True(t, "the metrics do not have both pods", controller, func(context.Context) (bool, error) {
		return testcluster.Scrape(t, metrics, `plimsoll_slack_pod_wait_seconds_count`) == series(`_count{policy="general"}`, 2), nil
	})
	atOnce := `_bucket{policy="general",le="10"}`
	if got := testcluster.Scrape(t, metrics, "plimsoll_slack_pod_wait_seconds"+atOnce); got != series(atOnce, 1) {
		t.Errorf("pods that got a node at once: %s", got)
	}
	controller.Stop(t)
}
