package clusterscore

import (
	"math"
	"math/bits"
)

// total is a sum of amounts. It has 128 bits, so that it is exact whatever the
// amounts are: what has been added can be taken away again. The zero value is 0.
type total struct{ hi, lo uint64 }

// add adds an amount, which is not negative.
func (t *total) add(amount int64) {
	var carry uint64
	t.lo, carry = bits.Add64(t.lo, uint64(amount), 0)
	t.hi += carry
}

// sub takes an amount away that was added before.
func (t *total) sub(amount int64) {
	var borrow uint64
	t.lo, borrow = bits.Sub64(t.lo, uint64(amount), 0)
	t.hi -= borrow
}

// amount returns the total, or the largest amount if it is more than that.
func (t total) amount() int64 {
	if t.hi != 0 || t.lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(t.lo)
}

// float returns the total as precisely as a float64 can say it.
func (t total) float() float64 { return float64(t.hi)*(1<<64) + float64(t.lo) }
