package risk

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// Load is the utilization of one resource over a time window: its mean and its standard deviation,
// as fractions (1 is fully used).
type Load struct {
	Mean   float64
	StdDev float64
}

// Valid reports whether mean and deviation are finite and not negative.
func (l Load) Valid() bool {
	return l.Mean >= 0 && l.StdDev >= 0 && !math.IsInf(l.Mean, 1) && !math.IsInf(l.StdDev, 1)
}

// RelativeTo converts fractions of the whole machine into fractions of its allocatable amount, at
// most 1. If nothing is allocatable, the load is 1.
func (l Load) RelativeTo(machine, allocatable float64) Load {
	if allocatable <= 0 {
		return Load{Mean: 1}
	}
	ratio := max(machine, 0) / allocatable
	return Load{Mean: min(l.Mean*ratio, 1), StdDev: min(l.StdDev*ratio, 1)}
}

// shape is the family of a fitted distribution.
type shape uint8

const (
	// step is a constant load.
	step shape = iota
	// beta is a beta distribution.
	beta
	// twoPoint is a load of either 0 or 1: the largest variance possible for its mean.
	twoPoint
)

// The concentration alpha + beta of a fit shows how close it is to its two limit cases. Beyond these
// values the limit case replaces the beta distribution, whose parameters are no longer precise: above
// the first the deviation is less than 1e-5, below the second all but 1e-6 of the probability is at
// 0 and 1.
const (
	stepConcentration     = 1e10
	twoPointConcentration = 1e-6
)

// normalParameters bounds the smaller parameter of a beta distribution. Above it, the CDF of the normal distribution with
// the same mean and deviation is used: the two differ by less than 3e-4, and the continued fraction of the beta distribution
// no longer converges.
const normalParameters = 3e5

// distribution is a distribution of utilization on [0, 1]. The zero value is a constant load of 0.
type distribution struct {
	shape       shape
	mean        float64
	alpha, beta float64
}

// fitBeta returns the beta distribution with the mean of the load and its standard deviation times
// sqrt(window), by the method of moments:
//
//	concentration = mean (1 - mean) / variance - 1
//	alpha = mean x concentration, beta = (1 - mean) x concentration
//
// Averages over a window hide the peaks within it; the factor restores the deviation of a window of
// that many independent samples. The variance is at most mean (1 - mean), the maximum for a
// distribution on [0, 1]. A load without deviation is a step at its mean. Values outside [0, 1] count
// as the nearer end, a window less than 1 as 1.
func fitBeta(l Load, window float64) distribution {
	mean := min(max(l.Mean, 0), 1)
	variance := l.StdDev * l.StdDev * max(window, 1)
	maxVariance := mean * (1 - mean)
	concentration := maxVariance/variance - 1
	switch {
	case !(variance > 0) || maxVariance == 0 || concentration > stepConcentration:
		return distribution{shape: step, mean: mean}
	case concentration < twoPointConcentration:
		return distribution{shape: twoPoint, mean: mean}
	}
	return distribution{shape: beta, mean: mean, alpha: mean * concentration, beta: (1 - mean) * concentration}
}

// CDF returns P(U <= x), for any x.
func (d distribution) CDF(x float64) float64 {
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
	case min(d.alpha, d.beta) > normalParameters:
		deviation := math.Sqrt(d.mean * (1 - d.mean) / (d.alpha + d.beta + 1))
		return math.Erfc((d.mean-x)/(deviation*math.Sqrt2)) / 2
	}
	return mathext.RegIncBeta(d.alpha, d.beta, x)
}

// overuse returns P(U > threshold | U <= bound): the probability that the load exceeds the threshold,
// given that the limits of the pods keep it within the bound. It is 1 if the load certainly exceeds
// the bound.
func (d distribution) overuse(threshold, bound float64) float64 {
	withinBound := d.CDF(bound)
	if withinBound <= 0 {
		return 1
	}
	return min(max(1-d.CDF(threshold)/withinBound, 0), 1)
}
