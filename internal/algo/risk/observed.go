package risk

import "math"

// cells is how many parts of equal width utilization is counted in.
const cells = 200

// Observed is what has been seen of a utilization: its mean and deviation, and how
// often it was where. The zero value has seen nothing. Its size does not grow with
// what is seen.
type Observed struct {
	mean, squares float64
	seen          uint32
	// counts of values: cell i has those above (i-1)/cells and up to i/cells, the
	// first those that are 0.
	counts [cells + 1]uint32
}

// edge is how far above the end of its cell a value may be by rounding.
const edge = 1e-9

// Add takes a value in. Values outside [0, 1] count as the nearer end.
func (o *Observed) Add(u float64) {
	u = min(max(u, 0), 1)
	o.seen++
	// Welford: the sum of squares of distances to the mean, without cancellation.
	change := u - o.mean
	o.mean += change / float64(o.seen)
	o.squares += change * (u - o.mean)
	o.counts[min(max(int(math.Ceil(u*cells-edge)), 0), cells)]++
}

// Seen returns how many values there are.
func (o *Observed) Seen() int { return int(o.seen) }

// Load returns the mean and the deviation of all values.
func (o *Observed) Load() Load {
	if o.seen == 0 {
		return Load{}
	}
	return Load{Mean: o.mean, StdDev: math.Sqrt(max(o.squares, 0) / float64(o.seen))}
}

// Shares returns the parts of all values in so many bins of equal width, a divisor
// of 200. Values between two bins are in the lower one.
func (o *Observed) Shares(bins int) []float64 {
	shares := make([]float64, bins)
	for i, count := range o.counts {
		bin := max(i-1, 0) * bins / cells
		shares[bin] += float64(count) / max(float64(o.seen), 1)
	}
	return shares
}

// blur is how near a step no value is compared with it: which side of it rounding
// has put the value would decide.
const blur = 1e-3

// Distance returns how far what was seen is from a distribution: the largest
// difference between the part of the values that are at most x and the probability
// of it, in [0, 1] (the statistic of Kolmogorov and Smirnov). It is looked for at
// every two-hundredth, so that what happens between two of them is not seen.
func (o *Observed) Distance(d Distribution) float64 {
	if o.seen == 0 {
		return 0
	}
	var atMost uint64
	var farthest float64
	for i, count := range o.counts {
		atMost += uint64(count)
		x := float64(i) / cells
		if d.shape == step && math.Abs(x-d.mean) < blur {
			continue
		}
		// Where nothing was seen, the difference is largest at one of the ends.
		if d.shape == beta && count == 0 && i < cells && o.counts[i+1] == 0 {
			continue
		}
		farthest = max(farthest, math.Abs(float64(atMost)/float64(o.seen)-d.AtMost(x)))
	}
	return farthest
}

// Shares returns the probabilities of bins of equal width, as Observed.Shares
// counts them.
func (d Distribution) Shares(bins int) []float64 {
	shares := make([]float64, bins)
	var below float64
	for i := range shares {
		atMost := d.AtMost(float64(i+1) / float64(bins))
		shares[i] = max(atMost-below, 0)
		below = atMost
	}
	return shares
}

// Parameters returns alpha and beta, both 0 of a load that does not vary or varies
// as much as one of its mean can: these are no beta distributions.
func (d Distribution) Parameters() (alpha, beta float64) { return d.alpha, d.beta }
