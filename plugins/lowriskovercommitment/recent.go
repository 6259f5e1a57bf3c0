package lowriskovercommitment

import (
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
	sums.Pods(func(arrival noderes.Arrival, cpu, memory int64) {
		if fraction := arrival.MissingFraction(reading.Time, reading.Window); fraction > 0 {
			sum.cpu += fraction * float64(cpu)
			sum.memory += fraction * float64(memory)
		}
	})
	return sum
}
