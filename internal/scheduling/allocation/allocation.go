// Package allocation computes node scores from allocatable amounts and from limits: the arithmetic
// of the NodeResourcesAllocatable and NodeResourcesLimits plugins, without Kubernetes.
//
// Amounts are integers in the unit of their resource (CPU in millicores, everything else in its
// base unit) in [0, MaxInt64]. Results that do not fit an int64 saturate.
package allocation

import (
	"math/bits"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// MaxScore is the highest normalized score; the lowest is 0. It is the range that the scheduler
// framework accepts.
const MaxScore = 100

// Mean accumulates a weighted mean: the sum of weight x amount over the sum of the weights.
// The zero value is ready to use.
type Mean struct {
	// hi and lo are the 128 bits of the sum of the products.
	hi, lo  uint64
	weights uint64
}

// Add adds an amount. Negative amounts and weights count as 0.
func (m *Mean) Add(amount, weight int64) {
	w := uint64(max(weight, 0))
	hi, lo := bits.Mul64(uint64(max(amount, 0)), w)
	var carry uint64
	m.lo, carry = bits.Add64(m.lo, lo, 0)
	m.hi, _ = bits.Add64(m.hi, hi, carry)
	m.weights += w
}

// Value returns the mean rounded down, or 0 without amounts.
func (m *Mean) Value() int64 {
	if m.weights == 0 {
		return 0
	}
	// The mean is at most the largest amount, below 2^63: the quotient fits.
	mean, _ := bits.Div64(m.hi, m.lo, m.weights)
	return int64(mean)
}

// Headroom returns the allocatable amount that the limits leave free, in percent of the allocatable
// amount and times weight:
//
//	weight x (allocatable - limits) x 100 / allocatable
//
// truncated toward zero. It is negative if the limits exceed the allocatable amount, and 0 if
// nothing is allocatable: a resource that a node lacks does not change the node's score.
func Headroom(allocatable, limits, weight int64) int64 {
	if allocatable <= 0 || weight <= 0 {
		return 0
	}
	limits = max(limits, 0)
	percent := resources.Multiply(weight, MaxScore)
	if limits > allocatable {
		return -resources.MulDiv(limits-allocatable, percent, allocatable)
	}
	return resources.MulDiv(allocatable-limits, percent, allocatable)
}

// Scale maps raw linearly from [lowest, highest] to [0, MaxScore], rounded down. It returns 0 if
// lowest equals highest. A raw score outside the range counts as the nearer end.
func Scale(raw, lowest, highest int64) int64 {
	if highest <= lowest || raw <= lowest {
		return 0
	}
	if raw >= highest {
		return MaxScore
	}
	// Differences in two's complement are correct as uint64 even if the signed ones overflow.
	distance, span := uint64(raw)-uint64(lowest), uint64(highest)-uint64(lowest)
	hi, lo := bits.Mul64(distance, MaxScore)
	score, _ := bits.Div64(hi, lo, span)
	return int64(score)
}
