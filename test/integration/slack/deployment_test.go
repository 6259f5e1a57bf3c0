package slack

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// groupLabel is the label of placeholder pods with the name of their group.
const groupLabel = "plimsoll.dev/placeholder-group"

// TestSlackKeepsPlaceholderPods checks with backend Deployment that pods that arrive one by one, and a restart of the controller, change the
// number of placeholders and no template, and that placeholders of a new size run before the ones that they replace stop.
func TestSlackKeepsPlaceholderPods(t *testing.T) {
	c := testcluster.Start(t)
	for i := range 8 {
		c.Create(t, testcluster.ReadyNode(fmt.Sprint("node-", i), "3", "16Gi", nil))
	}
	for i := range 4 {
		c.Create(t, testcluster.RunningPod(fmt.Sprint("base-", i), fmt.Sprint("node-", i), "1500m", "512Mi"))
	}
	scheduler, controller := c.StartDefaultScheduler(t), c.StartController(t)
	policy := testcluster.PolicyOf("general", "40%", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = v1alpha1.BackendDeployment })
	c.Create(t, policy)
	// 40% of 6 cores are 2.4: the biggest pod and two of 450m, as one placeholder has at most a fifth of 3 cores.
	awaitPlaceholders(t, c, controller, 3, 0)
	recorder := c.RecordChanges(t, v1.SchemeGroupVersion.WithKind("Pod"))
	for i, want := range []int{5, 6, 7} { // 1.38, 1.86 and 2.34 cores beside the biggest pod
		c.Create(t, testcluster.RunningPod(fmt.Sprint("new-", i), fmt.Sprint("node-", 4+i), "1200m", "512Mi"))
		awaitPlaceholders(t, c, controller, want, 0)
	}
	controller.Stop(t)
	controller = c.StartController(t)
	c.Create(t, testcluster.RunningPod("new-3", "node-7", "1200m", "512Mi"))
	awaitPlaceholders(t, c, controller, 9, 0)
	var sets appsv1.ReplicaSetList
	must.Succeed(t, c.Client.List(t.Context(), &sets, client.InNamespace(testcluster.PodNamespace)))
	if len(sets.Items) != 2 {
		t.Errorf("%d ReplicaSets, want one of the biggest pod and one of the rate", len(sets.Items))
	}
	if _, deleted := runningRate(recorder); deleted > 0 {
		t.Errorf("%d placeholders were deleted while pods arrived: %v", deleted, recorder.Changes())
	}
	// At most a tenth of a node: 2.82 cores are 10 placeholders of 282m.
	c.Patch(t, policy, map[string]any{"spec": map[string]any{"granularity": 10}})
	eventually.True(t, "placeholders are not replaced", controller, func(ctx context.Context) (bool, error) {
		pods := slices.DeleteFunc(placeholders(ctx, c, t), func(pod v1.Pod) bool { return pod.Labels[groupLabel] != "general-rate" })
		isOld := func(pod v1.Pod) bool { return pod.Spec.Containers[0].Resources.Requests.Cpu().String() != "282m" }
		return len(pods) == 10 && !slices.ContainsFunc(pods, isOld), nil
	})
	awaitPlaceholders(t, c, controller, 11, 0)
	if fewest, deleted := runningRate(recorder); fewest < 8 || deleted < 8 {
		t.Errorf("%d of 8 placeholders ran when the size changed, %d were deleted: %v", fewest, deleted, recorder.Changes())
	}
	controller.Stop(t)
	scheduler.Stop(t)
}

// runningRate returns the lowest number of placeholders of the rate that ran at the same time since the first one was deleted, the last
// number if none was, and how many were deleted. Two ran before the recorder started.
func runningRate(recorder *testcluster.ChangeRecorder) (fewest, deleted int) {
	recorder.Mu.Lock()
	defer recorder.Mu.Unlock()
	running := map[string]bool{"known-0": true, "known-1": true}
	for _, event := range recorder.Events {
		pod, ok := event.Object.(*unstructured.Unstructured)
		if !ok || pod.GetLabels()[groupLabel] != "general-rate" {
			continue
		}
		phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
		switch {
		case event.Type == watch.Deleted:
			deleted++
			delete(running, pod.GetName())
		case pod.GetDeletionTimestamp() == nil && phase == string(v1.PodRunning):
			running[pod.GetName()] = true
		}
		if fewest = min(fewest, len(running)); deleted == 0 {
			fewest = len(running)
		}
	}
	return fewest, deleted
}
