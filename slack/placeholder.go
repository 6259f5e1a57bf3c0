package slack

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// pauseImage is the image of placeholder pods.
const pauseImage = "registry.k8s.io/pause:3.10"

// podTemplate returns the template of the placeholders of a group. It shares no memory with the
// policy, the group or other templates.
func podTemplate(policy *v1alpha1.ResourceSlack, group Group) v1.PodTemplateSpec {
	if group.Mirror != nil {
		return mirrorTemplate(policy, group)
	}
	pool := policy.Spec.Pool.DeepCopy()
	template := v1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{PlaceholderLabel: policy.Name}},
		Spec: v1.PodSpec{
			Containers: []v1.Container{{
				Name: "placeholder", Image: pauseImage,
				Resources: v1.ResourceRequirements{Requests: group.Requests.DeepCopy()},
			}},
			NodeSelector:                  pool.NodeSelector,
			Tolerations:                   pool.Tolerations,
			PriorityClassName:             policy.Spec.PriorityClassName,
			TerminationGracePeriodSeconds: new(int64),
		},
	}
	if group.NodeSelector != nil {
		template.Spec.NodeSelector = labels.Merge(pool.NodeSelector, group.NodeSelector)
	}
	container := &template.Spec.Containers[0]
	for name, quantity := range container.Resources.Requests {
		// Extended resources and huge pages cannot be overcommitted: requests must equal limits.
		if name != v1.ResourceCPU && name != v1.ResourceMemory && name != v1.ResourceEphemeralStorage {
			container.Resources.Limits = addTimes(container.Resources.Limits, v1.ResourceList{name: quantity}, 1)
		}
	}
	restrictPodSecurity(&template.Spec)
	return template
}

// restrictPodSecurity makes a placeholder conform to the restricted Pod Security Standard.
// Autoscalers pass placeholders through the admission of their namespace. The image sets the user: a
// fixed user would be refused where a cluster assigns ranges of users to namespaces.
func restrictPodSecurity(pod *v1.PodSpec) {
	pod.AutomountServiceAccountToken = new(false)
	pod.SecurityContext = &v1.PodSecurityContext{
		RunAsNonRoot: new(true), SeccompProfile: &v1.SeccompProfile{Type: v1.SeccompProfileTypeRuntimeDefault},
	}
	pod.Containers[0].SecurityContext = &v1.SecurityContext{
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities: &v1.Capabilities{Drop: []v1.Capability{"ALL"}},
	}
}

// ownerReference returns the reference to the policy. All placeholders of a policy have this one
// owner, so that an autoscaler treats them as evictable pods of one controller. It does not block the
// deletion of the policy: some API servers permit that only to users who may update its finalizers.
func ownerReference(policy *v1alpha1.ResourceSlack) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.Kind, Name: policy.Name, UID: policy.UID,
		Controller: new(true),
	}
}

// namespaceOr returns the workload's namespace for placeholders that mirror a workload, so that
// affinity and topology spread apply to them as to the workload's pods, and the given namespace
// for placeholders of the rate.
func (g *Group) namespaceOr(namespace string) string {
	if g.Mirror != nil {
		return g.Mirror.Namespace
	}
	return namespace
}

// objectMeta returns the metadata of the objects of a group. A policy that was not read from an
// API server has no UID and cannot be their owner.
func objectMeta(policy *v1alpha1.ResourceSlack, group Group, namespace string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Name: group.Name, Namespace: namespace, Labels: map[string]string{PlaceholderLabel: policy.Name}}
	if policy.UID != "" {
		meta.OwnerReferences = []metav1.OwnerReference{ownerReference(policy)}
	}
	return meta
}

// placeholderPod returns a placeholder as a pending pod that the API server does not know. Equal
// groups and indexes give pods of the same name and UID.
func placeholderPod(policy *v1alpha1.ResourceSlack, group Group, index int64, namespace string) *v1.Pod {
	template := podTemplate(policy, group)
	return &v1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", group.Name, index), Namespace: group.namespaceOr(namespace), Labels: template.Labels,
			UID:             types.UID(fmt.Sprintf("%s-%s-%d", policy.UID, group.Name, index)),
			OwnerReferences: []metav1.OwnerReference{ownerReference(policy)},
		},
		Spec:   template.Spec,
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

// mirrorTemplate returns a template whose pods are scheduled like the workload's pods: it has their
// requests, node selection, affinity, topology spread constraints, host ports, RuntimeClass and priority, but not
// their containers, volumes and resource claims: a claim can be used by one pod only, or would be
// created for each placeholder. It shares no memory with the workload.
func mirrorTemplate(policy *v1alpha1.ResourceSlack, group Group) v1.PodTemplateSpec {
	workload := group.Mirror.Template.DeepCopy()
	t := podTemplate(policy, Group{Name: group.Name, Requests: group.Requests})
	t.Labels = workload.Labels
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[PlaceholderLabel] = policy.Name
	container := &t.Spec.Containers[0]
	container.Ports = resources.HostPorts(&workload.Spec) // which exclude other pods with the same ones
	t.Spec.NodeSelector = workload.Spec.NodeSelector
	t.Spec.Affinity = workload.Spec.Affinity
	t.Spec.Tolerations = workload.Spec.Tolerations
	t.Spec.TopologySpreadConstraints = workload.Spec.TopologySpreadConstraints
	if len(workload.Spec.Overhead) == 0 { // else the requests include the overhead, which admission would add
		t.Spec.RuntimeClassName = workload.Spec.RuntimeClassName
	}
	t.Spec.PriorityClassName = workload.Spec.PriorityClassName
	return t
}
