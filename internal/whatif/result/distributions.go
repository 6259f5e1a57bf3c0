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

const (
	// loadBins is the number of bins per unit of load, maxLoad the load of the last bin.
	loadBins = 1000
	maxLoad  = 2
)

// loads is the distribution of the load of nodes over nodes and steps.
type loads struct {
	bins  [maxLoad*loadBins + 1]int64
	count int64
	sum   float64
	max   float64
}

// add adds a load, as a fraction of allocatable.
func (l *loads) add(load float64) {
	l.bins[int(min(max(load, 0), maxLoad)*loadBins+0.5)]++
	l.count++
	l.sum += load
	l.max = max(l.max, load)
}

// distribution returns the distribution. Quantiles have the resolution of the bins.
func (l *loads) distribution() Distribution {
	if l.count == 0 {
		return Distribution{}
	}
	return Distribution{
		Mean: roundLoad(l.sum / float64(l.count)), P50: l.quantile(0.5), P95: l.quantile(0.95), Max: roundLoad(l.max),
	}
}

// quantile returns the smallest load that a fraction of the values does not exceed.
func (l *loads) quantile(fraction float64) float64 {
	rest := fraction * float64(l.count)
	for i, n := range l.bins {
		if rest -= float64(n); rest <= 0 {
			return float64(i) / loadBins
		}
	}
	return maxLoad
}

// roundLoad rounds a load to the resolution of the bins.
func roundLoad(v float64) float64 { return math.Round(v*loadBins) / loadBins }
