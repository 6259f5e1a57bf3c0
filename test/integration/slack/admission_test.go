package slack

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// podOf returns a pod of the template of a PodTemplate or Deployment, nil for other kinds.
func podOf(t *testing.T, object *unstructured.Unstructured) *v1.Pod {
	t.Helper()
	path := map[string][]string{"PodTemplate": {"template"}, "Deployment": {"spec", "template"}}[object.GetKind()]
	if path == nil {
		return nil
	}
	content, _, err := unstructured.NestedMap(object.Object, path...)
	must.Succeed(t, err)
	var template v1.PodTemplateSpec
	must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template))
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), Labels: template.Labels},
		Spec:       template.Spec,
	}
}

// TestPlaceholdersAreAdmitted creates, as Cluster Autoscaler does, pods of all templates in a dry run. The
// namespaces enforce the restricted Pod Security Standard.
func TestPlaceholdersAreAdmitted(t *testing.T) {
	c := testcluster.Start(t)
	const namespace = "restricted"
	c.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	c.Create(t, slack.PriorityClass())
	deployment := testcluster.Mirrored("web", "2", 3)
	deployment.Namespace = namespace
	workload, ok := slack.WorkloadOf(deployment)
	if !ok {
		t.Fatal("the Deployment is not mirrored")
	}
	nodes := []*v1.Node{testcluster.ReadyNode("node", "16", "64Gi", nil)}
	pods := []*v1.Pod{testcluster.RunningPod("small", "node", "1", "1Gi"), testcluster.RunningPod("big", "node", "6", "2Gi")}
	for _, backend := range v1alpha1.Backends {
		policy := testcluster.PolicyOf("general", "100%", func(s *v1alpha1.ResourceSlackSpec) { s.Backend = backend })
		plan, err := slack.Compute(policy, nodes, pods, []slack.Workload{workload}, time.Now())
		must.Succeed(t, err)
		objects, err := slack.BackendOf(policy).Objects(policy, plan, namespace)
		must.Succeed(t, err)
		admitted := 0
		for _, object := range objects {
			pod := podOf(t, object)
			if pod == nil {
				continue
			}
			if err := c.Client.Create(t.Context(), pod, client.DryRunAll); err != nil {
				t.Errorf("%s: %s %s: %v", backend, object.GetKind(), object.GetName(), err)
			}
			admitted++
		}
		// For the biggest pod, for the rest of the rate, and a mirror.
		if admitted != 3 {
			t.Errorf("%s: %d templates, want 3", backend, admitted)
		}
	}
}
