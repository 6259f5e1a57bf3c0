// Package noderesourceslimits scores nodes by the amounts that the limits of their pods leave free, so
// that limits are spread evenly and nodes are oversubscribed as little as possible:
//
//	raw = sum over the resources of weight x (allocatable - limits) x 100 / allocatable
//
// The limits are those of the pods on the node and of the pending pod. Raw scores, which are negative
// for oversubscribed nodes, are scaled to [0, 100] between the lowest and the highest of the
// candidates. A resource that a node lacks contributes nothing.
package noderesourceslimits

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/allocation"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
)

// Name is the name of the plugin in the scheduler configuration.
const Name = "NodeResourcesLimits"

// cycleKey is the key of the plugin's data in the cycle state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// plugin implements the score plugin. It is immutable.
type plugin struct {
	// Scorer implements PreScore and Score by the method score.
	noderes.Scorer[noderes.Pending]

	resources []limitedResource
	sums      *noderes.Cache
	// amounts has two values per resource and node: the allocatable amount and the limits of its pods.
	amounts noderes.Array
}

// limitedResource is a resource with its weight and the limit that unbounded pods count with; 0 is
// the whole node.
type limitedResource struct {
	resources.Resource
	weight, defaultLimit int64
}

var (
	_ fwk.PreScorePlugin = &plugin{}
	_ fwk.ScorePlugin    = &plugin{}
	_ fwk.SignPlugin     = &plugin{}
)

// New returns the plugin. obj is a *config.NodeResourcesLimitsArgs, or nil for the defaults.
func New(_ context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Arguments[config.NodeResourcesLimitsArgs](obj)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	sums := shared.Of(handle).Sums
	pl := &plugin{sums: sums, amounts: noderes.NewArray(sums, 2*min(len(args.Resources), maxResources))}
	pl.Scorer = noderes.NewScorer(cycleKey, sums, handle, func(pending *noderes.Pending) noderes.Pending { return *pending }, pl.score)
	for _, r := range args.Resources {
		resource := resources.NewResource(v1.ResourceName(r.Name))
		pl.resources = append(pl.resources, limitedResource{resource, *r.Weight, resource.Amount(args.DefaultLimits[r.Name])})
	}
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds requests and limits to the signature of a pod.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return noderes.Sign(pod), nil
}

// maxResources is the number of resources whose amounts are kept.
const maxResources = 6

// score returns the raw score of the node at a place.
func (pl *plugin) score(pending *noderes.Pending, place noderes.Place, node fwk.NodeInfo) int64 {
	if len(pl.resources) > maxResources {
		return pl.scoreManyResources(node, pl.sums.SumsAt(place, node, pending.InGroup), pending)
	}
	var all [2 * maxResources]uint64
	amounts := all[:2*len(pl.resources)]
	if !pl.amounts.Load(place, node, amounts) {
		sums := pl.sums.SumsAt(place, node, pending.InGroup)
		for i := range pl.resources {
			allocatable, limits := pl.resources[i].amountsOf(node, sums)
			amounts[2*i], amounts[2*i+1] = uint64(allocatable), uint64(limits)
		}
		pl.amounts.Store(place, sums, amounts)
	}
	raw := int64(0)
	for i := range pl.resources {
		raw = resources.Add(raw, pl.resources[i].score(int64(amounts[2*i]), int64(amounts[2*i+1]), pending))
	}
	return raw
}

// scoreManyResources returns the raw score of a node for more resources than are kept.
func (pl *plugin) scoreManyResources(node fwk.NodeInfo, sums *noderes.Sums, pending *noderes.Pending) int64 {
	raw := int64(0)
	for i := range pl.resources {
		allocatable, limits := pl.resources[i].amountsOf(node, sums)
		raw = resources.Add(raw, pl.resources[i].score(allocatable, limits, pending))
	}
	return raw
}

// amountsOf returns the allocatable amount of a node and the limits of its pods.
func (r *limitedResource) amountsOf(node fwk.NodeInfo, sums *noderes.Sums) (allocatable, limits int64) {
	sum := sums.Get(r.Resource)
	allocatable = noderes.Allocatable(r.Resource, node)
	return allocatable, sum.LimitWithDefault(r.defaultLimit, allocatable)
}

// score returns the score of a node for one resource, with the pending pod. Amounts are not negative
// and saturate, so that their sum does not depend on the order.
func (r *limitedResource) score(allocatable, limits int64, pending *noderes.Pending) int64 {
	var pod noderes.Sum
	pod.Add(pending.Get(r.Resource))
	return allocation.Headroom(allocatable, resources.Add(limits, pod.LimitWithDefault(r.defaultLimit, allocatable)), r.weight)
}

// ScoreExtensions returns the plugin, which normalizes its scores.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore scales the raw scores to [0, 100].
func (pl *plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, scores fwk.NodeScoreList) *fwk.Status {
	noderes.Normalize(scores)
	return nil
}
