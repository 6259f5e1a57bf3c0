package agent

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// stripFields is a cache transform that removes the fields of nodes and pods that the agent does not
// use.
func stripFields(object any) (any, error) {
	switch object := object.(type) {
	case *v1.Node:
		return stripNode(object), nil
	case *v1.Pod:
		return stripPod(object), nil
	}
	return object, nil
}

// identity returns the metadata that a cache needs.
func identity(meta *metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: meta.Name, Namespace: meta.Namespace, UID: meta.UID, ResourceVersion: meta.ResourceVersion,
		DeletionTimestamp: meta.DeletionTimestamp,
	}
}

func stripNode(node *v1.Node) *v1.Node {
	out := &v1.Node{
		ObjectMeta: identity(&node.ObjectMeta),
		Spec:       v1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
		Status:     v1.NodeStatus{Capacity: node.Status.Capacity, Allocatable: node.Status.Allocatable},
	}
	if ready := resources.ReadyCondition(node); ready != nil {
		out.Status.Conditions = []v1.NodeCondition{{Type: ready.Type, Status: ready.Status}}
	}
	return out
}

func stripPod(pod *v1.Pod) *v1.Pod {
	out := &v1.Pod{
		ObjectMeta: identity(&pod.ObjectMeta),
		Spec: v1.PodSpec{
			NodeName: pod.Spec.NodeName, Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
			Containers: stripContainers(pod.Spec.Containers), InitContainers: stripContainers(pod.Spec.InitContainers),
		},
		Status: v1.PodStatus{
			Phase:              pod.Status.Phase,
			Conditions:         resizeConditions(pod.Status.Conditions),
			Resources:          pod.Status.Resources,
			AllocatedResources: pod.Status.AllocatedResources,
			ContainerStatuses: stripStatuses(
				pod.Status.ContainerStatuses,
			),
			InitContainerStatuses: stripStatuses(pod.Status.InitContainerStatuses),
		},
	}
	if policy, ok := pod.Labels[slack.PlaceholderLabel]; ok {
		out.Labels = map[string]string{slack.PlaceholderLabel: policy}
	}
	return out
}

func stripContainers(containers []v1.Container) []v1.Container {
	out := make([]v1.Container, len(containers))
	for i := range containers {
		c := &containers[i]
		out[i] = v1.Container{Name: c.Name, Resources: c.Resources, RestartPolicy: c.RestartPolicy}
	}
	return out
}

// stripStatuses keeps the resources of resized containers.
func stripStatuses(statuses []v1.ContainerStatus) (out []v1.ContainerStatus) {
	for i := range statuses {
		if s := &statuses[i]; s.Resources != nil || s.AllocatedResources != nil {
			out = append(out, v1.ContainerStatus{Name: s.Name, Resources: s.Resources, AllocatedResources: s.AllocatedResources})
		}
	}
	return out
}

// resizeConditions keeps the condition of a pending resize.
func resizeConditions(conditions []v1.PodCondition) (out []v1.PodCondition) {
	for _, condition := range conditions {
		if condition.Type == v1.PodResizePending {
			out = append(out, condition)
		}
	}
	return out
}
