package placement

import (
	"math"
	"testing"
)

func TestBalance(t *testing.T) {
	tests := map[string]struct {
		n, most int64
		want    int8
	}{
		// trunc(100 x (0.5 - 0/4)) = 50, doubled
		"none": {0, 4, 100},
		// trunc(100 x (0.5 - 1/4)) = 25
		"a quarter": {1, 4, 50},
		// trunc(100 x (0.5 - 2/4)) = 0
		"half": {2, 4, 0},
		// 100 x (0.5 - 1/3) = 16.66, truncated before doubling
		"a third": {1, 3, 32},
		// 100 x (0.5 - 2/3) = -16.66, truncated toward zero before doubling
		"two thirds": {2, 3, -32},
		// trunc(100 x (0.5 - 4/4)) = -50
		"the most": {4, 4, -100},
		// 100 x (0.5 - 21/100) = 29, where floating point has 28.999999999999996
		"exact":                 {21, 100, 58},
		"no decisions anywhere": {0, 0, 100},
		// 100 x (0.5 - (2^31-2)/(2^31-1)) = -49.99...
		"the largest counts": {math.MaxInt32 - 1, math.MaxInt32, -98},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := balance(tc.n, tc.most); got != tc.want {
				t.Errorf("%d of at most %d decisions score %d, want %d", tc.n, tc.most, got, tc.want)
			}
		})
	}
}

func TestScale(t *testing.T) {
	const huge = math.MaxInt64
	tests := map[string]struct {
		part, whole uint64
		want        int8
	}{
		// 200 x (0/8 - 0.5)
		"nothing": {0, 8, -100},
		// 200 x (4/8 - 0.5)
		"half": {4, 8, 0},
		// 200 x (8/8 - 0.5)
		"all": {8, 8, 100},
		// 200 x (7/10 - 0.5) = 40, where floating point has 39.99999999999999
		"exact": {7, 10, 40},
		// 200 x (1/3 - 0.5) = -33.3
		"toward zero from below": {1, 3, -33},
		// 200 x (2/3 - 0.5) = 33.3
		"toward zero from above": {2, 3, 33},
		// 200 x (2^62/(2^63-1) - 0.5) = 1.08e-17
		"half of the largest":     {1 << 62, huge, 0},
		"all of the largest":      {huge, huge, 100},
		"the largest but one":     {huge - 1, huge, 99},
		"nothing of the largest":  {0, huge, -100},
		"a little of the largest": {1, huge, -99},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := scale(tc.part, tc.whole); got != tc.want {
				t.Errorf("%d of %d is %d, want %d", tc.part, tc.whole, got, tc.want)
			}
		})
	}
}

// cpus returns a cluster with these millicores, named so that they sort.
func cpus(name string, allocatable, capacity int64) *Cluster {
	return &Cluster{Name: name, Allocatable: Amounts{allocatable, Missing}, Capacity: Amounts{capacity, Missing}}
}

// given is what Score returns.
type given struct {
	score   int64
	hasData bool
}

func has(score int64) given { return given{score, true} }

var none = given{-100, false}

func TestPrioritizers(t *testing.T) {
	fleet := []*Cluster{
		cpus("a", 8000, 10000), cpus("b", 2000, 10000), cpus("c", 6000, 6000), cpus("d", 4000, 0),
		cpus("e", Missing, 10000), cpus("f", 9000, 8000), cpus("g", 3000, Missing),
	}
	tests := map[string]struct {
		request Request
		want    []given
	}{
		"ratio": {
			Request{Prioritizers: []Prioritizer{{Kind: ResourceRatioCPU, Weight: 1}}},
			[]given{
				has(60),  // 200 x (8/10 - 0.5)
				has(-60), // 200 x (2/10 - 0.5)
				has(100), // 200 x (6/6 - 0.5)
				none,     // capacity 0
				none,     // no allocatable
				has(100), // 200 x (9/8 - 0.5) = 125, at most 100
				none,     // no capacity
			},
		},
		"ratio of what nobody reports": {
			Request{Prioritizers: []Prioritizer{{Kind: ResourceRatioMemory, Weight: 1}}},
			[]given{none, none, none, none, none, none, none},
		},
		// min = 2000, max = 9000
		"allocatable": {
			Request{Prioritizers: []Prioritizer{{Kind: ResourceAllocatableCPU, Weight: 1}}},
			[]given{
				has(71),   // 200 x (6000/7000 - 0.5) = 71.4
				has(-100), // the least
				has(14),   // 200 x (4000/7000 - 0.5) = 14.3
				has(-42),  // 200 x (2000/7000 - 0.5) = -42.9; the capacity does not matter
				none,      //
				has(100),  // the most
				has(-71),  // 200 x (1000/7000 - 0.5) = -71.4
			},
		},
		"allocatable of what nobody reports": {
			Request{Prioritizers: []Prioritizer{{Kind: ResourceAllocatableMemory, Weight: 1}}},
			[]given{none, none, none, none, none, none, none},
		},
		"steady": {
			Request{Prioritizers: []Prioritizer{{Kind: Steady, Weight: 1}}, Chosen: []int32{1, 4}},
			[]given{has(0), has(100), has(0), has(0), has(100), has(0), has(0)},
		},
		// Without the own decisions on a and b: 2, 3, 4, 1, 0, 0, 0; max = 4.
		"balance": {
			Request{
				Prioritizers: []Prioritizer{{Kind: Balance, Weight: 1}},
				Chosen:       []int32{0, 1},
				Counts:       []int32{3, 4, 4, 1},
			},
			[]given{
				has(0),    // 2 x trunc(100 x (0.5 - 2/4))
				has(-50),  // 2 x trunc(100 x (0.5 - 3/4))
				has(-100), // 2 x trunc(100 x (0.5 - 4/4))
				has(50),   // 2 x trunc(100 x (0.5 - 1/4))
				has(100), has(100), has(100),
			},
		},
		"balance of the own decisions": {
			Request{
				Prioritizers: []Prioritizer{{Kind: Balance, Weight: 1}},
				Chosen:       []int32{0},
				Counts:       []int32{1, 0, 0, 0, 0, 0, 0},
			},
			[]given{has(100), has(100), has(100), has(100), has(100), has(100), has(100)},
		},
		// A count that lags behind the own decisions does not become negative.
		"balance of a late count": {
			Request{
				Prioritizers: []Prioritizer{{Kind: Balance, Weight: 1}},
				Chosen:       []int32{0},
				Counts:       []int32{0, 2, 0, 0, 0, 0, 0},
			},
			[]given{has(100), has(-100), has(100), has(100), has(100), has(100), has(100)},
		},
		"add-on": {
			Request{
				Prioritizers: []Prioritizer{{Kind: AddOn, Weight: 1, Scores: []AddOnScore{
					{0, 7, 1000}, {1, 7, 999}, {2, 101, Forever}, {3, -101, Forever}, {5, -100, Forever}, {6, 100, 2000},
				}}},
				Now: 1000,
			},
			[]given{
				has(7), // valid to the end of this second
				none,   // expired
				none,   // out of range
				none,   // out of range
				none,   // not there
				has(-100), has(100),
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := tc.request
			r.Fleet, r.Members, r.Number = fleet, Indexes(len(fleet)), All
			d := Decide(&r)
			for i, want := range tc.want {
				if score, hasData := d.Score(0, i); score != want.score || hasData != want.hasData {
					t.Errorf("cluster %s gets %d (data: %v), want %d (data: %v)",
						fleet[i].Name, score, hasData, want.score, want.hasData)
				}
				if d.Clusters[i].Total != want.score {
					t.Errorf("cluster %s has total %d, want %d", fleet[i].Name, d.Clusters[i].Total, want.score)
				}
			}
		})
	}
}

// Least and most are those of the feasible clusters: the largest, which is not a
// member, does not count, and those that are left are equal.
func TestAllocatableOfFeasibleOnly(t *testing.T) {
	r := &Request{
		Fleet:        []*Cluster{cpus("a", 4000, 0), cpus("b", 9000, 0), cpus("c", 4000, 0)},
		Members:      []int32{0, 2},
		Prioritizers: []Prioritizer{{Kind: ResourceAllocatableCPU, Weight: 1}},
		Number:       All,
	}
	d := Decide(r)
	if a, c := d.Clusters[0].Total, d.Clusters[2].Total; a != 100 || c != 100 {
		t.Errorf("equal clusters get %d and %d, want 100", a, c)
	}
}

// No data is worst under either sign of the weight: 10 x -100 and -10 x 100.
func TestNoDataNeverWins(t *testing.T) {
	for _, weight := range []int32{10, -10} {
		r := &Request{
			Fleet:        []*Cluster{cpus("a", Missing, 8000), cpus("b", 1000, 8000), cpus("c", 7000, 8000)},
			Members:      Indexes(3),
			Prioritizers: []Prioritizer{{Kind: ResourceRatioCPU, Weight: weight}},
			Number:       2,
		}
		d := Decide(r)
		if d.Clusters[0].Total != -1000 || d.Clusters[0].Outcome == Chosen {
			t.Errorf("with weight %d a silent cluster gets %d: %s", weight, d.Clusters[0].Total, d.Clusters[0].Outcome)
		}
		if score, hasData := d.Score(0, 0); int64(weight)*score != -1000 || hasData {
			t.Errorf("with weight %d the score is %d (data: %v)", weight, score, hasData)
		}
	}
}
