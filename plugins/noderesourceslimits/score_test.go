package noderesourceslimits

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestHeadroom(t *testing.T) {
	for name, tc := range map[string]struct {
		allocatable, limits, weight int64
		want                        int64
	}{
		// (8 - 14) x 100 / 8 = -75
		"oversubscribed": {8000, 14000, 1, -75},
		// (8 - 9) x 100 / 8 = -12.5, toward zero
		"slightly oversubscribed": {8000, 9000, 1, -12},
		// 2 x (8 - 9) x 100 / 8 = -25: the weight comes before the truncation
		"weight two": {8000, 9000, 2, -25},
		// (8 - 2) x 100 / 8 = 75
		"capacity left": {8000, 2000, 1, 75},
		// (8 - 8) x 100 / 8 = 0
		"exactly full":         {8000, 8000, 1, 0},
		"nothing allocatable":  {0, 4000, 1, 0},
		"negative allocatable": {-1, 4000, 1, 0},
		// (1 - max) x 100 / 1 does not fit
		"saturates": {1, math.MaxInt64, 1, -math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := headroom(tc.allocatable, tc.limits, tc.weight); got != tc.want {
				t.Errorf("headroom(%d, %d, %d) = %d, want %d", tc.allocatable, tc.limits, tc.weight, got, tc.want)
			}
		})
	}
}

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
