package engine

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// RemoveNode takes a node away that no pods are on. A node of that name can come
// again.
func (e *Engine) RemoveNode(ctx context.Context, node *v1.Node) error {
	return e.scheduler.Cache.RemoveNode(klog.FromContext(ctx), node)
}

// Put puts a pod on the node that its spec names, whether or not it fits there.
func (e *Engine) Put(ctx context.Context, bound *v1.Pod) error {
	return e.scheduler.Cache.AddPod(klog.FromContext(ctx), bound)
}

// Lift takes a pod off its node and returns it as it was there, for Put.
func (e *Engine) Lift(ctx context.Context, pod *v1.Pod) (*v1.Pod, error) {
	bound, err := e.scheduler.Cache.GetPod(pod)
	if err != nil {
		return nil, err
	}
	return bound, e.scheduler.Cache.RemovePod(klog.FromContext(ctx), bound)
}

// Fits reports whether a pod passes all filters at a node as it is now.
func (e *Engine) Fits(ctx context.Context, pod *v1.Pod, node string) (bool, error) {
	if err := e.scheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot); err != nil {
		return false, err
	}
	info, err := e.snapshot.NodeInfos().Get(node)
	if err != nil {
		return false, err
	}
	return e.passes(ctx, pod, info)
}

// Suits reports whether a pod passes all filters at a node that nothing is on. The
// node need not be there.
func (e *Engine) Suits(ctx context.Context, pod *v1.Pod, node *v1.Node) (bool, error) {
	if err := e.scheduler.Cache.UpdateSnapshot(klog.FromContext(ctx), e.snapshot); err != nil {
		return false, err
	}
	info := framework.NewNodeInfo()
	info.SetNode(node)
	return e.passes(ctx, pod, info)
}

func (e *Engine) passes(ctx context.Context, pod *v1.Pod, node fwk.NodeInfo) (bool, error) {
	profile, err := e.profile(pod, "")
	if err != nil {
		return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	feasible, _, err := filter(ctx, profile, framework.NewCycleState(), pod, []fwk.NodeInfo{node})
	if err != nil {
		return false, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return len(feasible) > 0, nil
}
