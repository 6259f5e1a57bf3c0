// Package noderesourcesallocatable scores nodes by their allocatable amounts, regardless of their pods:
//
//	raw = sum of weight x allocatable / sum of weights   (CPU in millicores)
//
// Mode Least negates the raw score. Raw scores are then scaled to [0, 100] between the lowest and the
// highest of the candidates. Least fills small nodes first and keeps large nodes free for large pods;
// Most packs pods on large nodes and keeps small nodes empty.
package noderesourcesallocatable

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
const Name = "NodeResourcesAllocatable"

// cycleKey is the key of the plugin's data in the cycle state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// plugin implements the score plugin. It is immutable.
type plugin struct {
	// Cycle implements PreScore.
	*cache.Cycle[shared.Counts]
	resources []weightedResource
	// sign is 1 in mode Most and -1 in mode Least.
	sign int64
}

var (
	_ fwk.PreScorePlugin = &plugin{}
	_ fwk.ScorePlugin    = &plugin{}
	_ fwk.SignPlugin     = &plugin{}
)

// New returns the plugin. obj is a *config.NodeResourcesAllocatableArgs, or nil for the defaults.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Arguments[config.NodeResourcesAllocatableArgs](obj)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	pl := &plugin{sign: -1}
	if args.Mode == config.Most {
		pl.sign = 1
	}
	var names []resources.Resource
	for _, r := range args.Resources {
		resource := resources.NewResource(v1.ResourceName(r.Name))
		names = append(names, resource)
		pl.resources = append(pl.resources, weightedResource{resource, *r.Weight})
	}
	counter := shared.NewDeviceCounter(handle, names)
	pl.Cycle = cache.NewCycle(cycleKey, shared.Of(handle).Sums, handle, func(*cache.Pending) shared.Counts { return counter.Count(ctx) })
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds nothing to the signature of a pod: the score does not depend on it.
func (pl *plugin) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

// Score returns the raw score of a node.
func (pl *plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return pl.sign * score(pl.resources, node, pl.Data(state, pod)), nil
}

// ScoreExtensions returns the plugin, which normalizes its scores.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore scales the raw scores to [0, 100].
func (pl *plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	cache.Normalize(scores)
	return nil
}
