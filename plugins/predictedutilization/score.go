package predictedutilization

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
)

// score returns the score of a node with the pending pod:
//
//	round(100 x (1 - min(1, predicted peak / allocatable)))
//
// for the resource with the highest ratio. The peak is deviations standard deviations above the predicted mean.
func score(c *cycleData, node *nodeUse, deviations float64) int64 {
	share := node.Share(c.workload)
	utilization := 0.0
	for r := range node.Sums {
		if node.allocatable[r] > 0 {
			peak := c.model.Peak(&node.Sums[r], share, &c.expected[r], r, deviations)
			utilization = max(utilization, peak/node.allocatable[r])
		}
	}
	if !(utilization < 1) { // or not a number: the scheduler fails pods whose scores are out of range
		return 0
	}
	return int64(math.Round(float64(cache.MaxScore) * (1 - utilization)))
}

// nodeUse is the predicted use of a node without the pending pod, with its allocatable amounts in millicores and bytes.
type nodeUse struct {
	predict.NodeUse
	allocatable [predict.Resources]float64
}

// predictNode predicts the use of a node without the pending pod.
func predictNode(sums *cache.NodeSums, model *predict.Model) nodeUse {
	pods := make([]predict.Declared, sums.Len())
	for i := range pods {
		pods[i] = prediction.Declared(sums.Pod(i))
	}
	node := nodeUse{NodeUse: model.Node(sums.Node().Name, pods)}
	for r, resource := range prediction.Predicted {
		node.allocatable[r] = float64(resource.AllocatableOf(sums.Node()))
	}
	return node
}
