package noderes

import (
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/allocation"
)

// Normalize scales raw scores linearly to [0, 100], the lowest to 0 and the highest to 100. If all
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
		scores[i].Score = allocation.Scale(scores[i].Score, lowest, highest)
	}
}
