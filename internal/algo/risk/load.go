package risk

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Load is the utilization of one resource over a window of time: its mean and
// its standard deviation, as fractions (1 is fully used).
type Load struct {
	Mean   float64
	StdDev float64
}

// Valid reports whether the load can be reckoned with: both figures are finite
// and neither is negative.
func (l Load) Valid() bool {
	return l.Mean >= 0 && l.StdDev >= 0 && !math.IsInf(l.Mean, 1) && !math.IsInf(l.StdDev, 1)
}

// OfAllocatable turns fractions of the whole machine into fractions of what it
// lets pods have: u x machine / allocatable, at most 1. Where nothing is
// allocatable, any load is a full one.
func (l Load) OfAllocatable(machine, allocatable float64) Load {
	if allocatable <= 0 {
		return Load{Mean: 1}
	}
	ratio := max(machine, 0) / allocatable
	return Load{Mean: min(l.Mean*ratio, 1), StdDev: min(l.StdDev*ratio, 1)}
}

// shape is the family of a fitted distribution.
type shape uint8

const (
	// step: the load is its mean, always.
	step shape = iota
	// beta: a beta distribution.
	beta
	// twoPoint: the load is either nothing or everything, the most that a load
	// of its mean can vary.
	twoPoint
)

// The concentration alpha + beta of a fit tells how near it is to its two
// limits. Past these bounds the limits are used in place of a distribution
// whose parameters have lost their digits: above the first the deviation is
// under a hundred-thousandth, below the second all but a millionth of the
// probability sits at the two ends.
const (
	stepConcentration     = 1e10
	twoPointConcentration = 1e-6
)

// Distribution is a distribution of utilization on [0, 1]. The zero value is a
// load that is always 0.
type Distribution struct {
	shape       shape
	mean        float64
	alpha, beta float64
}

// Fit returns the beta distribution that has the mean of the load and its
// standard deviation times sqrt(window), by the method of moments:
//
//	concentration = mean (1 - mean) / variance - 1
//	alpha = mean x concentration, beta = (1 - mean) x concentration
//
// Averages over a window hide the peaks inside it; the factor gives back the
// spread they lost, for a window of that many independent samples. The variance
// is bounded by mean (1 - mean), the most that a distribution of that mean on
// [0, 1] can have. A load that does not vary is a step at its mean.
// Figures outside [0, 1] count as the nearer end, a window under 1 as 1.
func Fit(l Load, window float64) Distribution {
	mean := min(max(l.Mean, 0), 1)
	variance := l.StdDev * l.StdDev * max(window, 1)
	most := mean * (1 - mean)
	concentration := most/variance - 1
	switch {
	case !(variance > 0) || most == 0 || concentration > stepConcentration:
		return Distribution{shape: step, mean: mean}
	case concentration < twoPointConcentration:
		return Distribution{shape: twoPoint, mean: mean}
	}
	return Distribution{shape: beta, mean: mean, alpha: mean * concentration, beta: (1 - mean) * concentration}
}

// AtMost returns P(U <= x), for any x.
func (d Distribution) AtMost(x float64) float64 {
	switch {
	case x >= 1:
		return 1
	case x < 0:
		return 0
	case d.shape == step:
		if x < d.mean {
			return 0
		}
		return 1
	case d.shape == twoPoint:
		return 1 - d.mean
	case x == 0:
		return 0
	}
	return mathext.RegIncBeta(d.alpha, d.beta, x)
}

// Overuse returns P(U > threshold | U <= bound): how probable it is that the
// load is over the threshold, given that the limits of the pods hold it at or
// under the bound. It is 1 where the load is certainly over the bound.
func (d Distribution) Overuse(threshold, bound float64) float64 {
	atMostBound := d.AtMost(bound)
	if atMostBound <= 0 {
		return 1
	}
	return min(max(1-d.AtMost(threshold)/atMostBound, 0), 1)
}
