package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ErrUnschedulable is that a pod fits no node.
var ErrUnschedulable = errors.New("fits no node")

// unschedulable is that a pod fits no node. Why not is put into words only when
// somebody asks: that takes as long as trying, and runs try often.
type unschedulable struct {
	pod *v1.Pod
	fit *framework.FitError
}

// Error says which pod, and why on how many nodes.
func (u *unschedulable) Error() string {
	return fmt.Sprintf("pod %s/%s: %v: %v", u.pod.Namespace, u.pod.Name, ErrUnschedulable, u.fit)
}

// Unwrap returns ErrUnschedulable, and what the scheduler says.
func (u *unschedulable) Unwrap() []error { return []error{ErrUnschedulable, u.fit} }

// Reasons returns why a pod fits no node, if an error says that: the reasons of
// all nodes, each once and without how many nodes it concerns, so that pods can be
// counted by them.
func Reasons(err error) string {
	u, ok := errors.AsType[*unschedulable](err)
	if !ok {
		return ""
	}
	if message := u.fit.Diagnosis.PreFilterMsg; message != "" {
		return message
	}
	reasons := map[string]bool{}
	note := func(status *fwk.Status) {
		for _, reason := range status.Reasons() {
			reasons[reason] = true
		}
	}
	statuses := u.fit.Diagnosis.NodeToStatus
	statuses.ForEachExplicitNode(func(_ string, status *fwk.Status) { note(status) })
	if statuses.Len() < u.fit.NumAllNodes {
		note(statuses.AbsentNodesStatus())
	}
	return strings.Join(slices.Sorted(maps.Keys(reasons)), ", ")
}

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
		return "", &unschedulable{pod, fit}
	case errors.Is(err, scheduler.ErrNoNodesAvailable):
		none := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus(), PreFilterMsg: err.Error()}
		return "", &unschedulable{pod, &framework.FitError{Pod: pod, Diagnosis: none}}
	case err != nil:
		return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	bound := *pod // shares with the pod what neither changes
	bound.Spec.NodeName = result.SuggestedHost
	bound.Status.Conditions = slices.Clone(pod.Status.Conditions)
	// As the API server says it when a pod is bound: whoever looks at load can
	// tell that it does not have this pod yet.
	podutil.UpdatePodCondition(&bound.Status, &v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	_, scheduled := podutil.GetPodCondition(&bound.Status, v1.PodScheduled)
	scheduled.LastTransitionTime = metav1.NewTime(e.now())
	return result.SuggestedHost, e.scheduler.Cache.AddPod(logger, &bound)
}
