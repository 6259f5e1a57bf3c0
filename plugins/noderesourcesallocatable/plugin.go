// Package noderesourcesallocatable scores nodes by how much they have for
// pods at all, whatever runs on them:
//
//	raw = sum of weight x allocatable / sum of weights   (CPU in millicores)
//
// negated in mode Least, then spread over [0, 100] between the lowest and the
// highest of the candidates. Least fills small nodes first and keeps large ones
// for large pods; Most gathers pods on large nodes and leaves small ones empty.
package noderesourcesallocatable

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/allocation"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
)

// Name of the plugin in the scheduler's configuration.
const Name = "NodeResourcesAllocatable"

// Plugin scores nodes. It does not change once made.
type Plugin struct {
	resources []weighted
	// sign is 1 where much is good, -1 where little is.
	sign int64
}

type weighted struct {
	noderes.Resource
	weight int64
}

var (
	_ fwk.ScorePlugin = &Plugin{}
	_ fwk.SignPlugin  = &Plugin{}
)

// New returns the plugin with these arguments, a
// *config.NodeResourcesAllocatableArgs or nil for the defaults.
func New(_ context.Context, obj runtime.Object, _ fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Arguments[config.NodeResourcesAllocatableArgs](obj)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	pl := &Plugin{sign: -1}
	if args.Mode == config.Most {
		pl.sign = 1
	}
	for _, r := range args.Resources {
		pl.resources = append(pl.resources, weighted{noderes.NewResource(v1.ResourceName(r.Name)), *r.Weight})
	}
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *Plugin) Name() string { return Name }

// SignPod adds nothing to a pod's signature: the score does not depend on it.
func (pl *Plugin) SignPod(context.Context, *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return nil, nil
}

// Score returns the raw score of a node. There is no PreScore, as there is
// nothing to work out per pod.
func (pl *Plugin) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	var mean allocation.Mean
	for _, r := range pl.resources {
		mean.Add(r.Allocatable(node), r.weight)
	}
	return pl.sign * mean.Value(), nil
}

// ScoreExtensions returns the plugin itself, which normalises.
func (pl *Plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore spreads the raw scores over [0, 100].
func (pl *Plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	noderes.Normalize(scores)
	return nil
}
