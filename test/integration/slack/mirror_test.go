package slack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// TestSlackMirrors checks the placeholders that mirror workloads, that unmanaged objects are not changed,
// and the output of plimsoll slack status.
func TestSlackMirrors(t *testing.T) {
	c := testcluster.Start(t, testcluster.BuffersCRD(t))
	status := func(args ...string) (out string, exitCode int) {
		stdout, stderr, exitCode := testcluster.RunPlimsoll(
			t,
			append([]string{"slack", "status", "--kubeconfig", c.Kubeconfig}, args...)...)
		return stdout + stderr, exitCode
	}
	if out, exitCode := status(); exitCode == 0 || !strings.Contains(out, "has no policies of kind ResourceSlack") {
		t.Errorf("without policies: exit code %d\n%s", exitCode, out)
	}
	c.Create(t, testcluster.ReadyNode("node", "16", "64Gi", nil))
	c.Create(t, testcluster.Mirrored("web", "20%", 10))
	policy := testcluster.PolicyOf("general", "0", nil)
	c.Create(t, policy)
	if out, exitCode := status("general"); exitCode == 0 || !strings.Contains(out, "is plimsoll-controller running?") {
		t.Errorf("without a controller: exit code %d\n%s", exitCode, out)
	}
	controller := c.StartController(t)
	// Without a scheduler the pods of the workload have no node: the base is 0 and there are only mirrors.
	name := "web-deployment-" + suffixOf(t, c, controller)
	c.AwaitBuffers(t, controller, map[string]string{name: "2 x 2 1Gi"})
	var template v1.PodTemplate
	must.Succeed(t, c.Client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &template))
	spec := template.Template.Spec
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil || len(spec.Tolerations) != 1 ||
		template.Template.Labels["app"] != "web" {
		t.Errorf("scheduling constraints differ from the workload: %+v", spec)
	}
	c.AwaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	if out, exitCode := status(); exitCode != 0 || !strings.Contains(out, "2 fit") || !strings.Contains(out, "general Ready: true (Held)") {
		t.Errorf("exit code %d\n%s", exitCode, out)
	}

	t.Run("scaled up", func(t *testing.T) {
		scaled := testcluster.Mirrored("web", "20%", 21)
		must.Succeed(t, c.Client.Update(t.Context(), scaled))
		c.AwaitBuffers(t, controller, map[string]string{name: "5 x 2 1Gi"})
	})
	t.Run("the annotation is removed", func(t *testing.T) {
		unannotated := testcluster.Mirrored("web", "", 10)
		unannotated.Annotations = nil
		must.Succeed(t, c.Client.Update(t.Context(), unannotated))
		c.AwaitBuffers(t, controller, map[string]string{})
	})
	controller.Stop(t)
}

// suffixOf waits for a buffer in namespace default and returns the last part of its name.
func suffixOf(t *testing.T, c *testcluster.Cluster, log fmt.Stringer) (suffix string) {
	t.Helper()
	eventually.True(t, "no buffer exists", log, func(ctx context.Context) (bool, error) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
		if err := c.Client.List(ctx, &list, client.InNamespace("default")); err != nil || len(list.Items) == 0 {
			return false, err
		}
		words := strings.Split(list.Items[0].GetName(), "-")
		suffix = words[len(words)-1]
		return true, nil
	})
	return suffix
}
