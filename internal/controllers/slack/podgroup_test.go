package slack

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// TestPodsOfPodGroups checks that the placeholders of a PodGroup follow its pods, and that all policies are enqueued if a pod of a
// PodGroup with the annotation is created, finishes or is deleted. Other changes and pods enqueue policy a only, which has mirrors.
func TestPodsOfPodGroups(t *testing.T) {
	c := controllerOf(t, interceptor.Funcs{}, newPolicy("a", "a"), newPolicy("b", "b"))
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	c.gangs["scheduling.x-k8s.io"] = store
	for name, annotations := range map[string]any{"train": map[string]any{v1alpha1.AnnotationSlack: "1"}, "serve": map[string]any{}} {
		group := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
			"metadata": map[string]any{"namespace": "shop", "name": name, "annotations": annotations},
			"spec":     map[string]any{"minMember": int64(2)},
		}}
		if err := store.Add(group); err != nil {
			t.Fatal(err)
		}
	}
	reconcileOnce(t, c, "a")
	reconcileOnce(t, c, "b")
	q := &recordedQueue{}
	change := func(before, after *v1.Pod) string {
		q.names = nil
		switch {
		case before == nil:
			c.podHandler().Create(t.Context(), event.CreateEvent{Object: after}, q)
		case after == nil:
			c.podHandler().Delete(t.Context(), event.DeleteEvent{Object: before}, q)
		default:
			c.podHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
		slices.Sort(q.names)
		return strings.Join(q.names, " ")
	}
	member := func(name, group string) *v1.Pod {
		pod := newPod(name, "")
		pod.Labels = map[string]string{slack.PodGroupLabel: group}
		return pod
	}
	placeholders := func() int64 { return reconcileOnce(t, c, "a").Status.Mirrored }

	first, second := member("1", "train"), member("2", "train")
	ready, finished, moved := second.DeepCopy(), second.DeepCopy(), first.DeepCopy()
	ready.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}
	finished.Status.Phase = v1.PodSucceeded
	moved.Labels[slack.PodGroupLabel] = "serve"
	for _, step := range []struct {
		name          string
		before, after *v1.Pod
		enqueued      string
		mirrored      int64
	}{
		{"a pod of 2", nil, first, "a b", 0},
		{"both pods", nil, second, "a b", 2},
		{"a pod is ready", second, ready, "a", 2},
		{"a pod without a group", nil, newPod("3", ""), "a", 2},
		{"a pod of a group without annotation", nil, member("4", "serve"), "a", 2},
		{"a pod of a group that does not exist", nil, member("5", "missing"), "a", 2},
		{"a pod has finished", ready, finished, "a b", 0},
		{"another pod", nil, member("6", "train"), "a b", 2},
		{"a pod changes its group", first, moved, "a b", 0},
		{"and back", moved, first, "a b", 2},
		{"a pod is deleted", first, nil, "a b", 0},
	} {
		if got := change(step.before, step.after); got != step.enqueued {
			t.Errorf("%s: %q enqueued, want %q", step.name, got, step.enqueued)
		}
		if got := placeholders(); got != step.mirrored {
			t.Errorf("%s: %d placeholders, want %d", step.name, got, step.mirrored)
		}
	}
	reasons := fmt.Sprint(reconcileOnce(t, c, "a").Status.Conditions)
	if want := "PodGroup shop/train: found 1 pod: must be at least 2, its minMember"; !strings.Contains(reasons, want) {
		t.Errorf("conditions %s, want %s", reasons, want)
	}
	for _, pod := range []*v1.Pod{finished, member("6", "train"), member("4", "serve"), member("5", "missing")} {
		change(pod, nil)
	}
	if len(c.members) != 0 {
		t.Errorf("members of deleted pods: %v", c.members)
	}
}
