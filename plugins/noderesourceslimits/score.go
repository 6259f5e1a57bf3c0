package noderesourceslimits

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
)

// limitedResource is a resource with its weight and the limit that unbounded pods count with; 0 is
// the whole node.
type limitedResource struct {
	resources.Resource
	weight, defaultLimit int64
}

// score returns the raw score of a node with the pending pod: the sum of the headrooms of the resources.
func score(limited []limitedResource, node fwk.NodeInfo, sums *resources.Sums, c *cycleData) int64 {
	raw := int64(0)
	for i := range limited {
		r := &limited[i]
		allocatable := cache.Allocatable(r.Resource, node)
		sum := sums.Get(r.Resource)
		if allocatable == 0 {
			of := c.devices.Of(r.Resource, node.Node())
			allocatable, sum = of.Devices, resources.Sum{Limit: of.Allocated}
		}
		sum.Add(c.pending.Get(r.Resource))
		raw = resources.Add(raw, headroom(allocatable, sum.LimitWithDefault(r.defaultLimit, allocatable), r.weight))
	}
	return raw
}

// headroom returns the allocatable amount that limits leave free, in percent of the allocatable
// amount and times weight:
//
//	weight x (allocatable - limits) x 100 / allocatable
//
// truncated toward zero. It is negative if the limits exceed the allocatable amount, and 0 if
// nothing is allocatable: a resource that a node lacks does not change the node's score.
func headroom(allocatable, limits, weight int64) int64 {
	if allocatable <= 0 {
		return 0
	}
	percent := resources.Multiply(weight, cache.MaxScore)
	if limits > allocatable {
		return -resources.MulDiv(limits-allocatable, percent, allocatable)
	}
	return resources.MulDiv(allocatable-limits, percent, allocatable)
}
