package testcluster

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// BuffersCRD returns the file of the CRD CapacityBuffer.
func BuffersCRD(t *testing.T) string {
	t.Helper()
	return KarpenterSource(t).BufferCRD()
}

// InPool returns a change that selects the nodes of a pool.
func InPool(pool string) func(*v1alpha1.ResourceSlackSpec) {
	return func(s *v1alpha1.ResourceSlackSpec) { s.Pool.NodeSelector = map[string]string{"pool": pool} }
}

// Buffers returns the replicas of all buffers and the requests of their templates, by name.
func (c *Cluster) Buffers(ctx context.Context) (map[string]string, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(slack.CapacityBufferVersion.WithKind("CapacityBufferList"))
	if err := c.Client.List(ctx, &list); err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, buffer := range list.Items {
		replicas, _, err := unstructured.NestedInt64(buffer.Object, "spec", "replicas")
		if err != nil {
			return nil, err
		}
		var template v1.PodTemplate
		if err := c.Client.Get(ctx, client.ObjectKeyFromObject(&buffer), &template); err != nil {
			return nil, err
		}
		requests := template.Template.Spec.Containers[0].Resources.Requests
		out[buffer.GetName()] = fmt.Sprintf("%d x %s %s", replicas, requests.Cpu(), requests.Memory())
	}
	return out, nil
}

// AwaitBuffers waits until exactly the wanted buffers exist.
func (c *Cluster) AwaitBuffers(t *testing.T, log fmt.Stringer, want map[string]string) {
	t.Helper()
	var got map[string]string
	defer func() {
		if t.Failed() {
			t.Logf("buffers %v, want %v", got, want)
		}
	}()
	eventually.True(t, fmt.Sprintf("buffers differ from %v", want), log, func(ctx context.Context) (bool, error) {
		var err error
		got, err = c.Buffers(ctx)
		return err == nil && fmt.Sprint(got) == fmt.Sprint(want), nil
	})
}

// AwaitCondition waits until a condition of a policy has a reason, and returns the policy.
func (c *Cluster) AwaitCondition(t *testing.T, log fmt.Stringer, policy, condition, reason string) *v1alpha1.ResourceSlack {
	t.Helper()
	got := &v1alpha1.ResourceSlack{}
	defer func() {
		if t.Failed() {
			t.Logf("status of %s: %+v", policy, got.Status)
		}
	}()
	eventually.True(t, fmt.Sprintf("%s is not %s", condition, reason), log, func(ctx context.Context) (bool, error) {
		if err := c.Client.Get(ctx, client.ObjectKey{Name: policy}, got); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		actual := meta.FindStatusCondition(got.Status.Conditions, condition)
		return actual != nil && actual.Reason == reason && actual.ObservedGeneration == got.Generation, nil
	})
	return got
}

// PolicyOf returns a policy that mirrors the workloads of all namespaces.
func PolicyOf(name, rate string, change func(*v1alpha1.ResourceSlackSpec)) *v1alpha1.ResourceSlack {
	policy := &v1alpha1.ResourceSlack{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.ResourceSlackSpec{MinRate: rate}}
	policy.Spec.Mirrors.NamespaceSelector = &metav1.LabelSelector{}
	if change != nil {
		change(&policy.Spec)
	}
	return policy
}

// AmountOf returns an amount without the parts that are empty.
func AmountOf(cpu, memory string, placeholders int32) *v1alpha1.Amount {
	a := &v1alpha1.Amount{}
	if cpu != "" {
		a.CPU = new(resource.MustParse(cpu))
	}
	if memory != "" {
		a.Memory = new(resource.MustParse(memory))
	}
	if placeholders > 0 {
		a.Placeholders = &placeholders
	}
	return a
}

// Mirrored returns a Deployment in namespace default with the annotation.
func Mirrored(name, annotation string, replicas int32) *appsv1.Deployment {
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
					Containers:  RunningPod("", "", "2", "1Gi").Spec.Containers,
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
