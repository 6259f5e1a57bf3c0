package resources

import (
	"maps"
	"math"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// TestAmountsEqualMaps compares amounts of devices with maps, which are the simplest implementation.
func TestAmountsEqualMaps(t *testing.T) {
	names := []v1.ResourceName{"a/x", "b/y", "b/z", "c/x"}
	draw := func(t *rapid.T, label string) (Amounts, map[v1.ResourceName]int64) {
		amounts, all := Amounts{CPU: rapid.Int64Range(0, 2).Draw(t, label)}, map[v1.ResourceName]int64{}
		all[v1.ResourceCPU] = amounts.CPU
		for _, name := range rapid.Permutation(names).Draw(t, label+" order") {
			all[name] = rapid.Int64Range(0, 2).Draw(t, label)
			amounts.Extended = amounts.Extended.With(name, 9).With(name, all[name])
		}
		return amounts, all
	}
	rapid.Check(t, func(t *rapid.T) {
		a, inA := draw(t, "a")
		b, inB := draw(t, "b")
		sum, fits, copies := a.Add(b), true, int64(math.MaxInt64)
		for _, name := range append(slices.Clone(names), v1.ResourceCPU) {
			r := NewResource(name)
			if a.Get(r) != inA[name] || sum.Get(r) != inA[name]+inB[name] || a.Minus(b).Get(r) != inA[name]-inB[name] {
				t.Fatalf("%s: %d, %d + %d = %d", name, inA[name], a.Get(r), b.Get(r), sum.Get(r))
			}
			fits = fits && inA[name] <= inB[name]
			if inA[name] > 0 {
				copies = min(copies, inB[name]/inA[name])
			}
		}
		if a.FitsIn(b) != fits || a.Copies(b) != copies {
			t.Fatalf("%v in %v: fits %t, %d times", inA, inB, a.FitsIn(b), a.Copies(b))
		}
		if sum.Minus(b) != a || (a == b) != maps.Equal(inA, inB) || a.Compare(b) != -b.Compare(a) || (a.Compare(b) == 0) != (a == b) {
			t.Fatalf("%v and %v: compared %d", inA, inB, a.Compare(b))
		}
	})
}

func TestExtendedOfAList(t *testing.T) {
	list := v1.ResourceList{"a/x": resource.MustParse("2"), "b/y": resource.MustParse("0"), "c/z": resource.MustParse("1")}
	got := ExtendedOf(list, func(name v1.ResourceName) bool { return name != "c/z" })
	if want := (ExtendedAmounts{}).With("a/x", 2); got != want {
		t.Errorf("got %v, want %v", maps.Collect(got.All()), maps.Collect(want.All()))
	}
}

// TestEqualAmountsAllocateNothing checks that amounts that exist already are shared.
func TestEqualAmountsAllocateNothing(t *testing.T) {
	size := Amounts{CPU: 1, Extended: ExtendedAmounts{}.With("a/x", 1).With("b/y", 2)}
	twice := size.Add(size)
	if n := testing.AllocsPerRun(100, func() {
		if !size.FitsIn(twice) || twice.Minus(size) != size || size.Copies(twice) != 2 {
			t.Error("twice the size has to fit the size twice")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
