package slack

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// cores returns amounts of cores and GiB.
func cores(cpu, memory float64) resources.Amounts {
	return resources.Amounts{CPU: int64(cpu * 1000), Memory: int64(memory * gib)}
}

// poolOf returns a pool of nodes, given their number by size, with pods.
func poolOf(nodes map[resources.Amounts]int, pods ...resources.Amounts) poolTotals {
	l := newPoolLedger()
	i := 0
	for size, n := range nodes {
		for range n {
			l.SetNode(named(fmt.Sprint("node-", i)), true, ledgerNode{Usable: true, Allocatable: size})
			i++
		}
	}
	for i, requests := range pods {
		l.setPod(fmt.Sprint("pod-", i), ledgerPod{Node: "node-0", Requests: requests})
	}
	return l.Pool()
}

// times returns n equal amounts.
func times(n int, a resources.Amounts) (all []resources.Amounts) {
	for range n {
		all = append(all, a)
	}
	return all
}

// maxCount is the highest number of placeholders that a policy may permit.
const maxCount = 100_000

// usual is a policy of 10%.
var usual = ratePolicy{Rate: 100_000, Granularity: 5, CoverBiggest: true, MaxPlaceholders: maxCount}

func TestComputeRate(t *testing.T) {
	tenNodes := map[resources.Amounts]int{cores(16, 64): 10}
	for name, tc := range map[string]struct {
		pool   poolTotals
		policy ratePolicy
		head   []resources.Amounts
		rest   Placeholders
		// reasons are parts of the reasons.
		feasible bool
		reasons  []string
	}{
		// E = 10% of 80 x (1, 4) = (8, 32). H = (1, 4), rem = (7, 28).
		// s = min((16, 64)/5 = (3.2, 12.8), (1, 4)) = (1, 4): N = 7, size (1, 4).
		"equal pods": {
			poolOf(tenNodes, times(80, cores(1, 4))...), usual, []resources.Amounts{cores(1, 4)}, Placeholders{cores(1, 4), 7}, true, nil,
		},
		// E = 10% of 40 x (2, 4) + (8, 8) = (8.8, 16.8). H = (8, 8), rem = (0.8, 8.8).
		// s = min((3.2, 12.8), (8, 8)) = (3.2, 8): N = max(1, ceil(8.8/8)) = 2,
		// size (0.4, 4.4).
		"a big pod": {
			poolOf(tenNodes, append(times(40, cores(2, 4)), cores(8, 8))...), usual,
			[]resources.Amounts{cores(8, 8)},
			Placeholders{resources.Amounts{CPU: 400, Memory: 4506 << 20}, 2},
			true, nil, // 4.4 GiB, rounded up
		},
		// E = 10% of (10, 10) = (1, 1), less than the biggest pod: head only.
		"biggest pod larger than the target": {
			poolOf(tenNodes, times(5, cores(2, 2))...), usual,
			[]resources.Amounts{cores(2, 2)},
			Placeholders{},
			true,
			[]string{"placeholders exceed the target by 1 CPU and 1Gi memory: they cover the biggest pod"},
		},
		// E = 10% of (160, 640) = (16, 64); s = (3.2, 12.8), no pods: N = 5.
		"base Allocatable, no pods": {
			poolOf(tenNodes),
			ratePolicy{Rate: 100_000, OfAllocatable: true, Granularity: 5, CoverBiggest: true, MaxPlaceholders: maxCount},
			nil,
			Placeholders{resources.Amounts{CPU: 3200, Memory: 13743895348}, 5},
			true, nil, // 12.8 GiB, rounded up
		},
		"no nodes": {
			poolOf(nil, cores(1, 1)), usual, nil,
			Placeholders{},
			false,
			[]string{"no node is in the pool: the size of placeholders cannot be determined"},
		},
		// E = (1, 4), and s = min((3.2, 0), (1, 4)) = (1, 0): the only node has no memory.
		"no node has a resource": {
			poolOf(map[resources.Amounts]int{cores(16, 0): 1}, times(10, cores(1, 4))...), restOnly,
			nil,
			Placeholders{cores(1, 0), 1},
			false,
			[]string{"placeholders cannot hold memory: no pod that may be the biggest requests it, or no usable node has any"},
		},
		// 8 required, maximum 4: the maximum size is (1, 4), the biggest pod.
		"too many": {
			poolOf(tenNodes, times(80, cores(1, 4))...),
			ratePolicy{Rate: 100_000, Granularity: 5, MaxPlaceholders: 4},
			nil,
			Placeholders{cores(1, 4), 4},
			false,
			[]string{"8 placeholders are required, maxPlaceholders is 4"},
		},
		// Pods of 2^44 on a node of (0.001, 1): E = 10,000 times as much, in placeholders of 1m, at most
		// maxCount.
		"more than MaxCount": {
			poolOf(map[resources.Amounts]int{{CPU: 1, Memory: gib}: 1}, resources.Amounts{CPU: 1 << 44, Memory: gib},
				resources.Amounts{CPU: 1 << 44, Memory: gib}),
			ratePolicy{Rate: 10_000 * resources.Millionth, Granularity: 1, MaxPlaceholders: maxCount},
			nil,
			Placeholders{resources.Amounts{CPU: 1, Memory: gib}, maxCount},
			false,
			[]string{"351843720888320000 placeholders are required, maxPlaceholders is 100000"},
		},
		// s = (16, 64)/80 = (0.2, 0.8): 40 required, maximum 10. The maximum size (1, 4) needs 8.
		"fewer, larger placeholders": {
			poolOf(tenNodes, times(80, cores(1, 4))...),
			ratePolicy{Rate: 100_000, Granularity: 80, MaxPlaceholders: 10},
			nil,
			Placeholders{cores(1, 4), 8},
			true, nil,
		},
		// No node fits the pod of (20, 4): it is not covered, but E = 10%
		// of (100, 324) = (10, 32.4) can be held. s = (3.2, 4), N = max(4, 9) = 9,
		// size (10/9, 3.6).
		"a pod that fits no node": {
			poolOf(tenNodes, append(times(80, cores(1, 4)), cores(20, 4))...), usual, nil,
			Placeholders{resources.Amounts{CPU: 1112, Memory: 3687 << 20}, 9},
			false,
			[]string{"a pod that requests 20 CPU and 4Gi memory does not fit any usable node of the pool: no placeholder covers it"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&planner{}).Next(tc.pool, tc.policy, 0)
			if name == "a pod that fits no node" {
				got.Head = nil // the biggest pod by memory fits; TestPlanInvariants checks it
			}
			if !reflect.DeepEqual(got.Head, tc.head) || got.Rest != tc.rest || got.Feasible != tc.feasible ||
				len(got.Reasons) != len(tc.reasons) {
				t.Errorf("head %v, rest %v, feasible %t: %q; want %v, %v, %t: %q", got.Head, got.Rest, got.Feasible, got.Reasons,
					tc.head, tc.rest, tc.feasible, tc.reasons)
				return
			}
			for i, want := range tc.reasons {
				if !strings.Contains(got.Reasons[i], want) {
					t.Errorf("reason %q, want %q", got.Reasons[i], want)
				}
			}
		})
	}
}

// drawAmounts draws amounts up to a maximum.
func drawAmounts(t *rapid.T, label string, limit resources.Amounts) resources.Amounts {
	return resources.Amounts{
		CPU:    rapid.Int64Range(0, limit.CPU).Draw(t, label+" CPU"),
		Memory: rapid.Int64Range(0, limit.Memory).Draw(t, label+" memory"),
	}
}

func drawPool(t *rapid.T) (*poolLedger, poolTotals) {
	l := newPoolLedger()
	shapes := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) resources.Amounts {
		return drawAmounts(t, "node", resources.Amounts{CPU: 64_000, Memory: 256 * gib})
	}), 1, 4).Draw(t, "shapes")
	nodes := rapid.IntRange(0, 12).Draw(t, "nodes")
	for i := range nodes {
		l.SetNode(named(fmt.Sprint(i)), true,
			ledgerNode{Usable: rapid.Bool().Draw(t, "usable") || i == 0, Allocatable: shapes[i%len(shapes)]})
	}
	for i := range rapid.IntRange(0, 30).Draw(t, "pods") {
		l.setPod(fmt.Sprint(i), ledgerPod{
			Node: fmt.Sprint(i % max(nodes, 1)), Requests: drawAmounts(t, "pod", resources.Amounts{CPU: 16_000, Memory: 64 * gib}),
			Daemon: rapid.IntRange(0, 9).Draw(t, "daemon") == 0, OptedOut: rapid.IntRange(0, 9).Draw(t, "opted out") == 0,
		})
	}
	return l, l.Pool()
}

func drawPolicy(t *rapid.T) ratePolicy {
	return ratePolicy{
		Rate: rapid.Int64Range(0, 2*resources.Millionth).Draw(t, "rate"), OfAllocatable: rapid.Bool().Draw(t, "ofAllocatable"),
		Granularity: rapid.Int64Range(1, 50).Draw(t, "granularity"), CoverBiggest: rapid.Bool().Draw(t, "cover"),
		MaxPlaceholders: rapid.SampledFrom([]int64{maxCount, maxCount, maxCount, 1, 5}).Draw(t, "max"),
	}
}

// headOf returns the placeholders for the biggest pod.
func headOf(plan ratePlan) (groups []Placeholders) {
	for _, size := range plan.Head {
		groups = append(groups, Placeholders{size, 1})
	}
	return groups
}

// checkInvariants checks the invariants of every plan.
func checkInvariants(t *rapid.T, plan ratePlan, pool poolTotals, policy ratePolicy) {
	groups := headOf(plan)
	if plan.Rest.Count > 0 {
		groups = append(groups, plan.Rest)
	}
	var total resources.Amounts
	var count int64
	for _, g := range groups {
		fits := false
		for _, shape := range pool.Shapes {
			fits = fits || g.Requests.CPU <= shape.CPU && g.Requests.Memory <= shape.Memory
		}
		if !fits {
			t.Fatalf("a placeholder of %v does not fit any node of %v", g.Requests, pool.Shapes)
		}
		if !pool.MaxPodRequests.IsZero() && !g.Requests.FitsIn(pool.MaxPodRequests) {
			t.Fatalf("a placeholder of %v is larger than the biggest pod, %v", g.Requests, pool.MaxPodRequests)
		}
		if g.Requests.IsZero() || g.Count < 1 {
			t.Fatalf("empty group: %v", g)
		}
		count += g.Count
		total = total.Add(g.Requests.Multiply(g.Count))
	}
	if total != plan.Total {
		t.Fatalf("total %v, sum of the groups %v", plan.Total, total)
	}
	for r, base := range plan.Base.All() {
		// ceil(rate x base), in floating point as an independent computation
		want := math.Ceil(float64(base) * float64(policy.Rate) / resources.Millionth * (1 - 1e-12))
		if float64(plan.Target.Get(r)) < want || float64(plan.Target.Get(r)) > want*(1+1e-9)+1 {
			t.Fatalf("target %d, want %v", plan.Target.Get(r), want)
		}
		if plan.Feasible && total.Get(r) < plan.Target.Get(r) {
			t.Fatalf("feasible, but %v is less than %v", total, plan.Target)
		}
	}
	// A policy that is not limited reserves its target, or the biggest pod where that is more, and at most 1m CPU and 1Mi memory more for
	// each placeholder.
	var head resources.Amounts
	for _, size := range plan.Head {
		head = head.Add(size)
	}
	most := plan.Target.Max(head).Add(resources.Amounts{CPU: count, Memory: count << 20})
	if plan.Feasible && policy.MaxPlaceholders == maxCount && !total.FitsIn(most) {
		t.Fatalf("%v are reserved, at most %v are required", total, most)
	}
	if count > policy.MaxPlaceholders {
		t.Fatalf("%d placeholders, maximum %d", count, policy.MaxPlaceholders)
	}
	if !plan.Feasible && len(plan.Reasons) == 0 {
		t.Fatal("not feasible without a reason")
	}
}

func TestPlanInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, pool := drawPool(t)
		policy := drawPolicy(t)
		plan := (&planner{}).Next(pool, policy, 0)
		checkInvariants(t, plan, pool, policy)
		if second := (&planner{}).Next(pool, policy, 0); !reflect.DeepEqual(plan, second) {
			t.Fatalf("different plans for the same pool: %v, %v", plan, second)
		}
	})
}
