package scheduler

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

const rolloutExamples = "examples/rollout/"

// rolloutPod returns a pod of a controller, without one if its UID is empty.
func rolloutPod(namespace, kind, uid string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "p-"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "c", Image: "image"}}},
	}
	if uid != "" {
		pod.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: kind, Name: "owner", UID: types.UID(uid), Controller: new(true)},
		}
	}
	return pod
}

// TestRollout applies the manifests of docs/rollout.md: which pods get the scheduler at each share, and the way back.
func TestRollout(t *testing.T) {
	_, config, kube := testcluster.StartControlPlane(t)
	admin := testcluster.AdminClient(t, config)
	for name, labels := range map[string]map[string]string{
		"plimsoll-system": nil, "selected": {"plimsoll.dev/rollout": "enabled"}, "other": nil,
	} {
		namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		must.Succeed(t, admin.Create(t.Context(), namespace))
	}
	testcluster.CreateAll(t, admin, rolloutExamples+"policy.yaml")
	share := func(below string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"data":{"below":%q}}`, below))
		object := &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "plimsoll-rollout", Namespace: "plimsoll-system"}}
		must.Succeed(t, admin.Patch(t.Context(), object, patch))
	}
	await := func(pod *v1.Pod, want string) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("a pod of %v in %s does not get %s", pod.OwnerReferences, pod.Namespace, want), nil,
			func(ctx context.Context) (bool, error) { return schedulerOfNew(ctx, kube, pod) == want, nil })
	}
	const mine, others = "plimsoll-scheduler", "default-scheduler"
	low, high := "19000000-0000-0000-0000-000000000000", "1a000000-0000-0000-0000-000000000000"
	// Without the ConfigMap nothing is changed.
	await(rolloutPod("selected", "ReplicaSet", low), others)
	testcluster.CreateAll(t, admin, rolloutExamples+"share.yaml")
	await(rolloutPod("selected", "ReplicaSet", low), mine)
	own := rolloutPod("selected", "ReplicaSet", low)
	own.Spec.SchedulerName = "another"
	for _, row := range []struct {
		pod  *v1.Pod
		want string
	}{
		{rolloutPod("selected", "ReplicaSet", high), others},
		{rolloutPod("other", "ReplicaSet", low), others},
		{rolloutPod("selected", "DaemonSet", low), others},
		{rolloutPod("selected", "", ""), others},
		{own, "another"},
		{rolloutPod("selected", "Job", low), mine},
		{rolloutPod("selected", "StatefulSet", low), mine},
	} {
		if got := schedulerOfNew(t.Context(), kube, row.pod); got != row.want {
			t.Errorf("pod of %v in %s: %s, want %s", row.pod.OwnerReferences, row.pod.Namespace, got, row.want)
		}
	}
	share("g")
	await(rolloutPod("selected", "ReplicaSet", "ff"+low[2:]), mine)
	await(rolloutPod("selected", "", ""), mine)
	await(rolloutPod("selected", "DaemonSet", low), others)
	// The way back.
	share("00")
	await(rolloutPod("selected", "ReplicaSet", low), others)
	await(rolloutPod("selected", "", ""), others)
	expectOnlyUnboundSelected(t, kube)
}

// expectOnlyUnboundSelected expects that the commands of docs/rollout.md for pending pods leave out pods that have a node and wait for their
// images.
func expectOnlyUnboundSelected(t *testing.T, kube kubernetes.Interface) {
	t.Helper()
	page, err := os.ReadFile(program.File(t, "docs/rollout.md"))
	must.Succeed(t, err)
	commands := regexp.MustCompile(`kubectl (?:get|delete) pods -A --field-selector (\S+)`).FindAllSubmatch(page, -1)
	if len(commands) != 2 {
		t.Fatalf("docs/rollout.md has %d commands for pending pods, want 2", len(commands))
	}
	pods := kube.CoreV1().Pods("selected")
	for _, name := range []string{"bound", "unbound"} {
		pod := rolloutPod("selected", "", "")
		pod.Name, pod.Spec.SchedulerName = name, "plimsoll-scheduler"
		testcluster.Create(t, pods, pod)
	}
	binding := &v1.Binding{ObjectMeta: metav1.ObjectMeta{Name: "bound"}, Target: v1.ObjectReference{Kind: "Node", Name: "node"}}
	must.Succeed(t, pods.Bind(t.Context(), binding, metav1.CreateOptions{}))
	for _, command := range commands {
		list, err := kube.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: string(command[1])})
		must.Succeed(t, err)
		if len(list.Items) != 1 || list.Items[0].Name != "unbound" {
			t.Errorf("%s selects %d pods, want only the pod without a node", command[0], len(list.Items))
		}
	}
}

// schedulerOfNew creates a pod and returns its scheduler, or the error.
func schedulerOfNew(ctx context.Context, kube kubernetes.Interface, pod *v1.Pod) string {
	created, err := kube.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return err.Error()
	}
	return created.Spec.SchedulerName
}
