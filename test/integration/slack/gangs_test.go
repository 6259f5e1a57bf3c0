package slack

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// documentedObject returns the object of a kind and name in docs/slack.md.
func documentedObject(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	page, err := os.ReadFile("../../../docs/slack.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range strings.Split(string(page), "\n```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(block), &object.Object); err == nil && object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("docs/slack.md has no %s %s", kind, name)
	return nil
}

// awaitGroups waits until the buffers are exactly the wanted ones. Names of mirrors are without their hash.
func awaitGroups(t *testing.T, c *testcluster.Cluster, log fmt.Stringer, want map[string]string) {
	t.Helper()
	var got map[string]string
	defer func() {
		if t.Failed() {
			t.Logf("buffers %v, want %v", got, want)
		}
	}()
	eventually.True(t, fmt.Sprintf("buffers differ from %v", want), log, func(ctx context.Context) (bool, error) {
		all, err := c.Buffers(ctx)
		got = map[string]string{}
		for name, text := range all {
			if hash := strings.LastIndex(name, "-"); strings.Contains(name, "set-") {
				name = name[:hash]
			}
			got[name] = text
		}
		return err == nil && fmt.Sprint(got) == fmt.Sprint(want), nil
	})
}

// TestSlackGangs checks the placeholders for whole groups of a JobSet, and of a LeaderWorkerSet whose kind is installed while the
// controller runs, under limits, after a restart and after a deletion.
func TestSlackGangs(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t), "testdata/jobset.yaml")
	for i := range 3 {
		c.Create(t, testcluster.ReadyNode(fmt.Sprint("node-", i), "16", "64Gi", nil))
	}
	train := documentedObject(t, "JobSet", "train")
	train.SetNamespace("default")
	c.Create(t, train)
	c.Create(t, testcluster.PolicyOf("general", "0", nil))
	controller := c.StartController(t, "--controllers=slack")
	jobs := map[string]string{"train-driver-jobset": "1 x 1 2Gi", "train-workers-jobset": "8 x 3 8Gi"}
	awaitGroups(t, c, controller, jobs)
	policy := c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	if s := policy.Status; s.Placeholders != 9 || s.Mirrored != 9 || s.Placed != 9 {
		t.Errorf("status %+v", s)
	}

	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	testcluster.InstallCRDs(t, config, "testdata/leaderworkerset.yaml")
	serve := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"replicas": int64(4),
		"leaderWorkerTemplate": map[string]any{"size": int64(3), "workerTemplate": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "resources": map[string]any{
				"requests": map[string]any{"cpu": "6", "memory": "1Gi"},
			}}},
		}}},
	}}}
	serve.SetAPIVersion("leaderworkerset.x-k8s.io/v1")
	serve.SetKind("LeaderWorkerSet")
	serve.SetName("serve")
	serve.SetNamespace("default")
	serve.SetAnnotations(map[string]string{v1alpha1.AnnotationSlack: "50%"})
	eventually.True(t, "LeaderWorkerSet is not served", controller, func(ctx context.Context) (bool, error) {
		return c.Client.Create(ctx, serve) == nil, nil
	})
	// 50% of 4 groups of 3 pods.
	both := maps.Clone(jobs)
	both["serve-workers-leaderworkerset"] = "6 x 6 1Gi"
	awaitGroups(t, c, controller, both)
	// The 3 nodes of 16 CPUs have the 8 placeholders of 3 and the one of 1, and then one group of 3 of 6, not two.
	policy = c.AwaitCondition(t, controller, "general", v1alpha1.ConditionProvisioned, "Provisioning")
	if s := policy.Status; s.Placeholders != 15 || s.Placed != 12 {
		t.Errorf("status %+v", s)
	}

	// The namespace may have 12: the JobSet of 9 leaves 3, which one group has.
	change := client.MergeFrom(policy.DeepCopy())
	policy.Spec.Mirrors.MaxPerNamespace = new(int32(12))
	if err := c.Client.Patch(t.Context(), policy, change); err != nil {
		t.Fatal(err)
	}
	both["serve-workers-leaderworkerset"] = "3 x 6 1Gi"
	awaitGroups(t, c, controller, both)
	policy = c.AwaitCondition(t, controller, "general", v1alpha1.ConditionMirrorsFeasible, "NotFeasible")
	if text := fmt.Sprint(policy.Status.Conditions); !strings.Contains(text, "LeaderWorkerSet default/serve requires 2 groups of "+
		"3 placeholders, spec.mirrors.maxPerNamespace permits 3 more in namespace default") {
		t.Errorf("conditions %s", text)
	}

	// A restarted controller does not delete the buffers: they keep their UIDs.
	before := uids(t, c)
	controller.Stop(t)
	controller = c.StartController(t, "--controllers=slack")
	suspended := train.DeepCopy()
	if err := unstructured.SetNestedField(suspended.Object, true, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.Update(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	awaitGroups(t, c, controller, map[string]string{"serve-workers-leaderworkerset": "6 x 6 1Gi"})
	for name, uid := range uids(t, c) {
		if before[name] != uid {
			t.Errorf("%s was created again", name)
		}
	}
	controller.Stop(t)
}

// TestSlackPodGroups checks the placeholders for the pods of a PodGroup that arrive late: none before there are as many as its minMember,
// then all, the same objects after a restart, and none when the pods have finished.
func TestSlackPodGroups(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t), "testdata/podgroup.yaml")
	for i := range 3 {
		c.Create(t, testcluster.ReadyNode(fmt.Sprint("node-", i), "16", "64Gi", nil))
	}
	group := documentedObject(t, "PodGroup", "mpi")
	group.SetNamespace("default")
	c.Create(t, group)
	c.Create(t, testcluster.PolicyOf("general", "0", func(s *v1alpha1.ResourceSlackSpec) { s.CoverBiggestPod = new(false) }))
	controller := c.StartController(t, "--controllers=slack")
	member := func(name, cpu, memory string) *v1.Pod {
		pod := testcluster.RunningPod(name, "node-0", cpu, memory)
		pod.Labels = map[string]string{slack.PodGroupLabel: "mpi", "index": name}
		return pod
	}
	awaitBuffers := func(want ...string) {
		t.Helper()
		eventually.True(t, fmt.Sprintf("buffers differ from %v", want), controller, func(ctx context.Context) (bool, error) {
			all, err := c.Buffers(ctx)
			return err == nil && slices.Equal(slices.Sorted(maps.Values(all)), want), nil
		})
	}
	awaitMissing := func(found string) {
		t.Helper()
		want := "PodGroup default/mpi: found " + found + ": must be at least 4, its minMember"
		eventually.True(t, "condition MirrorsFeasible is not: "+want, controller, func(ctx context.Context) (bool, error) {
			var policy v1alpha1.ResourceSlack
			err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, &policy)
			return err == nil && strings.Contains(fmt.Sprint(policy.Status.Conditions), want), nil
		})
	}
	awaitMissing("0 pods")
	pods := []*v1.Pod{member("launcher", "1", "2Gi"), member("worker-0", "3", "8Gi"), member("worker-1", "3", "8Gi")}
	for _, pod := range pods {
		c.Create(t, pod)
	}
	awaitMissing("3 pods")
	awaitBuffers()
	for i, want := range []string{"3 x 3 8Gi", "4 x 3 8Gi"} {
		pods = append(pods, member(fmt.Sprint("worker-", 2+i), "3", "8Gi"))
		c.Create(t, pods[3+i])
		awaitBuffers("1 x 1 2Gi", want)
	}
	eventually.True(t, "the status has not 5 placeholders that fit the nodes", controller, func(ctx context.Context) (bool, error) {
		var policy v1alpha1.ResourceSlack
		err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, &policy)
		s := &policy.Status
		return err == nil && s.Placeholders == 5 && s.Mirrored == 5 && s.Placed == 5, nil
	})

	// A restarted controller changes the buffer of the workers only.
	before := uids(t, c)
	controller.Stop(t)
	controller = c.StartController(t, "--controllers=slack")
	if err := c.Client.Delete(t.Context(), pods[4], client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	awaitBuffers("1 x 1 2Gi", "3 x 3 8Gi")
	if diff := cmp.Diff(before, uids(t, c)); diff != "" {
		t.Errorf("UIDs of the buffers: -before +after the restart:\n%s", diff)
	}
	for _, pod := range pods[:4] {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Succeeded"}}`))
		if err := c.Client.Status().Patch(t.Context(), pod, patch); err != nil {
			t.Fatal(err)
		}
	}
	awaitBuffers()
	controller.Stop(t)
}

// TestSlackPodGroupsOfKubernetes checks the placeholders for a PodGroup of Kubernetes itself, whose API is off by default: none for 2 of
// its 3 pods, then 3.
func TestSlackPodGroupsOfKubernetes(t *testing.T) {
	options := controlplane.Options{
		APIServerArgs: []string{"--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1beta1=true"},
	}
	c := testcluster.StartWithOptions(t, options, append(testcluster.ProjectCRDs(t), testcluster.BuffersCRD(t))...)
	c.Create(t, testcluster.ReadyNode("node", "16", "64Gi", nil))
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "default", "name": "train", "annotations": map[string]any{v1alpha1.AnnotationSlack: "1"}},
		"spec":     map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": int64(3)}}},
	}}
	c.Create(t, group)
	c.Create(t, testcluster.PolicyOf("general", "0", func(s *v1alpha1.ResourceSlackSpec) { s.CoverBiggestPod = new(false) }))
	controller := c.StartController(t, "--controllers=slack")
	createMember := func(name string) {
		pod := testcluster.RunningPod(name, "node", "2", "4Gi")
		pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new("train")}
		c.Create(t, pod)
	}
	createMember("worker-0")
	createMember("worker-1")
	const missing = "PodGroup default/train: found 2 pods: must be at least 3, its minCount"
	eventually.True(t, "no condition has: "+missing, controller, func(ctx context.Context) (bool, error) {
		var policy v1alpha1.ResourceSlack
		err := c.Client.Get(ctx, client.ObjectKey{Name: "general"}, &policy)
		return err == nil && strings.Contains(fmt.Sprint(policy.Status.Conditions), missing), nil
	})
	if all, err := c.Buffers(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("buffers of a part of the group: %v, %v", all, err)
	}
	createMember("worker-2")
	eventually.True(t, "no buffer of 3 placeholders", controller, func(ctx context.Context) (bool, error) {
		all, err := c.Buffers(ctx)
		return err == nil && slices.Equal(slices.Collect(maps.Values(all)), []string{"3 x 2 4Gi"}), nil
	})
	controller.Stop(t)
}

// uids returns the UIDs of the buffers by name.
func uids(t *testing.T, c *testcluster.Cluster) map[string]string {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("autoscaling.x-k8s.io/v1beta1")
	list.SetKind("CapacityBufferList")
	if err := c.Client.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for _, buffer := range list.Items {
		uids[buffer.GetName()] = string(buffer.GetUID())
	}
	return uids
}

// TestSlackDevices checks the placeholders for pods with devices, and that devices can be changed while the controller runs.
func TestSlackDevices(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	const device = "nvidia.com/gpu"
	node := testcluster.ReadyNode("node", "64", "512Gi", map[string]string{"pool": "gpus"})
	node.Status.Allocatable[device] = resource.MustParse("64")
	c.Create(t, node)
	// 10% of 11 pods with one device is 2, of 3 pods with 8 devices 1.
	for i := range 14 {
		pod := testcluster.RunningPod(fmt.Sprint("pod-", i), "node", "1", "2Gi")
		if i >= 11 {
			pod = testcluster.RunningPod(fmt.Sprint("pod-", i), "node", "4", "16Gi")
		}
		amount := v1.ResourceList{device: resource.MustParse(map[bool]string{false: "1", true: "8"}[i >= 11])}
		resources := &pod.Spec.Containers[0].Resources
		resources.Requests[device], resources.Limits = amount[device], amount
		c.Create(t, pod)
	}
	policy := documentedObject(t, "ResourceSlack", "gpus")
	c.Create(t, policy)
	controller := c.StartController(t, "--controllers=slack")
	c.AwaitBuffers(t, controller, map[string]string{"gpus-d1-1": "2 x 1 2Gi", "gpus-d1-8": "1 x 4 16Gi"})
	got := c.AwaitCondition(t, controller, "gpus", v1alpha1.ConditionReady, "Held")
	total, base := got.Status.Total[device], got.Status.Base[device]
	if s := got.Status; total.Value() != 10 || base.Value() != 35 || s.Placeholders != 3 || s.Placed != 3 || s.Requests != nil {
		t.Errorf("status %+v", s)
	}
	var template v1.PodTemplate
	if err := c.Client.Get(t.Context(), client.ObjectKey{Namespace: testcluster.SystemNamespace, Name: "gpus-d1-8"}, &template); err != nil {
		t.Fatal(err)
	}
	limit := template.Template.Spec.Containers[0].Resources.Limits[device]
	if len(template.Template.Spec.Tolerations) != 1 || limit.Value() != 8 {
		t.Errorf("template %+v", template.Template.Spec)
	}

	// Without devices, all pods are in the base of the rate: 10% of (23, 70Gi), of it the biggest pod (4, 16Gi).
	change := client.MergeFrom(got.DeepCopy())
	got.Spec.Pool.Devices = nil
	if err := c.Client.Patch(t.Context(), got, change); err != nil {
		t.Fatal(err)
	}
	c.AwaitBuffers(t, controller, map[string]string{"gpus-head": "1 x 4 16Gi"})
	controller.Stop(t)
}
