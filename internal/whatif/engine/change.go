package engine

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// AddNode adds a node, on which later pods can be scheduled.
func (e *Engine) AddNode(ctx context.Context, node *v1.Node) {
	e.position[node.Name] = len(e.position)
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

// SetLoad sets the load that all profiles read.
func (e *Engine) SetLoad(reading load.Reading) error {
	var errs []error
	for _, store := range e.stores {
		errs = append(errs, store.Put(reading))
	}
	return errors.Join(errs...)
}

// ReadsPodUsage reports whether a profile reads the usage of pods.
func (e *Engine) ReadsPodUsage() bool { return len(e.podStores) > 0 }

// SetPodUsage sets the usage of pods that all profiles read.
func (e *Engine) SetPodUsage(reading load.PodReading) error {
	var errs []error
	for _, store := range e.podStores {
		errs = append(errs, store.Put(reading))
	}
	return errors.Join(errs...)
}
