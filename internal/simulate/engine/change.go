package engine

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// AddNode takes in a node that has come up. Later pods can be scheduled on it.
func (e *Engine) AddNode(ctx context.Context, node *v1.Node) {
	e.position[node.Name] = len(e.position)
	e.scheduler.Cache.AddNode(klog.FromContext(ctx), node)
}

// Remove takes a pod, which Schedule had put there, off its node.
func (e *Engine) Remove(ctx context.Context, pod *v1.Pod, node string) error {
	bound := *pod
	bound.Spec.NodeName = node
	return e.scheduler.Cache.RemovePod(klog.FromContext(ctx), &bound)
}

// Measured gives a reading of load to all profiles that look at load.
func (e *Engine) Measured(reading load.Reading) error {
	var errs []error
	for _, store := range e.stores {
		errs = append(errs, store.Put(reading))
	}
	return errors.Join(errs...)
}
