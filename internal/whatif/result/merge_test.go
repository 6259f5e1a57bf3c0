package result

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// comparison returns the result of two profiles for the seeds of a shard of seeds 10, 11, ...
func comparison(seeds int, shard Shard) *Result {
	r := &Result{
		APIVersion: APIVersion, Kind: Kind, Profiles: []string{"a", "b"},
		Scenario: Scenario{Usage: "beta", Profiles: []Profile{{Name: "a", Runs: []Run{}}, {Name: "b", Runs: []Run{}}}},
	}
	if shard.Count > 0 {
		r.Shard = &shard
	}
	for i := range seeds {
		if !shard.Has(i) {
			continue
		}
		r.Seeds = append(r.Seeds, 10+uint64(i))
		for j := range 2 {
			p := &r.Scenario.Profiles[j]
			p.Runs = append(p.Runs, Run{Seed: 10 + uint64(i), Outcome: Outcome{OverloadMinutes: float64(i * (j + 1) * (j + 1))}})
		}
	}
	r.Scenario.Compare()
	return r
}

// TestMerge verifies that the shards of a comparison, in any order, give the same as the comparison at once.
func TestMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seeds := rapid.IntRange(1, 12).Draw(t, "seeds")
		count := rapid.IntRange(1, seeds).Draw(t, "count")
		var shards []*Result
		for i := range count {
			shards = append(shards, comparison(seeds, Shard{i, count}))
		}
		got, err := Merge(rapid.Permutation(shards).Draw(t, "order"))
		must.Succeed(t, err)
		want := comparison(seeds, Shard{})
		want.Conclude()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestMergeErrors(t *testing.T) {
	change := func(r *Result, change func(*Result)) *Result { change(r); return r }
	first := func() *Result { return comparison(4, Shard{0, 2}) }
	for want, shards := range map[string][]*Result{
		"found 1 results: must be each of the 2 shards of a comparison once": {first()},
		"found 3 results: must be each of the 2 shards of a comparison once": {first(), first(), comparison(4, Shard{1, 2})},
		"found no shard 1 of 2":                 {first(), first()},
		"shard 0 has the profiles ":             {first(), change(comparison(4, Shard{1, 2}), func(r *Result) { r.Profiles = nil })},
		"shard 0 has 1 seeds: must have 2 of 3": {change(first(), func(r *Result) { r.Seeds = r.Seeds[:1] }), comparison(4, Shard{1, 2})},
	} {
		if _, err := Merge(slices.Clone(shards)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
