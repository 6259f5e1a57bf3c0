package noderesourcesallocatable

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

type weighted struct{ amount, weight int64 }

func meanOf(all []weighted) int64 {
	var m mean
	for _, w := range all {
		m.add(w.amount, w.weight)
	}
	return m.value()
}

// The oracle computes with big integers. Amounts are often the largest, where arithmetic overflows.
func TestMeanAgainstBigIntegers(t *testing.T) {
	amount := rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))
	weight := rapid.Int64Range(1, math.MaxInt32)
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) weighted {
			return weighted{amount.Draw(t, "amount"), weight.Draw(t, "weight")}
		}), 1, 5).Draw(t, "all")
		sum, weights := new(big.Int), new(big.Int)
		for _, w := range all {
			sum.Add(sum, new(big.Int).Mul(big.NewInt(w.amount), big.NewInt(w.weight)))
			weights.Add(weights, big.NewInt(w.weight))
		}
		if got, want := meanOf(all), sum.Quo(sum, weights).Int64(); got != want {
			t.Fatalf("mean of %v is %d, want %d", all, got, want)
		}
	})
}
