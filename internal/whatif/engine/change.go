package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// AddNode adds a node, on which later pods can be scheduled.
func (e *Engine) AddNode(ctx context.Context, node *v1.Node) {
	if _, known := e.position[node.Name]; !known { // a node that was removed and added again keeps its position
		e.position[node.Name] = len(e.position)
	}
	e.scheduler.Cache.AddNode(klog.FromContext(ctx), node)
}

// RemovePod removes a pod from the node on which Schedule placed it.
func (e *Engine) RemovePod(ctx context.Context, pod *v1.Pod, node string) error {
	bound := *pod
	bound.Spec.NodeName = node
	if err := e.releaseClaims(pod); err != nil {
		return err
	}
	return e.scheduler.Cache.RemovePod(klog.FromContext(ctx), &bound)
}

// Now returns the time of the engine's clock.
func (e *Engine) Now() time.Time { return e.now() }

// SetLoad sets the load that all profiles read.
func (e *Engine) SetLoad(reading load.Reading) error {
	var errs []error
	for _, store := range e.stores {
		errs = append(errs, store.Put(reading))
	}
	return errors.Join(errs...)
}

// ReadsLoad reports whether a profile reads the load of nodes or the usage of pods.
func (e *Engine) ReadsLoad() bool { return len(e.stores)+len(e.podStores) > 0 }

// ReadsPodUsage reports whether a profile reads the usage of pods.
func (e *Engine) ReadsPodUsage() bool { return len(e.podStores) > 0 }

// SetPodUsage sets the usage of pods that all profiles read.
func (e *Engine) SetPodUsage(ctx context.Context, reading load.PodReading) error {
	// Plugins learn the usage of the pods in the snapshot, which only a scheduling cycle updates otherwise.
	errs := []error{e.scheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot)}
	for _, store := range e.podStores {
		errs = append(errs, store.Put(reading))
	}
	return errors.Join(errs...)
}

// RemoveNode removes a node without pods. A node with the same name can be added
// again.
func (e *Engine) RemoveNode(ctx context.Context, node *v1.Node) error {
	return e.scheduler.Cache.RemoveNode(klog.FromContext(ctx), node)
}

// AssignPod adds a pod to the node that its spec names, whether or not it fits.
func (e *Engine) AssignPod(ctx context.Context, bound *v1.Pod) error {
	return e.scheduler.Cache.AddPod(klog.FromContext(ctx), bound)
}

// UnassignPod removes a pod from its node, and returns it as AssignPod expects it.
func (e *Engine) UnassignPod(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	bound, err := e.scheduler.Cache.GetPod(pod)
	if err != nil {
		return nil, err
	}
	return bound, e.scheduler.Cache.RemovePod(klog.FromContext(ctx), bound)
}

// Fitting returns a function that reports whether a pod passes all filters on a node with its current pods. It is valid until the engine
// changes, and what the filters compute once for all nodes is computed once.
func (e *Engine) Fitting(ctx context.Context, pod *v1.Pod) (func(node string) (bool, error), error) {
	statusOn, err := e.filters(ctx, pod)
	return func(node string) (bool, error) {
		info, err := e.snapshot.NodeInfos().Get(node)
		if err != nil {
			return false, err
		}
		return passes(pod, statusOn(info))
	}, err
}

// FitsEmpty reports whether a pod passes all filters on a node without pods. The engine does not
// have to have the node.
func (e *Engine) FitsEmpty(ctx context.Context, pod *v1.Pod, node *v1.Node) (bool, error) {
	statusOn, err := e.filters(ctx, pod)
	if err != nil {
		return false, err
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return passes(pod, statusOn(info))
}

// filters returns a function that runs the filters for a pod on a node, with the pods as they are now.
func (e *Engine) filters(ctx context.Context, pod *v1.Pod) (func(node fwk.NodeInfo) *fwk.Status, error) {
	if err := e.scheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot); err != nil {
		return nil, err
	}
	profile, err := e.profile(pod, "")
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return filters(ctx, profile, framework.NewCycleState(), pod), nil
}

// passes reports whether the status of filters is a success. A status that does not reject the pod is an error.
func passes(pod *v1.Pod, status *fwk.Status) (bool, error) {
	if status.IsSuccess() || status.IsRejected() {
		return status.IsSuccess(), nil
	}
	return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, status.AsError())
}
