package engine

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ErrUnschedulable is returned if a pod fits on no node.
var ErrUnschedulable = errors.New("fits on no node")

// unschedulableError wraps ErrUnschedulable. Its message is formatted only on demand,
// as that takes as long as a scheduling cycle.
type unschedulableError struct {
	pod *v1.Pod
	fit *framework.FitError
}

// Error implements error.
func (u *unschedulableError) Error() string {
	return fmt.Sprintf("pod %s/%s: %v: %v", u.pod.Namespace, u.pod.Name, ErrUnschedulable, u.fit)
}

// Unwrap returns ErrUnschedulable and the error of the scheduler.
func (u *unschedulableError) Unwrap() []error { return []error{ErrUnschedulable, u.fit} }

// names matches the names of objects in reasons.
var names = regexp.MustCompile(` "[^"]*"|(claim|pod) [^ ,:]+/[^ ,:]+`)

// Reasons returns the reasons of all nodes for which a pod is unschedulable, each once
// and without the number of nodes and the names of claims, so that pods can be counted by
// reason. It returns "" for other errors.
func Reasons(err error) string {
	u, ok := errors.AsType[*unschedulableError](err)
	if !ok {
		return ""
	}
	if message := u.fit.Diagnosis.PreFilterMsg; message != "" {
		return names.ReplaceAllString(message, "$1")
	}
	found := sets.New[string]()
	statuses := u.fit.Diagnosis.NodeToStatus
	statuses.ForEachExplicitNode(func(_ string, status *fwk.Status) { found.Insert(status.Reasons()...) })
	if statuses.Len() < u.fit.NumAllNodes {
		found.Insert(statuses.AbsentNodesStatus().Reasons()...)
	}
	reasons := sets.New[string]() // few reasons differ between nodes, and the expression is slow
	for reason := range found {
		reasons.Insert(names.ReplaceAllString(reason, "$1"))
	}
	return strings.Join(sets.List(reasons), ", ")
}

// Schedule runs a scheduling cycle for a pod, with the profile of a scheduler name as in
// Score, and assigns the pod to the selected node. As in kube-scheduler, the number of
// scored nodes is limited by the profile. It returns the node, or ErrUnschedulable.
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
	state, queued := framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info}
	if e.queue != nil {
		e.queue.cycles++
		queued.PodSignature = profile.SignPod(ctx, pod)
	}
	result, err := e.scheduler.SchedulePod(ctx, profile, state, queued)
	var fit *framework.FitError
	switch {
	case errors.As(err, &fit):
		return "", &unschedulableError{pod, fit}
	case errors.Is(err, scheduler.ErrNoNodesAvailable):
		none := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus(), PreFilterMsg: err.Error()}
		return "", &unschedulableError{pod, &framework.FitError{Pod: pod, Diagnosis: none}}
	case err != nil:
		return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	if err := e.allocateClaims(ctx, profile, state, pod, result.SuggestedHost); err != nil {
		return "", fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return result.SuggestedHost, e.Place(ctx, pod, result.SuggestedHost)
}

// Place assigns a pod to a node at the current time, whether or not it fits.
func (e *Engine) Place(ctx context.Context, pod *v1.Pod, node string) error {
	bound := *pod // shares the fields that are not changed below
	bound.Spec.NodeName = node
	bound.Status.Conditions = slices.Clone(pod.Status.Conditions)
	// The API server sets this condition when a pod is bound. Its time shows that older readings of
	// load do not include the pod.
	podutil.UpdatePodCondition(&bound.Status, &v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue})
	_, scheduled := podutil.GetPodCondition(&bound.Status, v1.PodScheduled)
	scheduled.LastTransitionTime = metav1.NewTime(e.now())
	return e.scheduler.Cache.AddPod(klog.FromContext(ctx), &bound)
}
