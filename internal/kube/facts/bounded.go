package facts

import (
	"maps"

	v1 "k8s.io/api/core/v1"
)

// BoundedList returns the list without the quantities that are not bounded. It returns
// the list itself if all of them are, which is the rule.
func BoundedList(list v1.ResourceList) v1.ResourceList {
	if isBoundedList(list) {
		return list
	}
	out := maps.Clone(list)
	for name, quantity := range list {
		if !IsBounded(quantity) {
			delete(out, name)
		}
	}
	return out
}

// isBoundedList reports whether all quantities of a list are bounded.
func isBoundedList(list v1.ResourceList) bool {
	for _, quantity := range list {
		if !IsBounded(quantity) {
			return false
		}
	}
	return true
}

// BoundedNode returns the node without resources whose quantities are not bounded. It
// returns the node itself if all of them are.
func BoundedNode(node *v1.Node) *v1.Node {
	if isBoundedList(node.Status.Capacity) && isBoundedList(node.Status.Allocatable) {
		return node
	}
	out := node.DeepCopy()
	out.Status.Capacity, out.Status.Allocatable = BoundedList(node.Status.Capacity), BoundedList(node.Status.Allocatable)
	return out
}

// BoundedPod returns the pod without requests and limits whose quantities are not
// bounded. It returns the pod itself if all of them are.
func BoundedPod(pod *v1.Pod) *v1.Pod {
	bounded := true
	forEachList(pod, func(list *v1.ResourceList) { bounded = bounded && isBoundedList(*list) })
	if bounded {
		return pod
	}
	out := pod.DeepCopy()
	forEachList(out, func(list *v1.ResourceList) { *list = BoundedList(*list) })
	return out
}

// forEachList calls a function for the resource lists of a pod that determine its
// requests and limits.
func forEachList(pod *v1.Pod, visit func(*v1.ResourceList)) {
	requirements := func(r *v1.ResourceRequirements) {
		if r != nil {
			visit(&r.Requests)
			visit(&r.Limits)
		}
	}
	visit(&pod.Spec.Overhead)
	requirements(pod.Spec.Resources)
	requirements(pod.Status.Resources)
	visit(&pod.Status.AllocatedResources)
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			requirements(&containers[i].Resources)
		}
	}
	for _, statuses := range [][]v1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			requirements(statuses[i].Resources)
			visit(&statuses[i].AllocatedResources)
		}
	}
}
