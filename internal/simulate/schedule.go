package simulate

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ErrUnschedulable is that a pod fits no node.
var ErrUnschedulable = errors.New("fits no node")

// Schedule schedules a pod as a scheduling cycle does, with the profile of
// this scheduler name as in Score, and keeps it: the pod is on its node for
// the pods after it. Like the scheduler it looks at as many feasible nodes as
// the profile says, not at all. It returns the node, or ErrUnschedulable.
func (e *Engine) Schedule(ctx context.Context, pod *v1.Pod, schedulerName string) (string, error) {
	profile, err := e.profile(pod, schedulerName)
	if err != nil {
		return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	logger := klog.FromContext(ctx)
	if err := e.scheduler.Cache.UpdateSnapshot(logger, e.snapshot); err != nil {
		return "", err
	}
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	result, err := e.scheduler.SchedulePod(ctx, profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	var fit *framework.FitError
	switch {
	case errors.As(err, &fit):
		return "", fmt.Errorf("pod %s/%s: %w: %w", pod.Namespace, pod.Name, ErrUnschedulable, err)
	case err != nil:
		return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = result.SuggestedHost
	// As the API server says it when a pod is bound: whoever looks at load can
	// tell that it does not have this pod yet.
	podutil.UpdatePodCondition(&bound.Status, &v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	_, scheduled := podutil.GetPodCondition(&bound.Status, v1.PodScheduled)
	scheduled.LastTransitionTime = metav1.NewTime(e.now())
	return result.SuggestedHost, e.scheduler.Cache.AddPod(logger, bound)
}
