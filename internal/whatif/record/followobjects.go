package record

import (
	"encoding/json"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording/kinds"
)

// strip removes what is not recorded from a node, and packs a pod: as JSON it takes a third of the memory.
func strip(object any) (any, error) {
	if node, ok := object.(*v1.Node); ok {
		node.ManagedFields, node.Status.Images, node.Status.Conditions = nil, nil, nil
	}
	pod, ok := object.(*v1.Pod)
	if !ok || pod.Annotations[packed] != "" {
		return object, nil
	}
	light := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp,
		},
		Spec:   v1.PodSpec{NodeName: pod.Spec.NodeName},
		Status: v1.PodStatus{Phase: pod.Status.Phase, StartTime: pod.Status.StartTime},
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == v1.PodScheduled {
			light.Status.Conditions = []v1.PodCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
		}
	}
	light.Status.InitContainerStatuses = terminated(pod.Status.InitContainerStatuses)
	light.Status.ContainerStatuses = terminated(pod.Status.ContainerStatuses)
	var raw json.RawMessage
	if err := kinds.NewRedactor(nil).Object("pods", &v1.Pod{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, &raw); err != nil {
		return nil, err
	}
	light.Annotations = map[string]string{packed: string(raw)}
	return light, nil
}

// terminated returns the statuses of containers that have ended, now or before, without other fields.
func terminated(statuses []v1.ContainerStatus) (ended []v1.ContainerStatus) {
	for _, s := range statuses {
		if s.State.Terminated != nil || s.LastTerminationState.Terminated != nil {
			ended = append(ended, v1.ContainerStatus{
				State: v1.ContainerState{Terminated: s.State.Terminated}, LastTerminationState: s.LastTerminationState,
			})
		}
	}
	return ended
}

// unpack returns a pod as strip kept it, as JSON unless strip has not seen the pod.
func unpack(pod *v1.Pod) any {
	if raw, ok := pod.Annotations[packed]; ok {
		return json.RawMessage(raw)
	}
	return pod
}
