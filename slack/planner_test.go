package slack

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// tenOf returns ten nodes of 16 cores and 64 GiB with a number of pods of 1 core and 4 GiB.
func tenOf(pods int) poolTotals {
	return poolOf(map[resources.Amounts]int{cores(16, 64): 10}, times(pods, cores(1, 4))...)
}

// restOnly is a policy of 10% without a head: N pods need N / 10 placeholders of (1, 4).
var restOnly = ratePolicy{Rate: 100_000, Granularity: 5, MaxPlaceholders: maxCount}

func TestPlannerGrowsAtOnceAndShrinksLater(t *testing.T) {
	p := &planner{}
	for _, step := range []struct {
		at   int64
		pods int
		want int64 // placeholders
	}{
		{0, 100, 10},
		{1, 120, 12},   // grows at once
		{2, 100, 12},   // the cool-down starts
		{300, 80, 12},  // still in the cool-down
		{400, 130, 13}, // grows: the cool-down is reset
		{500, 100, 13},
		{1099, 100, 13},
		{1100, 100, 10},
		{1101, 100, 10},
		{1200, 90, 10}, // the cool-down starts
		{1700, 80, 10},
		{1799, 10, 10}, // a dip at the end of the cool-down
		{1800, 10, 9},  // 90 pods ran until 1700
		{2300, 10, 8},
		{2399, 10, 1},
	} {
		got := p.Next(tenOf(step.pods), restOnly, step.at)
		// Exactly while more is held than required, the cool-down is the reason.
		coolingDown := step.want*10 > int64(step.pods)
		reason := len(got.Reasons) == 1 && strings.Contains(got.Reasons[0], "less is required, the cool-down is not over")
		if (got.CoolDownEnd != 0) != coolingDown || reason != coolingDown || !got.Feasible {
			t.Errorf("at %d: cool-down ends at %d, feasible %t, reasons %q", step.at, got.CoolDownEnd, got.Feasible, got.Reasons)
		}
		if got.Rest.Count != step.want || got.Rest.Requests != cores(1, 4) {
			t.Errorf("at %d with %d pods: %v, want %d of (1, 4)", step.at, step.pods, got.Rest, step.want)
		}
	}
	// A changed policy takes effect at once.
	half := restOnly
	half.Rate = 50_000
	if got := p.Next(tenOf(100), half, 1102); got.Rest.Count != 5 {
		t.Errorf("half the rate: %v, want 5 placeholders", got.Rest)
	}
}

// TestPlannerKeepsGroupsIfNewPoolIsEmpty checks that a changed policy with an empty pool, probably a
// selector typo, keeps the groups, and takes effect when the pool has nodes.
func TestPlannerKeepsGroupsIfNewPoolIsEmpty(t *testing.T) {
	p := &planner{}
	p.Next(tenOf(100), restOnly, 0)
	half := restOnly
	half.Rate = 50_000
	for _, at := range []int64{1, 600, 601, 100_000} {
		if got := p.Next(poolOf(nil), half, at); got.Rest.Count != 10 || got.Feasible || !got.NoNodes {
			t.Errorf("at %d: %v, feasible %t, no nodes %t; want 10, false, true", at, got.Rest, got.Feasible, got.NoNodes)
		}
	}
	if got := p.Next(tenOf(100), half, 100_001); got.Rest.Count != 5 || got.NoNodes {
		t.Errorf("with nodes: %v, want 5 placeholders", got.Rest)
	}
	// A policy that wants no placeholders has none, with or without nodes.
	none := ratePolicy{Granularity: 5, MaxPlaceholders: maxCount}
	if got := p.Next(poolOf(nil), none, 100_002); got.Rest.Count != 0 || !got.Feasible || got.NoNodes {
		t.Errorf("rate 0: %v, feasible %t", got.Rest, got.Feasible)
	}
}

// TestPlannerKeepsTheSize checks that the number of placeholders follows the number of pods, with a
// constant size.
func TestPlannerKeepsTheSize(t *testing.T) {
	p := &planner{}
	// E = (10.3, 41.2): 11 placeholders of (0.94, 3.75). The ideal size is (1, 4) for any number of pods,
	// so the first size is kept.
	first := p.Next(tenOf(103), restOnly, 0).Rest
	for pods := 104; pods < 160; pods++ {
		got := p.Next(tenOf(pods), restOnly, int64(pods)).Rest
		if got.Requests != first.Requests {
			t.Fatalf("%d pods: size %v, first size %v", pods, got.Requests, first.Requests)
		}
	}
	// Smaller nodes of (4, 16): s = (0.8, 3.2), a fifth less than (1, 4).
	small := poolOf(map[resources.Amounts]int{cores(4, 16): 40}, times(160, cores(1, 4))...)
	if got := p.Next(small, restOnly, 1000).Rest; got.Requests == first.Requests {
		t.Errorf("smaller nodes: size %v did not change", got.Requests)
	}
}

// TestPlannerKeepsSizeInSmallPools checks with few placeholders that pods that are added one by one change the number of placeholders and not
// their size: the fifth pod requires 2.3 placeholders of a fifth of a node, and the first plan has two of three quarters of this size.
func TestPlannerKeepsSizeInSmallPools(t *testing.T) {
	node, pods := resources.Amounts{CPU: 300, Memory: 4 * gib}, times(4, resources.Amounts{CPU: 150, Memory: 16 << 20})
	policy := ratePolicy{Rate: 400_000, Granularity: 5, CoverBiggest: true, MaxPlaceholders: maxCount}
	p, restarted := &planner{}, &planner{}
	pool := func() poolTotals { return poolOf(map[resources.Amounts]int{node: 4}, pods...) }
	first := p.Next(pool(), policy, 0)
	restarted.Resume(first.Head, first.Rest)
	for i := range 8 {
		pods = append(pods, resources.Amounts{CPU: 120, Memory: 16 << 20})
		plan := p.Next(pool(), policy, int64(60*i))
		if plan.Rest.Requests != first.Rest.Requests || !plan.Target.FitsIn(plan.Total) {
			t.Errorf("%d pods: %v of %v, want the size of the first plan, %v", len(pods), plan.Rest, plan.Target, first.Rest.Requests)
		}
		if again := restarted.Next(pool(), policy, int64(60*i)); again.Rest != plan.Rest {
			t.Errorf("%d pods: %v, after Resume %v", len(pods), plan.Rest, again.Rest)
		}
	}
}

// TestPlannerKeepsGroupsWithoutNodes checks that the groups are kept for the cool-down if no node is usable.
func TestPlannerKeepsGroupsWithoutNodes(t *testing.T) {
	p := &planner{}
	before := p.Next(tenOf(100), usual, 0)
	l := newPoolLedger()
	l.SetNode(named("node-0"), true, ledgerNode{Allocatable: cores(16, 64)})
	l.setPod("pod", ledgerPod{Node: "node-0", Requests: cores(1, 4)})
	if got := p.Next(l.Pool(), usual, 1); got.Rest != before.Rest || !reflect.DeepEqual(got.Head, before.Head) {
		t.Errorf("head %v and rest %v, want %v and %v", got.Head, got.Rest, before.Head, before.Rest)
	}
	if got := p.Next(l.Pool(), usual, 601); got.Rest.Count != 0 {
		t.Errorf("after ten minutes: %v", got.Rest)
	}
}

// TestPlannerInvariants checks the invariants of successive plans for random pools.
func TestPlannerInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, now := &planner{}, &planner{}, int64(0)
		policy := drawPolicy(t)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			_, pool := drawPool(t)
			now += rapid.Int64Range(0, 1000).Draw(t, "seconds")
			plan := p.Next(pool, policy, now)
			if pool.Nodes > 0 {
				checkHeld(t, plan, pool, policy)
			}
			if second := q.Next(pool, policy, now); !reflect.DeepEqual(plan, second) {
				t.Fatalf("different plans for the same pools: %+v\n%+v", plan, second)
			}
		}
	})
}

// checkHeld checks the invariants of a plan that may hold more than required, such as the head for a
// deleted pod.
func checkHeld(t *rapid.T, plan ratePlan, pool poolTotals, policy ratePolicy) {
	computed := (&planner{}).Next(pool, policy, 0)
	// Placeholders that are held can reach a target that a new plan cannot, not the reverse.
	if computed.Feasible && !plan.Feasible {
		t.Fatalf("not feasible: %q, computed %v", plan.Reasons, computed.ratePlaceholders)
	}
	for _, g := range append(headOf(plan), plan.Rest) {
		if g.Count > 0 && !fitsAny(g.Requests, pool.Shapes) {
			t.Fatalf("%v does not fit any node", g)
		}
	}
	if plan.Feasible && !computed.Target.FitsIn(plan.Total) {
		t.Fatalf("total %v is less than the target %v", plan.Total, computed.Target)
	}
	if !covers(plan.Head, computed.Head) {
		t.Fatalf("head %v does not cover %v", plan.Head, computed.Head)
	}
	if plan.Rest.Count+int64(len(plan.Head)) > policy.MaxPlaceholders {
		t.Fatalf("%d placeholders, at most %d", plan.Rest.Count+int64(len(plan.Head)), policy.MaxPlaceholders)
	}
}

// TestDampedIsMaximum checks that the number is the highest number that was wanted in the last coolDown seconds: a number
// is wanted until the next one.
func TestDampedIsMaximum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d damped[int64]
		var times, values []int64
		now := rapid.Int64Range(0, 1e9).Draw(t, "start")
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.SampledFrom([]int64{0, 1, 10, 59, 120, 599, 600, 601, 3000}).Draw(t, "seconds")
			times, values = append(times, now), append(values, rapid.Int64Range(0, 9).Draw(t, "wanted"))
			last := len(values) - 1
			want := values[last]
			for i := range last {
				if times[i+1] > now-coolDown {
					want = max(want, values[i])
				}
			}
			if got, end := d.Next(values[last], now, isMore); got != want || (end != 0) != (got > values[last]) {
				t.Fatalf("times %v, wanted %v: %d until %d, want %d", times, values, got, end, want)
			}
			if len(d.candidates) > 10 {
				t.Fatalf("%d candidates of 10 numbers", len(d.candidates))
			}
		}
	})
}
