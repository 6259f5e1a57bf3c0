package result

import "math"

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
