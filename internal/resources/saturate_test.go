package resources

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// amount prefers the ends of the range, where arithmetic overflows.
var amount = rapid.OneOf(rapid.Int64Range(0, 1<<20), rapid.Int64Range(0, math.MaxInt64), rapid.Just(int64(math.MaxInt64)))

// clamp returns the int64 nearest to n.
func clamp(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

func TestAgainstBigIntegers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		if got, want := Add(a, b), clamp(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
			t.Fatalf("Add(%d, %d) = %d, want %d", a, b, got, want)
		}
		x, y, c := amount.Draw(t, "x"), amount.Draw(t, "y"), max(amount.Draw(t, "c"), 1)
		product := new(big.Int).Mul(big.NewInt(x), big.NewInt(y))
		if got, want := Multiply(x, y), clamp(product); got != want {
			t.Fatalf("Multiply(%d, %d) = %d, want %d", x, y, got, want)
		}
		if got, want := MulDiv(x, y, c), clamp(new(big.Int).Quo(product, big.NewInt(c))); got != want {
			t.Fatalf("MulDiv(%d, %d, %d) = %d, want %d", x, y, c, got, want)
		}
		up := new(big.Int).Add(product, big.NewInt(c-1))
		if got, want := MulDivUp(x, y, c), clamp(up.Quo(up, big.NewInt(c))); got != want {
			t.Fatalf("MulDivUp(%d, %d, %d) = %d, want %d", x, y, c, got, want)
		}
	})
}

func TestNegativeFactorsCountAsZero(t *testing.T) {
	if got := [...]int64{Multiply(-2, 3), Multiply(2, -3), Multiply(-2, -3), MulDiv(-2, 3, 4), MulDivUp(2, -3, 4)}; got != [5]int64{} {
		t.Errorf("%v, want zeros", got)
	}
}
