package predictedutilization

import (
	"hash/maphash"
	"math"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
)

// nodeResult is the part of a node's prediction that does not depend on the pending pod.
type nodeResult struct {
	// model and node identify, with the sums that the result is stored in, the state it is valid for.
	model       *predict.Model
	node        *v1.Node
	use         predict.NodeUse
	allocatable [predict.Resources]float64
}

// predictNode predicts the use of a node without the pending pod. It reads no NodeInfo, so that any goroutine may
// call it.
func predictNode(model *predict.Model, node *v1.Node, sums *noderes.Sums) *nodeResult {
	pods := make([]predict.Pod, sums.Len())
	for i := range pods {
		pods[i] = prediction.Declared(sums.Pod(i))
	}
	result := &nodeResult{model: model, node: node, use: model.Node(node.Name, pods)}
	for r, resource := range prediction.Predicted {
		result.allocatable[r] = float64(resource.AllocatableOf(node))
	}
	return result
}

// prepare predicts the use of all nodes with a model that Score does not use yet. It is called by the goroutine that
// reads load.
func (pl *plugin) prepare(model *predict.Model) {
	pl.prepared.Prepare(model, func(sums *noderes.Sums, values []uint64) bool {
		result := predictNode(model, sums.Node(), sums)
		pl.results.Set(sums, result)
		result.pack((*packedValues)(values))
		return true
	})
}

// The packed values of a node: for each resource the mean, the variance, the limit and the allocatable amount, then the
// workloads on the node. Score needs the part of the pending pod's workload only if the node may have it.
const (
	packedResource  = 4
	packedWorkloads = packedResource * predict.Resources
	packedLength    = packedWorkloads + workloadWords
)

type packedValues [packedLength]uint64

// pack stores the result in the values.
func (n *nodeResult) pack(values *packedValues) {
	*values = packedValues{}
	for r := range n.use.Sums {
		sum, part := &n.use.Sums[r], values[packedResource*r:]
		part[0], part[1] = math.Float64bits(sum.Mean), math.Float64bits(sum.Variance)
		part[2], part[3] = math.Float64bits(sum.Limit), math.Float64bits(n.allocatable[r])
	}
	for _, workload := range n.use.Workloads {
		for _, bit := range workloadBitsOf(workload) {
			values[packedWorkloads+bit/64] |= 1 << (bit % 64)
		}
	}
}

func unpack(values *packedValues) (sums [predict.Resources]predict.Sum, allocatable [predict.Resources]float64) {
	for r := range sums {
		part := values[packedResource*r:]
		sums[r] = predict.Sum{
			Mean: math.Float64frombits(part[0]), Variance: math.Float64frombits(part[1]), Limit: math.Float64frombits(part[2]),
		}
		allocatable[r] = math.Float64frombits(part[3])
	}
	return sums, allocatable
}

// mayHaveWorkload reports whether another pod of the pending pod's workload may be on the node. A pod without a
// controller is its own workload.
func (c *cycleData) mayHaveWorkload(values *packedValues) bool {
	if c.isAlone {
		return false
	}
	for _, bit := range c.bits {
		if values[packedWorkloads+bit/64]&(1<<(bit%64)) == 0 {
			return false
		}
	}
	return true
}

// workloadWords is the number of words of the Bloom filter of a node's workloads: with 30 of them, 1.4 of 1,000 other
// workloads seem to be on the node, with 110 of them 42.
const workloadWords = 12

// workloadBits are the bits of a workload in the filter.
type workloadBits [3]uint16

// bitSeed makes the bits of workloads differ between processes. Scores do not depend on them.
var bitSeed = maphash.MakeSeed()

// workloadBitsOf returns the bits of a workload.
func workloadBitsOf(workload resources.WorkloadKey) workloadBits {
	hash := maphash.Comparable(bitSeed, workload)
	var bits workloadBits
	for i := range bits {
		// 16 bits of the hash, scaled to the length of the filter.
		bits[i] = uint16(hash & 0xffff * (64 * workloadWords) >> 16)
		hash >>= 16
	}
	return bits
}
