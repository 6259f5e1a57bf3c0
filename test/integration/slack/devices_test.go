package slack

import (
	"fmt"
	"os"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// documentedObject returns the object of a kind and name in docs/slack-reference.md.
func documentedObject(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	page, err := os.ReadFile("../../../docs/slack-reference.md")
	must.Succeed(t, err)
	for _, block := range strings.Split(string(page), "\n```yaml\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(block), &object.Object); err == nil && object.GetKind() == kind && object.GetName() == name {
			return object
		}
	}
	t.Fatalf("docs/slack-reference.md has no %s %s", kind, name)
	return nil
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
	must.Succeed(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: testcluster.SystemNamespace, Name: "gpus-d1-8"}, &template))
	limit := template.Template.Spec.Containers[0].Resources.Limits[device]
	if len(template.Template.Spec.Tolerations) != 1 || limit.Value() != 8 {
		t.Errorf("template %+v", template.Template.Spec)
	}

	// Without devices, all pods are in the base of the rate: 10% of (23, 70Gi), of it the biggest pod (4, 16Gi).
	change := client.MergeFrom(got.DeepCopy())
	got.Spec.Pool.Devices = nil
	must.Succeed(t, c.Client.Patch(t.Context(), got, change))
	c.AwaitBuffers(t, controller, map[string]string{"gpus-head": "1 x 4 16Gi"})
	controller.Stop(t)
}
