// Package allocation scores nodes by what they have and by what their pods may
// take: the arithmetic of the NodeResourcesAllocatable and NodeResourcesLimits
// plugins, without Kubernetes.
//
// Amounts are integers in the unit of their resource (CPU in millicores,
// everything else in its base unit) and are expected in [0, MaxInt64]. Products
// are formed in 128 bits, so no weight and no amount overflows; a result that
// does not fit an int64 saturates.
package allocation

import (
	"math"
	"math/bits"
)

// MaxScore is the highest normalised score, and 0 the lowest. It is the range
// that the scheduler framework accepts.
const MaxScore = 100

// Mean is a weighted mean in the making: the sum of weight x amount over the
// sum of the weights. The zero value is that of no amounts.
type Mean struct {
	hi, lo  uint64 // the sum of the products
	weights uint64
}

// Add takes one more amount in. Negative amounts and weights count as 0.
func (m *Mean) Add(amount, weight int64) {
	w := uint64(max(weight, 0))
	hi, lo := bits.Mul64(uint64(max(amount, 0)), w)
	var carry uint64
	m.lo, carry = bits.Add64(m.lo, lo, 0)
	m.hi, _ = bits.Add64(m.hi, hi, carry)
	m.weights += w
}

// Value returns the mean rounded down, 0 for no amounts.
func (m *Mean) Value() int64 {
	if m.weights == 0 {
		return 0
	}
	// The mean is at most the largest amount, below 2^63: the division fits.
	mean, _ := bits.Div64(m.hi, m.lo, m.weights)
	return int64(mean)
}

// Headroom returns what the limits leave of the allocatable amount, in percent
// of it and times weight:
//
//	weight x (allocatable - limits) x 100 / allocatable
//
// truncated toward zero. It is negative where the limits exceed the
// allocatable amount, and 0 where there is nothing to allocate: a resource
// that a node lacks neither helps nor harms it.
func Headroom(allocatable, limits, weight int64) int64 {
	if allocatable <= 0 || weight <= 0 {
		return 0
	}
	limits = max(limits, 0)
	free, sign := uint64(allocatable)-uint64(limits), int64(1)
	if limits > allocatable {
		free, sign = uint64(limits)-uint64(allocatable), -1
	}
	hundredths := uint64(math.MaxInt64)
	if uint64(weight) < math.MaxInt64/MaxScore {
		hundredths = uint64(weight) * MaxScore
	}
	hi, lo := bits.Mul64(free, hundredths)
	if hi >= uint64(allocatable) {
		return sign * math.MaxInt64
	}
	quotient, _ := bits.Div64(hi, lo, uint64(allocatable))
	return sign * int64(min(quotient, math.MaxInt64))
}

// Add returns a + b, saturated at the ends of int64.
func Add(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// Multiply returns a x b for two amounts, saturated at MaxInt64. Negative
// amounts count as 0.
func Multiply(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Scale places raw on the line from lowest (0) to highest (MaxScore), rounded
// down. Where lowest equals highest nothing tells the nodes apart and the
// score is 0. A raw outside the two ends is taken as the nearer end.
func Scale(raw, lowest, highest int64) int64 {
	if highest <= lowest || raw <= lowest {
		return 0
	}
	if raw >= highest {
		return MaxScore
	}
	// Two's complement differences are right as uint64 even where the signed
	// ones overflow.
	distance, span := uint64(raw)-uint64(lowest), uint64(highest)-uint64(lowest)
	hi, lo := bits.Mul64(distance, MaxScore)
	score, _ := bits.Div64(hi, lo, span)
	return int64(score)
}
