// Package noderesourceslimits scores nodes by the amounts that the limits of their pods leave free, so
// that limits are spread evenly and nodes are oversubscribed as little as possible:
//
//	raw = sum over the resources of weight x (allocatable - limits) x 100 / allocatable
//
// The limits are the limits of the pods on the node and of the pending pod. Raw scores, which are negative
// for oversubscribed nodes, are scaled to [0, 100] between the lowest and the highest of the
// candidates. A resource that a node lacks contributes nothing. Extended resources that are backed by devices (Dynamic Resource
// Allocation) count with the devices of the node, and with its allocated devices as the limits of its pods.
package noderesourceslimits

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
)

// Name is the name of the plugin in the scheduler configuration.
const Name = "NodeResourcesLimits"

// cycleKey is the key of the plugin's data in the cycle state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// plugin implements the score plugin. It is immutable.
type plugin struct {
	// Cycle implements PreScore.
	*cache.Cycle[cycleData]
	resources []limitedResource
	sums      *cache.Cache
}

// cycleData is the pending pod of a cycle and the devices of all nodes.
type cycleData struct {
	pending cache.Pending
	devices shared.Counts
}

var (
	_ fwk.PreScorePlugin = &plugin{}
	_ fwk.ScorePlugin    = &plugin{}
	_ fwk.SignPlugin     = &plugin{}
)

// New returns the plugin. obj is a *config.NodeResourcesLimitsArgs, or nil for the defaults.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Arguments[config.NodeResourcesLimitsArgs](obj)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	pl := &plugin{sums: shared.Of(handle).Sums}
	var names []resources.Resource
	for _, r := range args.Resources {
		resource := resources.NewResource(v1.ResourceName(r.Name))
		names = append(names, resource)
		pl.resources = append(pl.resources, limitedResource{resource, *r.Weight, resource.Amount(args.DefaultLimits[r.Name])})
	}
	counter := shared.NewDeviceCounter(handle, names)
	pl.Cycle = cache.NewCycle(cycleKey, pl.sums, handle, func(pending *cache.Pending) cycleData {
		return cycleData{*pending, counter.Count(ctx)}
	})
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds requests and limits to the signature of a pod.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return cache.Sign(pod), nil
}

// PreScore computes the data of the cycle and the sums of each candidate. In one loop, the processor reads several nodes from memory at
// the same time.
func (pl *plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	c := pl.Data(state, pod)
	for _, node := range nodes {
		pl.sums.Sums(node, &c.pending)
	}
	return nil
}

// Score returns the raw score of a node.
func (pl *plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := pl.Data(state, pod)
	return score(pl.resources, node, &pl.sums.Sums(node, &c.pending).Sums, c), nil
}

// ScoreExtensions returns the plugin, which normalizes its scores.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore scales the raw scores to [0, 100].
func (pl *plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	cache.Normalize(scores)
	return nil
}
