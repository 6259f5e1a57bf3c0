package predictedutilization

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
)

// terms are the terms of the score of a node with the pending pod, in [0, 100].
type terms struct {
	// utilization is the score of u = min(1, predicted peak / allocatable) for the resource with the highest ratio:
	//
	//	Spread: 100 x (1 - u)
	//	Pack:   50 + 50 u/target up to the target, 50 x (1 - u)/(1 - target) above
	utilization float64
	// least and balanced are the scores of NodeResourcesFit with its default arguments, and of NodeResourcesBalancedAllocation.
	least, balanced int64
}

// termWeights are the weights of the terms.
type termWeights struct{ utilization, least, balanced float64 }

func termWeightsOf(w *config.TermWeights) termWeights {
	return termWeights{float64(*w.Utilization), float64(*w.LeastAllocated), float64(*w.BalancedAllocation)}
}

// score returns the weighted mean of the terms.
func (w *termWeights) score(t terms) int64 {
	sum := w.utilization*t.utilization + w.least*float64(t.least) + w.balanced*float64(t.balanced)
	return int64(math.Round(sum / (w.utilization + w.least + w.balanced)))
}

// terms returns the terms of a node that have a weight.
func (pl *plugin) terms(c *cycleData, node *nodeUse) (t terms) {
	if pl.weights.utilization > 0 {
		t.utilization = pl.utilizationTerm(utilization(c, node, pl.deviations))
	}
	if pl.weights.least > 0 {
		t.least = leastAllocated(&node.requests, &c.requests, node.allocatableCPU, node.allocatableMemory)
	}
	if pl.weights.balanced > 0 {
		t.balanced = balancedAllocation(&node.requests, &c.requests, node.allocatableCPU, node.allocatableMemory)
	}
	return t
}

// utilization returns the predicted peak over allocatable for the resource with the highest ratio. The peak is deviations standard
// deviations above the predicted mean.
func utilization(c *cycleData, node *nodeUse, deviations float64) float64 {
	share := node.Share(c.workload, c.bit)
	highest := 0.0
	for r, allocatable := range [predict.Resources]int64{node.allocatableCPU, node.allocatableMemory} {
		if allocatable > 0 {
			peak := c.model.Peak(&node.Sums[r], share, &c.expected[r], r, deviations)
			highest = max(highest, peak/float64(allocatable))
		}
	}
	return highest
}

// utilizationTerm returns the term of a utilization.
func (pl *plugin) utilizationTerm(u float64) float64 {
	const half = float64(cache.MaxScore) / 2
	switch {
	case !(u < 1): // or not a number: the scheduler fails pods whose scores are out of range
		return 0
	case pl.target == 0:
		return float64(cache.MaxScore) * (1 - u)
	case u <= pl.target:
		return half + half*u/pl.target
	}
	return half * (1 - u) / (1 - pl.target)
}

// leastAllocated returns the mean, rounded down, over the allocatable resources, of
//
//	(allocatable - assumed requests) x 100 / allocatable, at least 0, rounded down
func leastAllocated(node, pod *cache.Requests, cpu, memory int64) int64 {
	sum, n := int64(0), int64(0)
	add := func(requested, allocatable int64) {
		if allocatable == 0 {
			return
		}
		n++
		if requested <= allocatable {
			sum += (allocatable - requested) * cache.MaxScore / allocatable
		}
	}
	add(node.AssumedCPU+pod.AssumedCPU, cpu)
	add(node.AssumedMemory+pod.AssumedMemory, memory)
	return sum / max(n, 1)
}

// balancedAllocation returns, with balance = 100 x (1 - |fraction of CPU - fraction of memory| / 2), rounded down,
//
//	50 + (50 + balance with the pod - balance without it) / 2
//
// and 0 for a pod without requests.
func balancedAllocation(node, pod *cache.Requests, cpu, memory int64) int64 {
	if pod.CPU == 0 && pod.Memory == 0 {
		return 0
	}
	balance := func(requestedCPU, requestedMemory int64) int64 {
		if cpu == 0 || memory == 0 {
			return cache.MaxScore
		}
		difference := min(float64(requestedCPU)/float64(cpu), 1) - min(float64(requestedMemory)/float64(memory), 1)
		return int64((1 - math.Abs(difference/2)) * float64(cache.MaxScore))
	}
	after, before := balance(node.CPU+pod.CPU, node.Memory+pod.Memory), balance(node.CPU, node.Memory)
	return cache.MaxScore/2 + (cache.MaxScore/2+after-before)/2
}

// nodeUse is the use of a node without the pending pod: predicted, and requested. Allocatable amounts are in millicores and bytes.
type nodeUse struct {
	predict.NodeUse
	allocatableCPU, allocatableMemory int64
	requests                          cache.Requests
}

// predictNode predicts the use of a node without the pending pod.
func predictNode(sums *cache.NodeSums, model *predict.Model) nodeUse {
	pods := make([]predict.Declared, sums.Len())
	for i := range pods {
		pods[i] = prediction.Declared(sums.Pod(i))
	}
	node := sums.Node()
	return nodeUse{
		model.Node(node.Name, pods),
		prediction.Predicted[predict.CPU].AllocatableOf(node),
		prediction.Predicted[predict.Memory].AllocatableOf(node),
		sums.Requests(),
	}
}
