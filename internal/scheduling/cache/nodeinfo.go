package cache

import (
	"math/bits"

	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Allocatable returns the allocatable amount of a node, 0 if it lacks the resource.
func Allocatable(r resources.Resource, node fwk.NodeInfo) int64 {
	allocatable := node.GetAllocatable()
	amount := int64(0)
	switch r.Index() {
	case resources.CPU:
		amount = allocatable.GetMilliCPU()
	case resources.Memory:
		amount = allocatable.GetMemory()
	case resources.EphemeralStorage:
		amount = allocatable.GetEphemeralStorage()
	case resources.Pods:
		amount = int64(allocatable.GetAllowedPodNumber())
	case resources.Extended:
		amount = allocatable.GetScalarResources()[r.Name()]
	}
	return max(amount, 0)
}

// Normalize scales raw scores linearly to [0, 100], the lowest to 0 and the highest to 100, rounded down. If all
// scores are equal, they become 0.
func Normalize(scores fwk.NodeScoreList) {
	if len(scores) == 0 {
		return
	}
	lowest, highest := scores[0].Score, scores[0].Score
	for _, s := range scores {
		lowest, highest = min(lowest, s.Score), max(highest, s.Score)
	}
	for i := range scores {
		scores[i].Score = scale(scores[i].Score, lowest, highest)
	}
}

// MaxScore is the highest score of a node. Kubernetes 1.35 has it under the older name only.
const MaxScore = fwk.MaxNodeScore //nolint:staticcheck // as above

// scale maps raw linearly from [lowest, highest] to [0, 100], rounded down. It returns 0 if lowest equals highest.
func scale(raw, lowest, highest int64) int64 {
	if highest == lowest {
		return 0
	}
	// Differences in two's complement are correct as uint64 even if the signed ones overflow.
	distance, span := uint64(raw)-uint64(lowest), uint64(highest)-uint64(lowest)
	hi, lo := bits.Mul64(distance, uint64(MaxScore))
	score, _ := bits.Div64(hi, lo, span)
	return int64(score)
}
