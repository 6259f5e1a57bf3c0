package result

import (
	"maps"
	"math"
	"slices"
	"time"
)

// Waits counts pods by the seconds that they waited for a node.
type Waits map[int64]int64

// Pods returns the number of pods.
func (w Waits) Pods() (sum int64) {
	for _, n := range w {
		sum += n
	}
	return sum
}

// longer returns the number of pods that waited longer than some seconds.
func (w Waits) longer(seconds int64) (sum int64) {
	for waited, n := range w {
		if waited > seconds {
			sum += n
		}
	}
	return sum
}

// Percentile returns the shortest time within which a percentage of the pods has a node, 0 without pods.
func (w Waits) Percentile(percent float64) time.Duration {
	// Rounding errors of the product are less than a millionth of a pod, and percentages have at most three decimals.
	required := int64(math.Ceil(percent*float64(w.Pods())/100 - 1e-6))
	for _, seconds := range slices.Sorted(maps.Keys(w)) {
		if required -= w[seconds]; required <= 0 {
			return time.Duration(seconds) * time.Second
		}
	}
	return 0
}

// Add adds the pods of other waits.
func (w Waits) Add(other Waits) {
	for seconds, n := range other {
		w[seconds] += n
	}
}

// distribution returns the distribution of the waits.
func (w Waits) distribution() Distribution {
	values := make([]float64, 0, w.Pods())
	for seconds, n := range w {
		values = append(values, slices.Repeat([]float64{float64(seconds)}, int(n))...)
	}
	return describe(values)
}
