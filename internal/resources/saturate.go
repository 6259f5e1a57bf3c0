package resources

import (
	"math"
	"math/bits"
)

// Add returns a + b.
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

// Multiply returns a x b. Negative factors count as 0.
func Multiply(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// MulDiv returns a x b / c, rounded down. Negative factors count as 0; c must be at least 1.
func MulDiv(a, b, c int64) int64 {
	quotient, _ := mulDiv(a, b, c)
	return quotient
}

// MulDivUp returns a x b / c, rounded up. Negative factors count as 0; c must be at least 1.
func MulDivUp(a, b, c int64) int64 {
	quotient, remainder := mulDiv(a, b, c)
	if remainder > 0 {
		quotient = Add(quotient, 1)
	}
	return quotient
}

func mulDiv(a, b, c int64) (quotient int64, remainder uint64) {
	hi, lo := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	if hi >= uint64(c) {
		return math.MaxInt64, 0
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	return int64(min(q, math.MaxInt64)), r
}
