package predictedutilization

import (
	"math"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
)

// terms are the terms of the score of a node with the pending pod, at most 100.
type terms struct {
	// utilization is the score of u = predicted peak / allocatable for the resource with the highest ratio, below 0 if u is above 1:
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

const (
	// pointUnits is the number of units of a raw score in a point of a term.
	pointUnits = 1000
	// maxUtilization bounds raw scores.
	maxUtilization = 1e6
)

// rawScore returns the weighted mean of the terms in units.
func (w *termWeights) rawScore(t terms) int64 {
	sum := w.utilization*t.utilization + w.least*float64(t.least) + w.balanced*float64(t.balanced)
	return int64(math.Round(pointUnits * sum / (w.utilization + w.least + w.balanced)))
}

// stretch is the number of scores of a point of difference from the best node, as a fraction: with weight 3, a point counts as much as with
// weight 7 without stretching, and the scores are as fine as possible while a node can lose more by the score than by a soft constraint of
// an in-tree plugin, whose weights are at most 3.
const stretchNumerator, stretchDenominator = 7, 3

// normalize replaces the raw scores of nodes with
//
//	100 - stretch x difference from the highest raw score, at least 0, rounded down
//
// so that only nodes with the highest raw score have 100.
func normalize(nodes fwk.NodeScoreList) {
	best := int64(math.MinInt64)
	for i := range nodes {
		best = max(best, nodes[i].Score)
	}
	const unit = stretchDenominator * pointUnits
	for i := range nodes {
		lost := (stretchNumerator*(best-nodes[i].Score) + unit - 1) / unit
		nodes[i].Score = max(cache.MaxScore-lost, 0)
	}
}

// countsUtilization reports whether the term of the utilization counts. Before anything was measured, it would be a guess by requests:
// the other terms count alone. With the built-in profile, they rank nodes as the default profile does.
func (pl *plugin) countsUtilization(c *cycleData) bool {
	return c.model.IsMeasured() || pl.weights.least+pl.weights.balanced == 0
}

// terms returns the terms of a node that have a weight and count.
func (pl *plugin) terms(c *cycleData, node *nodeUse) (t terms) {
	if pl.weights.utilization > 0 && pl.countsUtilization(c) {
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
	if !(u < maxUtilization) { // or not a number
		u = maxUtilization
	}
	switch {
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
