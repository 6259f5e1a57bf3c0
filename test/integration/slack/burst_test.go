package slack

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSlackBurstPreemptsPlaceholders checks with backend Deployment that a burst of pods preempts
// placeholders at once, and that the placeholders are created again and pending until an autoscaler
// adds nodes.
func TestSlackBurstPreemptsPlaceholders(t *testing.T) {
	c := testcluster.Start(t)
	for i := range 2 {
		c.Create(t, testcluster.ReadyNode(fmt.Sprint("node-", i), "4", "16Gi", map[string]string{"pool": "general"}))
	}
	// With asynchronous preemption, the default, kube-scheduler 1.37.1 sometimes leaves a pod pending for
	// more than a minute after the placeholders that it preempted were deleted.
	watcher := c.StartDefaultScheduler(t, "--feature-gates=SchedulerAsyncPreemption=false")
	c.Scale(t, watcher, "web", 5)
	controller := c.StartController(t)
	// 60% of 5 x (1, 1Gi) is (3, 3Gi): three placeholders of (1, 1Gi), one of them for the biggest pod.
	// 5 pods and 3 placeholders use all 8 cores.
	c.Create(t, testcluster.PolicyOf("general", "60%", func(s *v1alpha1.ResourceSlackSpec) {
		testcluster.InPool("general")(s)
		s.Backend = v1alpha1.BackendDeployment
		s.Granularity = new(int32(4))
	}))
	awaitPlaceholders(t, c, controller, 3, 0)
	pods := c.RecordChanges(t, v1.SchemeGroupVersion.WithKind("Pod"))

	start := time.Now()
	c.Scale(t, watcher, "web", 8)
	t.Logf("the 3 pods of the burst were running after %.2f s", time.Since(start).Seconds())
	// 60% of 8 cores are 4.8: 5 placeholders of about (1, 1Gi), and none fits.
	awaitPlaceholders(t, c, controller, 0, 5)
	c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Provisioning")
	for i := range 2 { // as an autoscaler would
		c.Create(t, testcluster.ReadyNode(fmt.Sprint("added-", i), "4", "16Gi", map[string]string{"pool": "general"}))
	}
	awaitPlaceholders(t, c, controller, 5, 0)
	for _, pod := range placeholders(t.Context(), c, t) {
		if *pod.Spec.Priority != -10 || *pod.Spec.PreemptionPolicy != v1.PreemptNever ||
			pod.Spec.PriorityClassName != slack.PriorityClassName {
			t.Errorf("%s: priority %d, preemption policy %s", pod.Name, *pod.Spec.Priority, *pod.Spec.PreemptionPolicy)
		}
	}
	created, preempted := map[string]time.Time{}, 0
	pods.Mu.Lock()
	defer pods.Mu.Unlock()
	for i, event := range pods.Events {
		pod, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatal(event)
		}
		name := pod.GetName()
		if event.Type == watch.Deleted {
			if pod.GetLabels()[slack.PlaceholderLabel] == "" {
				t.Errorf("%s was preempted and is not a placeholder", name)
			}
			if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "" {
				preempted++
			}
			continue
		}
		if !strings.HasPrefix(name, "web-") {
			continue
		}
		if priority, _, _ := unstructured.NestedInt64(pod.Object, "spec", "priority"); priority != 0 {
			t.Errorf("%s has priority %d", name, priority)
		}
		if event.Type == watch.Added {
			created[name] = pods.Times[i]
		}
		if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "" && !created[name].IsZero() {
			latency := pods.Times[i].Sub(created[name])
			t.Logf("%s was bound %.0f ms after its creation", name, float64(latency.Microseconds())/1000)
			if latency > 30*time.Second {
				t.Errorf("%s was bound %s after its creation", name, latency)
			}
			created[name] = time.Time{}
		}
	}
	if len(created) != 3 || preempted != 3 {
		t.Errorf("%d pods were created and %d placeholders preempted, want 3 and 3", len(created), preempted)
	}
	controller.Stop(t)
}

// placeholders returns the placeholder pods.
func placeholders(ctx context.Context, c *testcluster.Cluster, t *testing.T) []v1.Pod {
	t.Helper()
	var list v1.PodList
	if err := c.Client.List(
		ctx, &list, client.InNamespace(testcluster.PodNamespace), client.HasLabels{slack.PlaceholderLabel},
	); err != nil {
		t.Error(err)
	}
	return list.Items
}

// awaitPlaceholders waits for numbers of running and unschedulable placeholders.
func awaitPlaceholders(t *testing.T, c *testcluster.Cluster, log fmt.Stringer, running, unschedulable int) {
	t.Helper()
	var gotRunning, gotUnschedulable int
	defer func() {
		if t.Failed() {
			t.Logf("%d running, %d unschedulable", gotRunning, gotUnschedulable)
		}
	}()
	eventually.True(t, fmt.Sprintf("placeholders are not %d running, %d unschedulable", running, unschedulable), log,
		func(ctx context.Context) (bool, error) {
			gotRunning, gotUnschedulable = 0, 0
			for _, pod := range placeholders(ctx, c, t) {
				if pod.Status.Phase == v1.PodRunning && pod.DeletionTimestamp == nil {
					gotRunning++
				}
				for _, condition := range pod.Status.Conditions {
					if condition.Type == v1.PodScheduled && condition.Status == v1.ConditionFalse &&
						condition.Reason == v1.PodReasonUnschedulable {
						gotUnschedulable++
					}
				}
			}
			return gotRunning == running && gotUnschedulable == unschedulable, nil
		})
}
