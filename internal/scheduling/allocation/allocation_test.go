package allocation

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

type weighted struct{ amount, weight int64 }

func mean(resources []weighted) int64 {
	var m Mean
	for _, r := range resources {
		m.Add(r.amount, r.weight)
	}
	return m.Value()
}

func TestMean(t *testing.T) {
	tests := map[string]struct {
		resources []weighted
		want      int64
	}{
		"no resources": {nil, 0},
		// (1 x 4000) / 1 = 4000
		"one": {[]weighted{{4000, 1}}, 4000},
		// (2 x 10 + 1 x 40) / 3 = 20
		"two": {[]weighted{{10, 2}, {40, 1}}, 20},
		// (1048576 x 4000 + 1 x 16 Gi) / 1048577
		// = (4194304000 + 17179869184) / 1048577 = 20383.9...
		"the default weights": {[]weighted{{4000, 1 << 20}, {16 << 30, 1}}, 20383},
		// (2^31 x max + 2^31 x max) / 2^32 = max
		"the largest amounts": {[]weighted{{math.MaxInt64, 1 << 31}, {math.MaxInt64, 1 << 31}}, math.MaxInt64},
		// negative amounts count as 0: (1 x 0 + 1 x 8) / 2 = 4
		"a negative amount": {[]weighted{{-5, 1}, {8, 1}}, 4},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := mean(tc.resources); got != tc.want {
				t.Errorf("mean of %v is %d, want %d", tc.resources, got, tc.want)
			}
		})
	}
}

func TestHeadroom(t *testing.T) {
	tests := map[string]struct {
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
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Headroom(tc.allocatable, tc.limits, tc.weight); got != tc.want {
				t.Errorf("Headroom(%d, %d, %d) = %d, want %d", tc.allocatable, tc.limits, tc.weight, got, tc.want)
			}
		})
	}
}

func TestScale(t *testing.T) {
	tests := map[string]struct {
		raw, lowest, highest int64
		want                 int64
	}{
		"the lowest":  {-75, -75, -12, 0},
		"the highest": {-12, -75, -12, 100},
		// (-40 + 75) x 100 / 63 = 55.5
		"between":                  {-40, -75, -12, 55},
		"all equal":                {7, 7, 7, 0},
		"the whole range of int64": {0, math.MinInt64, math.MaxInt64, 50},
		"below":                    {-80, -75, -12, 0},
		"above":                    {0, -75, -12, 100},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Scale(tc.raw, tc.lowest, tc.highest); got != tc.want {
				t.Errorf("Scale(%d, %d, %d) = %d, want %d", tc.raw, tc.lowest, tc.highest, got, tc.want)
			}
		})
	}
}

// amounts prefers the ends of the range, where arithmetic overflows.
func amounts() *rapid.Generator[int64] {
	return rapid.OneOf(
		rapid.Int64Range(0, 1<<20),
		rapid.Int64Range(0, math.MaxInt64),
		rapid.Just(int64(math.MaxInt64)),
	)
}

func clamp(n *big.Int) int64 {
	if n.IsInt64() && n.Int64() != math.MinInt64 {
		return n.Int64()
	}
	return int64(n.Sign()) * math.MaxInt64
}

// The oracle computes with big integers.
func TestAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weight := rapid.Int64Range(1, math.MaxInt32)
		resources := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) weighted {
			return weighted{amounts().Draw(t, "amount"), weight.Draw(t, "weight")}
		}), 1, 5).Draw(t, "resources")

		sum, weights := new(big.Int), new(big.Int)
		for _, r := range resources {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(r.amount), big.NewInt(r.weight)))
			weights.Add(weights, big.NewInt(r.weight))
		}
		if got, want := mean(resources), sum.Quo(sum, weights).Int64(); got != want {
			t.Fatalf("mean of %v is %d, want %d", resources, got, want)
		}

		allocatable, limits, w := amounts().Draw(t, "allocatable"), amounts().Draw(t, "limits"), weight.Draw(t, "w")
		want := int64(0)
		if allocatable > 0 {
			n := new(big.Int).Sub(big.NewInt(allocatable), big.NewInt(limits))
			n.Mul(n, big.NewInt(100*w))
			want = clamp(n.Quo(n, big.NewInt(allocatable)))
		}
		if got := Headroom(allocatable, limits, w); got != want {
			t.Fatalf("Headroom(%d, %d, %d) = %d, want %d", allocatable, limits, w, got, want)
		}
	})
}

// Scaled scores are in range and keep the order of the raw scores.
func TestScaleKeepsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raws := rapid.SliceOfN(rapid.Int64(), 2, 20).Draw(t, "raws")
		lowest, highest := raws[0], raws[0]
		for _, raw := range raws {
			lowest, highest = min(lowest, raw), max(highest, raw)
		}
		for i := 1; i < len(raws); i++ {
			a, b := Scale(raws[i-1], lowest, highest), Scale(raws[i], lowest, highest)
			if a < 0 || a > MaxScore || (raws[i-1] <= raws[i] && a > b) {
				t.Fatalf("raw %d and %d scaled to %d and %d", raws[i-1], raws[i], a, b)
			}
		}
		if lowest != highest && Scale(highest, lowest, highest) != MaxScore {
			t.Fatalf("the highest of %v does not get score %d", raws, MaxScore)
		}
	})
}
