package slack

import (
	"cmp"
	"fmt"
	"math"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// CapacityBufferVersion is the API of autoscalers that hold placeholders.
var CapacityBufferVersion = schema.GroupVersion{Group: "autoscaling.x-k8s.io", Version: "v1beta1"}

// pauseImage is what a placeholder would run, if it ever did.
const pauseImage = "registry.k8s.io/pause:3.10"

// PriorityClassName is the class that the controller makes for real placeholder
// pods of policies that name none.
const PriorityClassName = "plimsoll-placeholder"

// PriorityClass returns that class: its pods give way to all others and push
// nobody out. -10 is the lowest priority that Cluster Autoscaler still makes
// room for.
func PriorityClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:         metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta:       metav1.ObjectMeta{Name: PriorityClassName},
		Value:            -10,
		Description:      "Placeholders of resource slack: they give way to any other pod.",
		PreemptionPolicy: new(v1.PreemptNever),
	}
}

// template returns the pod that every placeholder of a group is. It shares
// nothing with the policy or with other templates: whoever gets it may change it.
func template(policy *v1alpha1.ResourceSlack, group Group) v1.PodTemplateSpec {
	if group.Mirror != nil {
		return mirrorTemplate(policy, group)
	}
	pool := policy.Spec.Pool.DeepCopy()
	return v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{PlaceholderLabel: policy.Name}},
		Spec: v1.PodSpec{
			Containers:                    []v1.Container{{Name: "placeholder", Image: pauseImage, Resources: v1.ResourceRequirements{Requests: group.Requests.DeepCopy()}}},
			NodeSelector:                  pool.NodeSelector,
			Tolerations:                   pool.Tolerations,
			PriorityClassName:             policy.Spec.PriorityClassName,
			TerminationGracePeriodSeconds: new(int64),
		},
	}
}

// owner returns the reference to the policy, the one owner of all its
// placeholders: to an autoscaler they are movable pods of one set.
func owner(policy *v1alpha1.ResourceSlack) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: policy.Name, UID: policy.UID,
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
}

// inNamespace returns where the placeholders of a group are: those like a
// workload's pods are among these, so that affinities and spreading mean to them
// what they mean to the pods; the others are in the namespace given.
func (g *Group) inNamespace(namespace string) string {
	if g.Mirror != nil {
		return g.Mirror.Namespace
	}
	return namespace
}

// Objects returns what the backend CapacityBuffer wants for a plan: a template
// and a buffer for each group, in the order of the groups. They are in the
// namespace given, or in that of the workload that they are like. The same plan
// gives the same objects.
func Objects(policy *v1alpha1.ResourceSlack, plan Plan, namespace string) ([]*v1.PodTemplate, []*unstructured.Unstructured) {
	var templates []*v1.PodTemplate
	var buffers []*unstructured.Unstructured
	for _, group := range plan.Groups {
		meta := objectMeta(policy, group, group.inNamespace(namespace))
		templates = append(templates, &v1.PodTemplate{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"},
			ObjectMeta: meta, Template: template(policy, group),
		})
		buffer := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{
				"podTemplateRef": map[string]any{"name": group.Name},
				// Autoscalers differ in which strategies they know, not in replicas.
				"replicas": group.Count,
			},
		}}
		buffer.SetGroupVersionKind(CapacityBufferVersion.WithKind("CapacityBuffer"))
		buffer.SetName(meta.Name)
		buffer.SetNamespace(meta.Namespace)
		buffer.SetLabels(meta.Labels)
		buffer.SetOwnerReferences(meta.OwnerReferences)
		buffers = append(buffers, buffer)
	}
	return templates, buffers
}

// objectMeta returns what all objects of a group have.
func objectMeta(policy *v1alpha1.ResourceSlack, group Group, namespace string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: group.Name, Namespace: namespace, Labels: map[string]string{PlaceholderLabel: policy.Name}}
	if policy.UID != "" {
		meta.OwnerReferences = []metav1.OwnerReference{owner(policy)}
	}
	return meta
}

// pod returns a placeholder as a pod that was never created. Its name and UID
// are the same for the same group and index.
func pod(policy *v1alpha1.ResourceSlack, group Group, index int64, namespace string) *v1.Pod {
	t := template(policy, group)
	return &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", group.Name, index), Namespace: group.inNamespace(namespace), Labels: t.Labels,
			UID:             types.UID(fmt.Sprintf("%s-%s-%d", policy.UID, group.Name, index)),
			OwnerReferences: []metav1.OwnerReference{owner(policy)},
		},
		Spec:   t.Spec,
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

// Deployments returns what the backend Deployment wants in a namespace for a
// plan: real pods that give way to any other, for autoscalers that hold no
// placeholders themselves. Those like a workload's pods are in that namespace,
// too, and not among the pods: services would send them requests. What affinities
// say of the workload's namespace is said of both; spreading counts placeholders
// only. The priority is not the workload's.
func Deployments(policy *v1alpha1.ResourceSlack, plan Plan, namespace string) []*appsv1.Deployment {
	var out []*appsv1.Deployment
	for _, group := range plan.Groups {
		pod := template(policy, group)
		if group.Mirror != nil {
			seenFrom(pod.Spec.Affinity, group.Mirror.Namespace, namespace)
		}
		pod.Labels["plimsoll.dev/placeholder-group"] = group.Name
		pod.Spec.PriorityClassName = cmp.Or(policy.Spec.PriorityClassName, PriorityClassName)
		harmless(&pod.Spec)
		meta := objectMeta(policy, group, namespace)
		out = append(out, &appsv1.Deployment{
			TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: meta,
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(min(group.Count, math.MaxInt32))),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"plimsoll.dev/placeholder-group": group.Name}},
				Template: pod,
			},
		})
	}
	return out
}

// harmless makes a placeholder pass where the restricted pod security standard is
// enforced: all it does is wait.
func harmless(pod *v1.PodSpec) {
	pod.AutomountServiceAccountToken = new(false)
	pod.SecurityContext = &v1.PodSecurityContext{
		RunAsNonRoot: new(true), RunAsUser: new(int64(65535)),
		SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Containers[0].SecurityContext = &v1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
	}
}
