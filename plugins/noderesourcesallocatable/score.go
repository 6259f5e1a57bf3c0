package noderesourcesallocatable

import (
	"math/bits"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
)

// weightedResource is a resource with its weight in the score.
type weightedResource struct {
	resources.Resource
	weight int64
}

// score returns the weighted mean of the allocatable amounts of a node, rounded down:
//
//	sum of weight x allocatable / sum of weights
//
// Extended resources that the node does not list count with its devices.
func score(weighted []weightedResource, node fwk.NodeInfo, counts *shared.Counts) int64 {
	var m mean
	for _, r := range weighted {
		allocatable := cache.Allocatable(r.Resource, node)
		if allocatable == 0 {
			allocatable = counts.Of(r.Resource, node.Node()).Devices
		}
		m.add(allocatable, r.weight)
	}
	return m.value()
}

// mean is a weighted mean of amounts that are not negative. Its products have 128 bits.
type mean struct {
	high, low uint64
	weights   uint64
}

func (m *mean) add(amount, weight int64) {
	high, low := bits.Mul64(uint64(amount), uint64(weight))
	var carry uint64
	m.low, carry = bits.Add64(m.low, low, 0)
	m.high, _ = bits.Add64(m.high, high, carry)
	m.weights += uint64(weight)
}

// value returns the mean, 0 without weights. It is at most the largest amount, so that the quotient fits.
func (m *mean) value() int64 {
	if m.weights == 0 {
		return 0
	}
	quotient, _ := bits.Div64(m.high, m.low, m.weights)
	return int64(quotient)
}
