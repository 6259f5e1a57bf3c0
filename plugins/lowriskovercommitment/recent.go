package lowriskovercommitment

import (
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// amounts are amounts of the two measured resources, in millicores and bytes.
type amounts struct{ cpu, memory float64 }

// unmeasured returns the expected use of pods that a reading of load does not include: their requests,
// or kube-scheduler's default for containers without requests. Load is an average over a window; of a
// pod that arrived during the window, the missing fraction is added.
func unmeasured(sums *noderes.Sums, reading load.Reading) amounts {
	var sum amounts
	sums.Pods(func(pod *v1.Pod, cpu, memory int64) {
		if fraction := noderes.MissingFraction(pod, reading.Time, reading.Window); fraction > 0 {
			sum.cpu += fraction * float64(cpu)
			sum.memory += fraction * float64(memory)
		}
	})
	return sum
}
