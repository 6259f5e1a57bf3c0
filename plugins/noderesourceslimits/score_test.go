package noderesourceslimits

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// The oracle computes with big integers. Amounts are often the largest, where arithmetic overflows.
func TestHeadroomAgainstBigIntegers(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))
	rapid.Check(t, func(t *rapid.T) {
		allocatable, limits, w := amount.Draw(t, "allocatable"), amount.Draw(t, "limits"), rapid.Int64Range(1, math.MaxInt32).Draw(t, "w")
		want := int64(0)
		if allocatable > 0 {
			n := new(big.Int).Sub(big.NewInt(allocatable), big.NewInt(limits))
			n.Mul(n, big.NewInt(100*w))
			want = clamp(n.Quo(n, big.NewInt(allocatable)))
		}
		if got := headroom(allocatable, limits, w); got != want {
			t.Fatalf("headroom(%d, %d, %d) = %d, want %d", allocatable, limits, w, got, want)
		}
	})
}

func clamp(n *big.Int) int64 {
	if n.IsInt64() && n.Int64() != math.MinInt64 {
		return n.Int64()
	}
	return int64(n.Sign()) * math.MaxInt64
}
