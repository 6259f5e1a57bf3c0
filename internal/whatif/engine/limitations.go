package engine

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Limitations returns a sentence for each action of kube-scheduler that an evaluation of the pod does not simulate:
// scheduling of a pod group as a whole, and preemption of pods of lower priority if the pod fits on no node. selected is
// the node that the evaluation selected.
func Limitations(pod *v1.Pod, selected string, running []*v1.Pod) []string {
	var list []string
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		list = append(list, fmt.Sprintf("pod %s: evaluated alone, while kube-scheduler schedules its pod group %s as a whole",
			resources.Name(pod), *group.PodGroupName))
	}
	if selected != "" || pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == v1.PreemptNever {
		return list
	}
	lower := 0
	for _, other := range running {
		if priorityOf(other) < priorityOf(pod) {
			lower++
		}
	}
	if lower > 0 {
		list = append(
			list,
			fmt.Sprintf("pod %s: preemption is not evaluated; %d running pods have a lower priority", resources.Name(pod), lower),
		)
	}
	return list
}

// priorityOf returns the priority of a pod, 0 if it has none.
func priorityOf(pod *v1.Pod) int32 {
	if pod.Spec.Priority == nil {
		return 0
	}
	return *pod.Spec.Priority
}
