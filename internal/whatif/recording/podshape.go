package recording

import (
	"encoding/json"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// setShapes sets the shapes of pods. If one pod has required anti-affinity, where a pod fits depends on the other pods,
// and no pod has a shape.
func setShapes(pods []InputPod) {
	for i := range pods {
		if affinity := pods[i].Object.Spec.Affinity; affinity != nil && affinity.PodAntiAffinity != nil &&
			len(affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
			return
		}
	}
	shapes := map[string]int{}
	for i := range pods {
		spec, w := &pods[i].Object.Spec, pods[i].Owner
		if w != nil && w.shape != 0 {
			pods[i].Shape = w.shape
			continue
		}
		if dependsOnOthers(spec) {
			continue
		}
		key, err := json.Marshal(shapeOf(spec))
		if err != nil {
			continue // It cannot fail; a pod without a shape is correct.
		}
		if shapes[string(key)] == 0 {
			shapes[string(key)] = len(shapes) + 1
		}
		pods[i].Shape = shapes[string(key)]
		if w != nil {
			w.shape = pods[i].Shape
		}
	}
}

// shapeOf returns the part of a pod that decides whether it fits on a node.
func shapeOf(spec *v1.PodSpec) v1.PodSpec {
	shape := v1.PodSpec{
		Resources: spec.Resources, Overhead: spec.Overhead, NodeSelector: spec.NodeSelector, Tolerations: spec.Tolerations,
		SchedulerName: spec.SchedulerName,
	}
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		shape.Containers = append(shape.Containers, v1.Container{
			Resources: v1.ResourceRequirements{Requests: container.Resources.Requests},
		})
	}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		shape.Affinity = &v1.Affinity{NodeAffinity: spec.Affinity.NodeAffinity}
	}
	return shape
}

// dependsOnOthers reports whether the nodes that a pod fits on depend on other pods, or on objects other than nodes.
func dependsOnOthers(spec *v1.PodSpec) bool {
	if affinity := spec.Affinity; affinity != nil && (affinity.PodAffinity != nil || affinity.PodAntiAffinity != nil) {
		return true
	}
	hasPort := func(c v1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p v1.ContainerPort) bool { return p.HostPort != 0 })
	}
	return len(spec.TopologySpreadConstraints)+len(spec.Volumes)+len(spec.ResourceClaims) > 0 || spec.SchedulingGroup != nil ||
		slices.ContainsFunc(slices.Concat(spec.InitContainers, spec.Containers), hasPort)
}
