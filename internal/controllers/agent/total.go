package agent

import (
	"math"
	"math/bits"
)

// total is a sum of amounts. It has 128 bits, so that it is exact and amounts can be subtracted
// again. The zero value is 0.
type total struct{ hi, lo uint64 }

// add adds an amount, which is not negative.
func (t *total) add(amount int64) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(amount), 0)
	t.hi += carry
}

// subtract subtracts an amount that was added before.
func (t *total) subtract(amount int64) {
	var borrow uint64
	t.lo, borrow = bits.Sub64(t.lo, uint64(amount), 0)
	t.hi -= borrow
}

// amount returns the total, saturated at math.MaxInt64.
func (t total) amount() int64 {
	if t.hi != 0 || t.lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.lo)
}

// float returns the nearest float64.
func (t total) float() float64 { return float64(t.hi)*(1<<64) + float64(t.lo) }
