// Package bootstrap says how sure a difference between two series of runs is,
// that were made with the same seeds: run i of the one and run i of the other had
// the same pods and the same use, so that their difference has only what the
// profiles did.
//
// The interval is for the mean of the differences: the bias-corrected and
// accelerated bootstrap (BCa; Efron, Better Bootstrap Confidence Intervals, 1987)
// with the levels widened for few runs (Hesterberg, What Teachers Should Know
// About the Bootstrap, 2015, "expanded percentile"): bootstrap intervals are too
// narrow by sqrt((n-1)/n) and by what a t quantile is over a normal one, which at
// ten runs makes 95 % about 90. With both, of normal differences an interval of
// 95 % covers the truth about as often as it says, from five runs on; of heavily
// skewed ones less often, as any method does with so few.
package bootstrap

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// resampleCount is how many are drawn. The ends of the interval then move by about a
// hundredth of its width from one seed to another.
const resampleCount = 10_000

// Why there is no interval.
var (
	errUnpaired  = errors.New("the two series have different lengths")
	errTooFew    = errors.New("an interval needs at least two pairs")
	errLevel     = errors.New("the level has to be between 0 and 1")
	errNotFinite = errors.New("a value is not a finite number")
)

// Interval is what the differences b - a are like.
type Interval struct {
	// Mean of the differences, and where it is with the probability Level.
	Mean, Low, High float64
	Level           float64
	// Less, Equal and More count pairs in which b is less than, equal to and more
	// than a.
	Less, Equal, More int
}

// Pairs returns how many pairs there were.
func (i Interval) Pairs() int { return i.Less + i.Equal + i.More }

// ExcludesZero reports whether 0 is outside the interval: the difference is more than
// chance, at the level.
func (i Interval) ExcludesZero() bool { return i.Low > 0 || i.High < 0 }

// Paired returns the interval of the mean of b[i] - a[i] at a level such as 0.95.
// The resamples are drawn with the seed: the same input gives the same interval.
// If all differences are equal, the interval is that one value, and says no more
// than that the runs did not differ in it.
func Paired(a, b []float64, level float64, seed uint64) (Interval, error) {
	switch {
	case len(a) != len(b):
		return Interval{}, fmt.Errorf("%w: %d and %d", errUnpaired, len(a), len(b))
	case len(a) < 2:
		return Interval{}, fmt.Errorf("%w: there are %d", errTooFew, len(a))
	case !(level > 0 && level < 1):
		return Interval{}, fmt.Errorf("%w: %v", errLevel, level)
	}
	result := Interval{Level: level}
	differences := make([]float64, len(a))
	for i := range a {
		d := b[i] - a[i]
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return Interval{}, fmt.Errorf("%w: pair %d is %v and %v", errNotFinite, i, a[i], b[i])
		}
		differences[i] = d
		switch {
		case d < 0:
			result.Less++
		case d > 0:
			result.More++
		default:
			result.Equal++
		}
	}
	result.Mean = mean(differences)
	result.Low, result.High = interval(differences, result.Mean, level, seed)
	return result, nil
}

func mean(values []float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// interval returns the two ends.
func interval(values []float64, centre, level float64, seed uint64) (low, high float64) {
	if slices.Min(values) == slices.Max(values) {
		return values[0], values[0]
	}
	means := resample(values, seed)
	bias, acceleration := bias(means, centre), acceleration(values, centre)
	z := expanded(level, len(values))
	at := func(z float64) float64 {
		// Phi(bias + (bias + z) / (1 - acceleration (bias + z)))
		lean := 1 - acceleration*(bias+z)
		if lean <= 0 {
			// So far out that the correction turns round: the end of what there is.
			lean = math.SmallestNonzeroFloat64
		}
		return quantile(means, distuv.UnitNormal.CDF(bias+(bias+z)/lean))
	}
	return at(-z), at(z)
}

// resample returns the means of resamples, in rising order.
func resample(values []float64, seed uint64) []float64 {
	r, n := rand.New(rand.NewPCG(seed, 0)), len(values)
	means := make([]float64, resampleCount)
	for i := range means {
		var sum float64
		for range n {
			sum += values[r.IntN(n)]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	return means
}

// bias is the normal score of the part of the resamples whose mean is less than
// that of the values; one that is equal counts half.
func bias(means []float64, centre float64) float64 {
	// Sums in another order differ in their last digits.
	tolerance := 1e-12 * max(math.Abs(means[0]), math.Abs(means[len(means)-1]))
	below, _ := slices.BinarySearch(means, centre-tolerance)
	upTo, _ := slices.BinarySearch(means, centre+tolerance)
	part := (float64(below) + float64(upTo)) / 2 / float64(len(means))
	return distuv.UnitNormal.Quantile(min(max(part, 0.5/resampleCount), 1-0.5/resampleCount))
}

// acceleration is a sixth of the skewness of what the mean is when each value is
// left out in turn, which for a mean is that of the values:
//
//	sum (x - mean)^3 / (6 (sum (x - mean)^2)^(3/2))
func acceleration(values []float64, centre float64) float64 {
	var most float64
	for _, v := range values {
		most = max(most, math.Abs(v-centre))
	}
	var squares, cubes float64
	for _, v := range values {
		d := (v - centre) / most // so that neither power overflows
		squares += d * d
		cubes += d * d * d
	}
	return cubes / (6 * squares * math.Sqrt(squares))
}

// expanded returns the normal score of the ends for n values: the quantile of
// Student's t with n-1 degrees of freedom, times sqrt(n/(n-1)).
func expanded(level float64, n int) float64 {
	degrees := float64(n - 1)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: degrees}.Quantile((1 + level) / 2)
	return t * math.Sqrt(float64(n)/degrees)
}

// quantile of values in rising order, on the line between two.
func quantile(sorted []float64, p float64) float64 {
	at := min(max(p, 0), 1) * float64(len(sorted)-1)
	i := min(int(at), len(sorted)-2)
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
