package resources

import (
	"math"
	"testing"
)

func TestSum(t *testing.T) {
	const most = math.MaxInt64
	for name, tc := range map[string]struct {
		amounts []Amount
		want    Sum
	}{
		"no pods": {nil, Sum{}},
		// 100 + 200; 300 + 200; floored 300 + 200
		"bounded pods": {
			[]Amount{{Request: 100, Limit: 300}, {Request: 200, Limit: 200}}, Sum{Request: 300, Limit: 500, FlooredLimit: 500},
		},
		// the unbounded pod declares 50; floored it counts as its request
		"one unbounded": {
			[]Amount{{Request: 100, Limit: 300}, {Request: 200, Limit: 50, Unbounded: true}},
			Sum{Request: 300, Limit: 300, PartialLimit: 50, FlooredLimit: 500, Unbounded: 1},
		},
		// a best-effort pod, and a pod with a partial limit of 80
		"unbounded pods only": {
			[]Amount{{Unbounded: true}, {Limit: 80, Unbounded: true}},
			Sum{PartialLimit: 80, FlooredLimit: 80, Unbounded: 2},
		},
		"sums that saturate": {
			[]Amount{{Request: most, Limit: most}, {Request: 1, Limit: 1}, {Limit: most, Unbounded: true}, {Limit: 1, Unbounded: true}},
			Sum{Request: most, Limit: most, PartialLimit: most, FlooredLimit: most, Unbounded: 2},
		},
	} {
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
	for name, tc := range map[string]struct {
		sum                       Sum
		defaultLimit, allocatable int64
		want                      int64
	}{
		"all bounded": {Sum{Limit: 500}, 1000, 8000, 500},
		// 500 + 2 x 8000: partial limits are included
		"without a default limit": {Sum{Limit: 500, PartialLimit: 80, Unbounded: 2}, 0, 8000, 16500},
		// 500 + 80 + 2 x 1000
		"with a default limit": {Sum{Limit: 500, PartialLimit: 80, Unbounded: 2}, 1000, 8000, 2580},
		// 500 + 1 x 0: the node lacks the resource
		"nothing allocatable":          {Sum{Limit: 500, Unbounded: 1}, 0, 0, 500},
		"allocatable that saturates":   {Sum{Limit: 500, Unbounded: 2}, 0, most, most},
		"default limit that saturates": {Sum{Limit: 500, Unbounded: 2}, most, 8000, most},
		"limits that saturate":         {Sum{Limit: most, PartialLimit: most, Unbounded: 1}, 1, 8000, most},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.sum.LimitWithDefault(tc.defaultLimit, tc.allocatable); got != tc.want {
				t.Errorf("%+v with %d of %d: %d, want %d", tc.sum, tc.defaultLimit, tc.allocatable, got, tc.want)
			}
		})
	}
}
