package slack

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

func TestFloorsAndCeilings(t *testing.T) {
	rate := func(r int64, floor, ceiling bound) ratePolicy {
		return ratePolicy{Rate: r, Granularity: 5, MaxPlaceholders: maxCount, Floor: floor, Ceiling: ceiling}
	}
	covered := func(p ratePolicy) ratePolicy { p.CoverBiggest = true; return p }
	// Ten nodes of (16, 64) with 100 pods of (1, 4): base (100, 400), s = min((3.2, 12.8), (1, 4)) = (1, 4).
	for name, tc := range map[string]struct {
		policy       ratePolicy
		target       resources.Amounts
		count        int64
		size         resources.Amounts
		head         int
		infeasible   bool
		reasonSubstr string
	}{
		// 5% is (5, 20), the floor is 8 cores: (8, 20) in 8 of (1, 2.5).
		"a floor of CPU": {
			policy: rate(50_000, bound{Amounts: cores(8, 0)}, bound{}), target: cores(8, 20), count: 8,
			size: resources.Amounts{CPU: 1000, Memory: 2560 << 20},
		},
		// Rate 0 has a remainder of 0; 6 placeholders of s.
		"a floor of placeholders": {
			policy: rate(0, bound{Count: 6}, bound{}), target: cores(6, 24), count: 6, size: cores(1, 4),
		},
		// The head (1, 4) is the first of 6.
		"a floor of placeholders with a head": {
			policy: covered(rate(0, bound{Count: 6}, bound{})), target: cores(6, 24), count: 5, size: cores(1, 4), head: 1,
		},
		// 50% is (50, 200); the ceiling is 7 cores: (7, 200) needs 50 by memory, of (0.14, 4).
		"a ceiling of CPU": {
			policy: rate(500_000, bound{}, bound{Amounts: cores(7, 0)}), target: cores(7, 200), count: 50,
			size:         resources.Amounts{CPU: 140, Memory: 4 << 30},
			reasonSubstr: "spec.maximum limits the target to 7 CPU and 200Gi memory: the rate and the minimum require 50 CPU and 200Gi memory",
		},
		"a ceiling of placeholders": {
			policy: rate(500_000, bound{}, bound{Count: 3}), target: cores(3, 12), count: 3, size: cores(1, 4),
			reasonSubstr: "spec.maximum limits the target to 3 CPU and 12Gi memory",
		},
		"a ceiling below the biggest pod": {
			policy: covered(rate(0, bound{}, bound{Amounts: resources.Amounts{CPU: 500}})), infeasible: true,
			reasonSubstr: "spec.maximum does not permit a placeholder for the biggest pod, which requests 1 CPU and 4Gi memory",
		},
		// The floor of 10 placeholders is (10, 40), the ceiling 4 cores: 10 smaller placeholders.
		"a ceiling below the floor in placeholders": {
			policy: rate(0, bound{Count: 10}, bound{Amounts: cores(4, 0)}), target: cores(4, 40), count: 10,
			size: resources.Amounts{CPU: 400, Memory: 4 << 30}, reasonSubstr: "spec.maximum limits the target to 4 CPU and 40Gi memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&planner{}).Next(tenOf(100), tc.policy, 0)
			if got.Target != tc.target || got.Rest != (Placeholders{tc.size, tc.count}) || len(got.Head) != tc.head ||
				got.Feasible == tc.infeasible {
				t.Errorf("target %v, rest %+v, head %v, feasible %t; want %v, %d of %v, %d", got.Target, got.Rest, got.Head, got.Feasible,
					tc.target, tc.count, tc.size, tc.head)
			}
			if reasons := strings.Join(got.Reasons, "; "); !strings.Contains(reasons, tc.reasonSubstr) ||
				strings.Count(reasons, "limits") > 1 {
				t.Errorf("reasons %q, want %q", reasons, tc.reasonSubstr)
			}
		})
	}
}

// TestMaxPlaceholdersLimitsTheHead checks that a policy with one placeholder does not cover two biggest pods: (12, 48) fits no node,
// (12, 2) and (1, 48) fit one each.
func TestMaxPlaceholdersLimitsTheHead(t *testing.T) {
	pool := poolOf(map[resources.Amounts]int{cores(10, 64): 1, cores(16, 32): 1}, cores(12, 2), cores(1, 48))
	got := (&planner{}).Next(pool, ratePolicy{Granularity: 5, CoverBiggest: true, MaxPlaceholders: 1}, 0)
	want := "spec.maxPlaceholders does not permit a placeholder for the biggest pod, which requests 1 CPU and 48Gi memory"
	if got.Total != cores(12, 2) || got.Feasible || !strings.HasPrefix(strings.Join(got.Reasons, "; "), want) {
		t.Errorf("total %v, feasible %t, reasons %q; want 12 CPU and 2Gi memory, %q", got.Total, got.Feasible, got.Reasons, want)
	}
}

// TestFloorsAndCeilingsHold checks successive plans of changing pools: the placeholders never exceed the ceiling, and
// a feasible plan reaches the floor where the ceiling permits it.
func TestFloorsAndCeilingsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amounts := func(name string) resources.Amounts {
			return resources.Amounts{
				CPU:    rapid.Int64Range(0, 40_000).Draw(t, name+" CPU"),
				Memory: rapid.Int64Range(0, 160).Draw(t, name+" memory") << 30,
			}
		}
		policy := ratePolicy{
			Rate: rapid.Int64Range(0, 1_000_000).Draw(t, "rate"), Granularity: rapid.Int64Range(1, 10).Draw(t, "granularity"),
			MaxPlaceholders: maxCount, CoverBiggest: rapid.Bool().Draw(t, "cover"),
			Floor:   bound{amounts("floor"), rapid.Int64Range(0, 20).Draw(t, "floor count")},
			Ceiling: bound{amounts("ceiling"), rapid.Int64Range(0, 40).Draw(t, "ceiling count")},
		}
		p := &planner{}
		for i := range rapid.IntRange(1, 6).Draw(t, "steps") {
			pool := tenOf(rapid.IntRange(1, 150).Draw(t, "pods"))
			plan := p.Next(pool, policy, int64(i)*rapid.Int64Range(1, 700).Draw(t, "seconds"))
			count := plan.Rest.Count + int64(len(plan.Head))
			if policy.Ceiling.excludes(plan.Total, count) {
				t.Fatalf("%d placeholders of %v exceed the ceiling %+v", count, plan.Total, policy.Ceiling)
			}
			if !plan.Feasible || plan.required != plan.Target {
				continue
			}
			if !policy.Floor.Amounts.FitsIn(plan.Total) || count < policy.Floor.Count {
				t.Fatalf("%d placeholders of %v are below the floor %+v", count, plan.Total, policy.Floor)
			}
		}
	})
}
