package decide

import (
	"testing"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// cpus returns a cluster with the given allocatable and capacity CPU in millicores.
func cpus(name string, allocatable, capacity int64) *Cluster {
	return &Cluster{Name: name, Allocatable: Amounts{allocatable, Missing}, Capacity: Amounts{capacity, Missing}}
}

// given is a pair of results of Score.
type given struct {
	score   int64
	hasData bool
}

func has(score int64) given { return given{score, true} }

var none = given{-100, false}

func TestPrioritizerScores(t *testing.T) {
	fleet := []*Cluster{
		cpus("a", 8000, 10000), cpus("b", 2000, 10000), cpus("c", 6000, 6000), cpus("d", 4000, 0),
		cpus("e", Missing, 10000), cpus("f", 9000, 8000), cpus("g", 3000, Missing),
	}
	for i, scores := range []map[string]*AddOnScores{
		usageScore(7, 1000),
		usageScore(7, 999),
		usageScore(101, Forever),
		usageScore(-101, Forever),
		{},
		usageScore(-100, Forever),
		usageScore(100, 2000),
	} {
		fleet[i].Scores = scores
	}
	for name, tc := range map[string]struct {
		request Request
		want    []given
	}{
		"ratio": {
			Request{Prioritizers: []Prioritizer{{Kind: v1beta1.ResourceRatioCPU, Weight: 1}}},
			[]given{
				has(60),  // 200 x (8/10 - 0.5)
				has(-60), // 200 x (2/10 - 0.5)
				has(100), // 200 x (6/6 - 0.5)
				none,     // capacity 0
				none,     // no allocatable
				has(100), // 200 x (9/8 - 0.5) = 125, capped at 100
				none,     // no capacity
			},
		},
		// min = 2000, max = 9000
		"allocatable": {
			Request{Prioritizers: []Prioritizer{{Kind: v1beta1.ResourceAllocatableCPU, Weight: 1}}},
			[]given{
				has(71),   // 200 x (6000/7000 - 0.5) = 71.4
				has(-100), // lowest
				has(14),   // 200 x (4000/7000 - 0.5) = 14.3
				has(-42),  // 200 x (2000/7000 - 0.5) = -42.9; capacity is not used
				none,      // no allocatable
				has(100),  // highest
				has(-71),  // 200 x (1000/7000 - 0.5) = -71.4
			},
		},
		"steady": {
			Request{Prioritizers: []Prioritizer{{Kind: v1beta1.Steady, Weight: 1}}, Chosen: []int32{1, 4}},
			[]given{has(0), has(100), has(0), has(0), has(100), has(0), has(0)},
		},
		// Without the placement's decisions for a and b: 2, 3, 4, 1, 0, 0, 0; max = 4.
		"balance": {
			Request{
				Prioritizers: []Prioritizer{{Kind: v1beta1.Balance, Weight: 1}},
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
		"add-on": {
			Request{
				Prioritizers: []Prioritizer{addOn("usage", "cpu", 1)},
				Now:          1000,
			},
			[]given{
				has(7), // valid until the end of this second
				none,   // expired
				none,   // out of range
				none,   // out of range
				none,   // no score
				has(-100), has(100),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.request
			r.Fleet, r.Members, r.Number = fleet, Indexes(len(fleet)), All
			d := Decide(&r)
			for i, want := range tc.want {
				if score, hasData := d.Score(0, i); score != want.score || hasData != want.hasData {
					t.Errorf("cluster %s has score %d (data: %v), want %d (data: %v)",
						fleet[i].Name, score, hasData, want.score, want.hasData)
				}
				if d.Clusters[i].Total != want.score {
					t.Errorf("cluster %s has total %d, want %d", fleet[i].Name, d.Clusters[i].Total, want.score)
				}
			}
		})
	}
}
