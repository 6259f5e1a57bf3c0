package predictedutilization

import (
	"hash/maphash"
	"math"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
)

// nodeResult is the part of a node's prediction that does not depend on the pending pod.
type nodeResult struct {
	// model and node identify, with the sums that the result is stored in, the state it is valid for.
	model       *predict.Model
	node        *v1.Node
	use         predict.NodeUse
	allocatable [predict.Resources]float64
	// positions are those of the workloads in use, which the first search among many computes.
	positions atomic.Pointer[map[predict.Key]int32]
}

// manyWorkloads is the number of workloads from which on a map is faster than a search.
const manyWorkloads = 32

// share returns the part of a workload in the use of the node, nil if it has no pod there.
func (n *nodeResult) share(workload predict.Key) *[predict.Resources]predict.Share {
	if len(n.use.Workloads) < manyWorkloads {
		return n.use.Share(workload)
	}
	positions := n.positions.Load()
	if positions == nil {
		all := make(map[predict.Key]int32, len(n.use.Workloads))
		for i, workload := range n.use.Workloads {
			all[workload] = int32(i)
		}
		positions = &all
		n.positions.Store(positions)
	}
	if position, ok := (*positions)[workload]; ok {
		return &n.use.Shares[position]
	}
	return nil
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
	pl.prepared.Prepare(model, func(sums *noderes.Sums, values *noderes.Values) bool {
		result := predictNode(model, sums.Node(), sums)
		pl.results.Set(sums, result)
		result.pack(values)
		return true
	})
}

// The packed values of a node: for each resource the mean, the variance, the limit and the allocatable amount, then the
// workloads on the node. Score needs the part of the pending pod's workload only if the node may have it.
const (
	packedResource  = 4
	packedWorkloads = packedResource * predict.Resources
)

// pack stores the result in the values.
func (n *nodeResult) pack(values *noderes.Values) {
	*values = noderes.Values{}
	for r := range n.use.Sums {
		sum, part := &n.use.Sums[r], values[packedResource*r:]
		part[0], part[1] = math.Float64bits(sum.Mean), math.Float64bits(sum.Variance)
		part[2], part[3] = math.Float64bits(sum.Limit), math.Float64bits(n.allocatable[r])
	}
	for _, workload := range n.use.Workloads {
		for i, bits := range workloadBitsOf(workload) {
			values[packedWorkloads+i] |= bits
		}
	}
}

func unpack(values *noderes.Values) (sums [predict.Resources]predict.Sum, allocatable [predict.Resources]float64) {
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
func (c *cycleData) mayHaveWorkload(values *noderes.Values) bool {
	if c.isAlone {
		return false
	}
	for i, bits := range c.bits {
		if values[packedWorkloads+i]&bits != bits {
			return false
		}
	}
	return true
}

// workloadBits is a Bloom filter of workloads: two of its bits are set for each.
type workloadBits [4]uint64

// bitSeed makes the bits of workloads differ between processes. Scores do not depend on them.
var bitSeed = maphash.MakeSeed()

// workloadBitsOf returns the bits of a workload.
func workloadBitsOf(workload predict.Key) workloadBits {
	hash := maphash.Comparable(bitSeed, workload)
	var bits workloadBits
	for range 2 {
		bit := uint8(hash)
		bits[bit/64] |= 1 << (bit % 64)
		hash >>= 8
	}
	return bits
}
