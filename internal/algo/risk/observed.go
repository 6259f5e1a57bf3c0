package risk

import "math"

// cells is the number of cells of equal width in which Observed counts values.
const cells = 200

// Observed accumulates values of a utilization: their mean, their deviation and a histogram. The zero
// value is ready to use. Its size is constant.
type Observed struct {
	mean, squares float64
	count         uint32
	// counts has the number of values per cell: cell i those in ((i-1)/cells, i/cells], cell 0 those
	// that are 0.
	counts [cells + 1]uint32
}

// roundingTolerance is how far above the end of its cell a value may be because of rounding.
const roundingTolerance = 1e-9

// Add adds a value. Values outside [0, 1] count as the nearer end.
func (o *Observed) Add(u float64) {
	u = min(max(u, 0), 1)
	o.count++
	// Welford's algorithm: the sum of squared distances from the mean, without cancellation.
	change := u - o.mean
	o.mean += change / float64(o.count)
	o.squares += change * (u - o.mean)
	o.counts[min(max(int(math.Ceil(u*cells-roundingTolerance)), 0), cells)]++
}

// Count returns the number of values.
func (o *Observed) Count() int { return int(o.count) }

// Load returns the mean and the standard deviation of all values.
func (o *Observed) Load() Load {
	if o.count == 0 {
		return Load{}
	}
	return Load{Mean: o.mean, StdDev: math.Sqrt(max(o.squares, 0) / float64(o.count))}
}

// Histogram returns the fraction of the values in each of a number of bins of equal width, which must
// divide 200. A value between two bins belongs to the lower one.
func (o *Observed) Histogram(bins int) []float64 {
	fractions := make([]float64, bins)
	for i, count := range o.counts {
		bin := max(i-1, 0) * bins / cells
		fractions[bin] += float64(count) / max(float64(o.count), 1)
	}
	return fractions
}

// stepMargin is the distance from a step within which values are not compared with it: rounding would
// decide on which side of the step a value is.
const stepMargin = 1e-3

// Distance returns the Kolmogorov-Smirnov statistic of the values and a distribution: the largest
// difference between the fraction of the values that are at most x and the probability of that, in
// [0, 1]. It is evaluated at multiples of 1/200; differences between two of them are not found.
func (o *Observed) Distance(d Distribution) float64 {
	if o.count == 0 {
		return 0
	}
	var cumulative uint64
	var distance float64
	for i, count := range o.counts {
		cumulative += uint64(count)
		x := float64(i) / cells
		if d.shape == step && math.Abs(x-d.mean) < stepMargin {
			continue
		}
		// In a range without values the difference is largest at one of its ends.
		if d.shape == beta && count == 0 && i < cells && o.counts[i+1] == 0 {
			continue
		}
		distance = max(distance, math.Abs(float64(cumulative)/float64(o.count)-d.CDF(x)))
	}
	return distance
}
