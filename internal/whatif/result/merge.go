package result

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Shard selects seeds of a comparison: each Count-th seed, from position Index on.
type Shard struct {
	Index int `json:"index"`
	Count int `json:"count"`
}

// Has reports whether the shard has the seed at a position. The zero Shard has all seeds.
func (s Shard) Has(position int) bool { return s.Count == 0 || position%s.Count == s.Index }

// Merge returns the result of a comparison from the results of all its shards, in any order. It is the same as without shards.
func Merge(shards []*Result) (*Result, error) {
	shards, err := inOrder(shards)
	if err != nil {
		return nil, err
	}
	merged := withoutRuns(shards[0])
	if merged.Seeds, err = seedsOf(shards); err != nil {
		return nil, err
	}
	merged.Backtest = shards[0].Backtest
	for _, r := range shards {
		merged.Interrupted = merged.Interrupted || r.Interrupted
		for i := range merged.Scenario.Profiles {
			profile := &merged.Scenario.Profiles[i]
			profile.Runs = append(profile.Runs, r.Scenario.Profiles[i].Runs...)
		}
	}
	for i := range merged.Scenario.Profiles {
		slices.SortFunc(merged.Scenario.Profiles[i].Runs, func(a, b Run) int {
			return slices.Index(merged.Seeds, a.Seed) - slices.Index(merged.Seeds, b.Seed)
		})
	}
	merged.Scenario.Compare()
	merged.Conclude()
	return merged, nil
}

// inOrder returns the results of all shards of a comparison, which have a Shard, by their index.
func inOrder(shards []*Result) ([]*Result, error) {
	shards = slices.Clone(shards)
	for _, r := range shards {
		if r.Shard.Count != len(shards) {
			return nil, fmt.Errorf("found %d results: must be each of the %d shards of a comparison once", len(shards), r.Shard.Count)
		}
	}
	slices.SortFunc(shards, func(a, b *Result) int { return a.Shard.Index - b.Shard.Index })
	common := withoutRuns(shards[0])
	for i, r := range shards {
		if r.Shard.Index != i {
			return nil, fmt.Errorf("found no shard %d of %d", i, len(shards))
		}
		if !slices.Equal(r.Profiles, common.Profiles) {
			return nil, fmt.Errorf("shard 0 has the profiles %s, shard %d %s: must be of one comparison",
				strings.Join(common.Profiles, ", "), i, strings.Join(r.Profiles, ", "))
		}
		if !reflect.DeepEqual(withoutRuns(r), common) {
			return nil, fmt.Errorf("shards 0 and %d differ in their cluster or settings: must be of one comparison", i)
		}
	}
	return shards, nil
}

// seedsOf returns the seeds of all shards, in the order of the comparison.
func seedsOf(shards []*Result) ([]uint64, error) {
	var seeds []uint64
	total := 0
	for _, r := range shards {
		total += len(r.Seeds)
	}
	for i, r := range shards {
		if want := (total - i + len(shards) - 1) / len(shards); len(r.Seeds) != want {
			return nil, fmt.Errorf("shard %d has %d seeds: must have %d of %d", i, len(r.Seeds), want, total)
		}
	}
	for i := range total {
		seeds = append(seeds, shards[i%len(shards)].Seeds[i/len(shards)])
	}
	return seeds, nil
}

// withoutRuns returns a copy of the parts that all shards of a comparison have in common.
func withoutRuns(r *Result) *Result {
	common := r.WithoutRuns()
	common.Shard, common.Seeds, common.Backtest, common.Interrupted = nil, nil, nil, false
	common.Recommendation, common.Notes = nil, nil
	for i := range common.Scenario.Profiles {
		common.Scenario.Profiles[i].Figures, common.Scenario.Profiles[i].Verdict = nil, nil
	}
	return common
}
