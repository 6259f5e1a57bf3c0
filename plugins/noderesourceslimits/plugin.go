// Package noderesourceslimits scores nodes by what the limits of their pods
// leave free, so that nodes are oversubscribed evenly and as little as can be:
//
//	raw = sum over the resources of weight x (allocatable - limits) x 100 / allocatable
//
// where limits are those of the pods on the node and of the pending pod. Raw
// scores, negative on an oversubscribed node, are spread over [0, 100] between
// the lowest and the highest of the candidates. A resource that a node lacks
// contributes nothing.
package noderesourceslimits

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/allocation"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/saturate"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
)

// Name of the plugin in the scheduler's configuration.
const Name = "NodeResourcesLimits"

// Plugin scores nodes. It does not change once made.
type Plugin struct {
	resources []limited
	cache     *noderes.Cache
	nodes     fwk.SharedLister
}

// limited is a resource, its weight, and what an unbounded pod is reckoned
// with: 0 means all that its node has.
type limited struct {
	noderes.Resource
	weight, defaultLimit int64
}

var (
	_ fwk.PreScorePlugin = &Plugin{}
	_ fwk.ScorePlugin    = &Plugin{}
	_ fwk.SignPlugin     = &Plugin{}
)

// New returns the plugin with these arguments, a
// *config.NodeResourcesLimitsArgs or nil for the defaults.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return NewShared(noderes.NewCache())(ctx, obj, handle)
}

// NewShared returns a constructor of plugins that share a cache of sums with
// other plugins of the same scheduler.
func NewShared(cache *noderes.Cache) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := config.Arguments[config.NodeResourcesLimitsArgs](obj)
		if err != nil {
			return nil, fmt.Errorf("args of %s: %w", Name, err)
		}
		pl := &Plugin{cache: cache, nodes: handle.SnapshotSharedLister()}
		for _, r := range args.Resources {
			resource := noderes.NewResource(v1.ResourceName(r.Name))
			pl.resources = append(pl.resources, limited{resource, *r.Weight, resource.Amount(args.DefaultLimits[r.Name])})
		}
		return pl, nil
	}
}

// Name returns the name of the plugin.
func (pl *Plugin) Name() string { return Name }

// SignPod adds requests and limits to a pod's signature.
func (pl *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return noderes.Sign(pod), nil
}

// PreScore reads the pending pod's limits, once for all nodes.
func (pl *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	pl.cache.Pending(state, pod, pl.nodes)
	return nil
}

// Score returns the raw score of a node.
func (pl *Plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	pending := pl.cache.Pending(state, pod, pl.nodes)
	sums := pl.cache.Sums(node, pl.nodes, pending.InGroup)
	raw := int64(0)
	for i := range pl.resources {
		r := &pl.resources[i]
		allocatable := r.Allocatable(node)
		sum := sums.Of(r.Resource)
		sum.Add(pending.Of(r.Resource))
		raw = saturate.Add(raw, allocation.Headroom(allocatable, sum.LimitWithDefault(r.defaultLimit, allocatable), r.weight))
	}
	return raw, nil
}

// ScoreExtensions returns the plugin itself, which normalises.
func (pl *Plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore spreads the raw scores over [0, 100].
func (pl *Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	noderes.Normalize(scores)
	return nil
}
