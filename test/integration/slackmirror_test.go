package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// mirrored returns a Deployment in namespace default with the annotation.
func mirrored(name, annotation string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "default",
			Annotations: map[string]string{v1alpha1.AnnotationSlack: annotation},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: v1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: v1.PodSpec{
					Containers:  runningPod("", "", "2", "1Gi").Spec.Containers,
					Tolerations: []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}},
					Affinity: &v1.Affinity{
						PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
							LabelSelector: &metav1.LabelSelector{MatchLabels: labels}, TopologyKey: v1.LabelHostname,
						}}},
					},
				},
			},
		},
	}
}

// TestSlackMirrors checks the placeholders that mirror workloads, that unmanaged objects are not changed,
// and the output of plimsoll slack status.
func TestSlackMirrors(t *testing.T) {
	t.Parallel()
	c := startCluster(t, buffersCRD(t))
	status := func(args ...string) (out string, exitCode int) {
		stdout, stderr, exitCode := runPlimsoll(t, append([]string{"slack", "status", "--kubeconfig", c.Kubeconfig}, args...)...)
		return stdout + stderr, exitCode
	}
	if out, exitCode := status(); exitCode == 0 || !strings.Contains(out, "has no policies of kind ResourceSlack") {
		t.Errorf("without policies: exit code %d\n%s", exitCode, out)
	}
	c.create(t, readyNode("node", "16", "64Gi", nil))
	c.create(t, mirrored("web", "20%", 10))
	policy := policyOf("general", "0", nil)
	c.create(t, policy)
	if out, exitCode := status("general"); exitCode == 0 || !strings.Contains(out, "is plimsoll-controller running?") {
		t.Errorf("without a controller: exit code %d\n%s", exitCode, out)
	}
	controller := c.startController(t)
	// Without a scheduler the pods of the workload have no node: the base is 0 and there are only mirrors.
	name := "web-deployment-" + suffixOf(t, c, controller)
	c.awaitBuffers(t, controller, map[string]string{name: "2 x 2 1Gi"})
	var template v1.PodTemplate
	if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &template); err != nil {
		t.Fatal(err)
	}
	spec := template.Template.Spec
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil || len(spec.Tolerations) != 1 ||
		template.Template.Labels["app"] != "web" {
		t.Errorf("scheduling constraints differ from the workload: %+v", spec)
	}
	c.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	if out, exitCode := status(); exitCode != 0 || !strings.Contains(out, "2 fit") || !strings.Contains(out,
		"general Ready: true (Held)") {
		t.Errorf("exit code %d\n%s", exitCode, out)
	}

	t.Run("scaled up", func(t *testing.T) {
		scaled := mirrored("web", "20%", 21)
		if err := c.client.Update(t.Context(), scaled); err != nil {
			t.Fatal(err)
		}
		c.awaitBuffers(t, controller, map[string]string{name: "5 x 2 1Gi"})
	})
	t.Run("an invalid annotation is reported and does not affect the others", func(t *testing.T) {
		c.create(t, mirrored("typo", "twenty", 1))
		got := c.awaitCondition(t, controller, "general", v1alpha1.ConditionMirrorsFeasible, "NotFeasible")
		if !strings.Contains(fmt.Sprint(got.Status.Conditions),
			`Deployment default/typo: annotation plimsoll.dev/slack: invalid value "twenty"`) {
			t.Errorf("conditions %v", got.Status.Conditions)
		}
		c.awaitBuffers(t, controller, map[string]string{name: "5 x 2 1Gi"})
		if out, exitCode := status(); exitCode != 0 || !strings.Contains(out, "twenty") {
			t.Errorf("exit code %d\n%s", exitCode, out)
		}
		if err := c.client.Delete(t.Context(), mirrored("typo", "", 1)); err != nil {
			t.Fatal(err)
		}
		c.awaitCondition(t, controller, "general", v1alpha1.ConditionMirrorsFeasible, "Planned")
	})
	t.Run("an unmanaged object with the name of a placeholder object", func(t *testing.T) {
		c.create(t, &v1.PodTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: "general-head", Namespace: systemNamespace},
			Template:   template.Template,
		})
		c.create(t, runningPod("pod", "node", "1", "1Gi"))
		got := c.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "NameTaken")
		if !strings.Contains(fmt.Sprint(got.Status.Conditions),
			"PodTemplate plimsoll-system/general-head exists, is not managed by Plimsoll") {
			t.Errorf("conditions %v", got.Status.Conditions)
		}
		var unmanaged v1.PodTemplate
		if err := c.client.Get(t.Context(), client.ObjectKey{Namespace: systemNamespace, Name: "general-head"}, &unmanaged); err != nil ||
			unmanaged.Labels[slack.PlaceholderLabel] != "" {
			t.Errorf("%v, labels %v", err, unmanaged.Labels)
		}
		for _, object := range []client.Object{&unmanaged, runningPod("pod", "", "1", "1")} {
			if err := c.client.Delete(t.Context(), object, client.GracePeriodSeconds(0)); err != nil {
				t.Fatal(err)
			}
		}
		c.awaitCondition(t, controller, "general", v1alpha1.ConditionReady, "Held")
	})
	t.Run("the annotation is removed", func(t *testing.T) {
		unannotated := mirrored("web", "", 10)
		unannotated.Annotations = nil
		if err := c.client.Update(t.Context(), unannotated); err != nil {
			t.Fatal(err)
		}
		// The placeholder for the deleted biggest pod remains during the cool-down.
		c.awaitBuffers(t, controller, map[string]string{"general-head": "1 x 1 1Gi"})
	})
	controller.Stop(t)
}

// suffixOf waits for a buffer in namespace default and returns the last part of its name.
func suffixOf(t *testing.T, c *testCluster, log fmt.Stringer) (suffix string) {
	t.Helper()
	eventually.True(t, "no buffer exists", log, func(ctx context.Context) (bool, error) {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
		if err := c.client.List(ctx, &list, client.InNamespace("default")); err != nil || len(list.Items) == 0 {
			return false, err
		}
		words := strings.Split(list.Items[0].GetName(), "-")
		suffix = words[len(words)-1]
		return true, nil
	})
	return suffix
}
