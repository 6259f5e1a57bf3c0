package noderes

import (
	"math"
	"testing"
)

func TestSum(t *testing.T) {
	const most = math.MaxInt64
	tests := map[string]struct {
		amounts []Amount
		want    Sum
	}{
		"no pods": {nil, Sum{}},
		// 100 + 200; 300 + 200; floored 300 + 200
		"bounded pods": {[]Amount{{Request: 100, Limit: 300}, {Request: 200, Limit: 200}}, Sum{Request: 300, Limit: 500, FlooredLimit: 500}},
		// the unbounded one declares 50 of its own, and floored counts as its request
		"one unbounded": {
			[]Amount{{Request: 100, Limit: 300}, {Request: 200, Limit: 50, Unbounded: true}},
			Sum{Request: 300, Limit: 300, PartialLimit: 50, FlooredLimit: 500, Unbounded: 1},
		},
		// best effort and one of a limit of 80
		"unbounded pods only": {
			[]Amount{{Unbounded: true}, {Limit: 80, Unbounded: true}},
			Sum{PartialLimit: 80, FlooredLimit: 80, Unbounded: 2},
		},
		"too much for an int64": {
			[]Amount{{Request: most, Limit: most}, {Request: 1, Limit: 1}, {Limit: most, Unbounded: true}, {Limit: 1, Unbounded: true}},
			Sum{Request: most, Limit: most, PartialLimit: most, FlooredLimit: most, Unbounded: 2},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got Sum
			for _, a := range tc.amounts {
				got.Add(a)
			}
			if got != tc.want {
				t.Errorf("%+v: %+v, want %+v", tc.amounts, got, tc.want)
			}
		})
	}
}

func TestLimitWithDefault(t *testing.T) {
	const most = math.MaxInt64
	tests := map[string]struct {
		sum                    Sum
		byDefault, allocatable int64
		want                   int64
	}{
		"all bounded": {Sum{Limit: 500}, 1000, 8000, 500},
		// 500 + 2 x 8000: what the unbounded ones declare is within that
		"no default": {Sum{Limit: 500, PartialLimit: 80, Unbounded: 2}, 0, 8000, 16500},
		// 500 + 80 + 2 x 1000
		"a default": {Sum{Limit: 500, PartialLimit: 80, Unbounded: 2}, 1000, 8000, 2580},
		// 500 + 1 x 0: the node has nothing of the resource
		"nothing allocatable":  {Sum{Limit: 500, Unbounded: 1}, 0, 0, 500},
		"too much of the node": {Sum{Limit: 500, Unbounded: 2}, 0, most, most},
		"too much by default":  {Sum{Limit: 500, Unbounded: 2}, most, 8000, most},
		"too much already":     {Sum{Limit: most, PartialLimit: most, Unbounded: 1}, 1, 8000, most},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := tc.sum.LimitWithDefault(tc.byDefault, tc.allocatable); got != tc.want {
				t.Errorf("%+v with %d of %d: %d, want %d", tc.sum, tc.byDefault, tc.allocatable, got, tc.want)
			}
		})
	}
}
