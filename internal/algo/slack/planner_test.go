package slack

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// tenOf returns ten nodes of 16 cores and 64 GiB with so many pods of 1 core and
// 4 GiB.
func tenOf(pods int) Pool {
	return poolOf(map[Amounts]int{cores(16, 64): 10}, times(pods, cores(1, 4))...)
}

// Without a head, so that the rest is the whole of the rate: N pods at 10 % are
// N / 10 placeholders of (1, 4).
var restOnly = Policy{Rate: 100_000, Granularity: 5}

func TestPlannerGrowsAtOnceAndShrinksLater(t *testing.T) {
	p := NewPlanner()
	steps := []struct {
		at   int64
		pods int
		want int64 // placeholders
	}{
		{0, 100, 10},
		{1, 120, 12},   // more at once
		{2, 100, 12},   // less has to be wanted for ten minutes
		{300, 80, 12},  // still less
		{400, 130, 13}, // more once again: the ten minutes begin anew
		{500, 100, 13},
		{1099, 100, 13},
		{1100, 100, 10},
		{1101, 100, 10},
	}
	for _, step := range steps {
		got := p.Next(tenOf(step.pods), restOnly, step.at)
		if got.Rest.Count != step.want || got.Rest.Size != cores(1, 4) {
			t.Errorf("at %d with %d pods: %v, want %d of (1, 4)", step.at, step.pods, got.Rest, step.want)
		}
	}
	// A new policy does not wait.
	half := restOnly
	half.Rate = 50_000
	if got := p.Next(tenOf(100), half, 1102); got.Rest.Count != 5 {
		t.Errorf("half the rate: %v, want 5", got.Rest)
	}
}

// A new policy whose pool is empty may be a slip of the hand: what is held stays
// for as long as if nodes had gone.
func TestPlannerKeepsGroupsIfNewPoolIsEmpty(t *testing.T) {
	p := NewPlanner()
	p.Next(tenOf(100), restOnly, 0)
	half := restOnly
	half.Rate = 50_000
	for at, want := range map[int64]int64{1: 10, 600: 10, 601: 0} {
		q := *p
		q.Next(poolOf(nil), half, 1)
		if got := q.Next(poolOf(nil), half, at); got.Rest.Count != want || got.Feasible {
			t.Errorf("at %d: %v, feasible %t, want %d", at, got.Rest, got.Feasible, want)
		}
	}
}

// The size of placeholders stays while pods come and go, and only their number
// follows.
func TestPlannerKeepsTheSize(t *testing.T) {
	p := NewPlanner()
	// E = (10.3, 41.2): 11 placeholders of (0.94, 3.75) would do; it is the pitch
	// that stays, and the first size with it.
	first := p.Next(tenOf(103), restOnly, 0).Rest
	for pods := 104; pods < 160; pods++ {
		got := p.Next(tenOf(pods), restOnly, int64(pods)).Rest
		if got.Size != first.Size {
			t.Fatalf("%d pods: %v, the first size was %v", pods, got.Size, first.Size)
		}
	}
	// Nodes four times as small, of 4 and 16: s = (0.8, 3.2), a fifth less than (1, 4).
	small := poolOf(map[Amounts]int{cores(4, 16): 40}, times(160, cores(1, 4))...)
	if got := p.Next(small, restOnly, 1000).Rest; got.Size == first.Size {
		t.Errorf("nodes four times as small: %v, as before", got.Size)
	}
}

// What does not fit any more goes at once.
func TestPlannerReplacesGroupsThatDoNotFit(t *testing.T) {
	p := NewPlanner()
	p.Next(poolOf(map[Amounts]int{cores(64, 256): 3}, times(30, cores(8, 32))...), usual, 0)
	pool := poolOf(map[Amounts]int{cores(4, 16): 30}, times(30, cores(2, 8))...)
	got := p.Next(pool, usual, 1)
	for _, g := range append(got.Head, got.Rest) {
		if !fitsAny(g.Size, pool.Shapes) {
			t.Errorf("%v is held, and fits no node", g)
		}
	}
}

// Nodes that are all gone for a moment are no reason to drop everything.
func TestPlannerKeepsGroupsWithoutNodes(t *testing.T) {
	p := NewPlanner()
	before := p.Next(tenOf(100), usual, 0)
	l := NewLedger()
	l.SetNode("node-0", Node{InPool: true, Allocatable: cores(16, 64)})
	l.SetPod("pod", Pod{Node: "node-0", Requests: cores(1, 4)})
	if got := p.Next(l.Pool(), usual, 1); got.Rest != before.Rest || !reflect.DeepEqual(got.Head, before.Head) {
		t.Errorf("%v and %v, want what was there: %v and %v", got.Head, got.Rest, before.Head, before.Rest)
	}
	if got := p.Next(l.Pool(), usual, 601); got.Rest.Count != 0 {
		t.Errorf("after ten minutes: %v", got.Rest)
	}
}

// A planner that goes on where another ended does as that one would have done.
func TestPlannerResumes(t *testing.T) {
	a, b := NewPlanner(), NewPlanner()
	plan := a.Next(tenOf(103), restOnly, 0)
	b.Resume(restOnly, plan.Head, plan.Rest)
	x, y := a.Next(tenOf(110), restOnly, 1), b.Next(tenOf(110), restOnly, 1)
	if x.Rest != y.Rest {
		t.Errorf("%v, after a restart %v", x.Rest, y.Rest)
	}
}

// Whatever happens to the pool, what is held keeps the promise, at once.
func TestPlannerInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, now := NewPlanner(), NewPlanner(), int64(0)
		policy := drawPolicy(t)
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			_, pool := drawPool(t)
			now += rapid.Int64Range(0, 1000).Draw(t, "seconds")
			plan := p.Next(pool, policy, now)
			if pool.Nodes > 0 {
				checkHeld(t, plan, pool, policy)
			}
			if again := q.Next(pool, policy, now); !reflect.DeepEqual(plan, again) {
				t.Fatalf("the same again: %+v\n%+v", plan, again)
			}
		}
	})
}

// checkHeld checks the promise of a plan that may hold more than is wanted: a
// biggest pod that is gone may still have its room.
func checkHeld(t *rapid.T, plan Plan, pool Pool, policy Policy) {
	fresh := compute(pool, policy)
	if plan.Feasible != fresh.Feasible {
		t.Fatalf("feasible %t, computed %t", plan.Feasible, fresh.Feasible)
	}
	for _, g := range append(append([]Group{}, plan.Head...), plan.Rest) {
		if g.Count > 0 && !fitsAny(g.Size, pool.Shapes) {
			t.Fatalf("%v fits no node", g)
		}
	}
	if plan.Feasible && !fresh.Target.FitsIn(plan.Total) {
		t.Fatalf("total %v is less than the target %v", plan.Total, fresh.Target)
	}
	if !covers(plan.Head, fresh.Head) {
		t.Fatalf("head %v does not cover %v", plan.Head, fresh.Head)
	}
	if policy.MaxPlaceholders > 1 && plan.Rest.Count+int64(len(plan.Head)) > policy.MaxPlaceholders {
		t.Fatalf("%d placeholders, at most %d", plan.Rest.Count+int64(len(plan.Head)), policy.MaxPlaceholders)
	}
}
