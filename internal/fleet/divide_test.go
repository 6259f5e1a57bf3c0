package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/fit"
)

// divideSlowly divides replicas one by one: each to the cluster with the fewest replicas that still fits one, or else whose limit leaves
// one. Of equal clusters, the one with the most left comes first, and of these the last one.
func divideSlowly(replicas int64, fits, left []int64) []int64 {
	shares := make([]int64, len(fits))
	for _, bounds := range [][]int64{fits, left} {
		base := slices.Clone(shares)
		for ; replicas > 0; replicas-- {
			best := -1
			for i := range shares {
				if shares[i] >= bounds[i] {
					continue
				}
				added := func(i int) int64 { return shares[i] - base[i] }
				if best < 0 || added(i) < added(best) || added(i) == added(best) && bounds[i]-base[i] >= bounds[best]-base[best] {
					best = i
				}
			}
			if best < 0 {
				break
			}
			shares[best]++
		}
	}
	return shares
}

// TestDivide checks divide with a simple model, and that all replicas are divided if the limits permit, that no share exceeds what fits
// while more fit another cluster, and that no share exceeds a limit.
func TestDivide(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "clusters")
		replicas := rapid.Int64Range(0, 60).Draw(rt, "replicas")
		left := rapid.SliceOfN(rapid.OneOf(rapid.Just(int64(fit.MaxReplicas)), rapid.Int64Range(0, 30)), n, n).Draw(rt, "left")
		fits := rapid.SliceOfN(rapid.Int64Range(0, 20), n, n).Draw(rt, "fits")
		for i := range fits {
			fits[i] = min(fits[i], left[i])
		}
		got := divide(replicas, fits, left)
		if want := divideSlowly(replicas, fits, left); !slices.Equal(got, want) {
			rt.Fatalf("%d over %v, limits %v: got %v, want %v", replicas, fits, left, got, want)
		}
		var sum, most int64
		for i := range got {
			sum, most = sum+got[i], most+left[i]
			if got[i] > left[i] {
				rt.Fatalf("%v exceeds the limits %v", got, left)
			}
			for j := range got {
				if got[i] > fits[i] && got[j] < fits[j] {
					rt.Fatalf("%v: more fit cluster %d", got, j)
				}
			}
		}
		if sum != min(replicas, most) {
			rt.Fatalf("%v: the sum is %d, not %d", got, sum, replicas)
		}
	})
}

// divided returns a placement whose replicas of 1 CPU are divided over clusters.
func divided(t testing.TB, name string, replicas int, spec string) *v1beta1.Placement {
	p := withWorkload(t, name, 1, replicas, spec)
	p.Annotations[v1beta1.AnnotationWorkload] = strings.Replace(p.Annotations[v1beta1.AnnotationWorkload], "{", `{"divide": true, `, 1)
	return p
}

// sharesOf returns the promised replicas, such as "a:4 b:6".
func sharesOf(r *Result) string {
	var out []string
	for _, cluster := range slices.Sorted(maps.Keys(r.Promises)) {
		out = append(out, fmt.Sprintf("%s:%d", cluster, r.Promises[cluster].Replicas))
	}
	return strings.Join(out, " ")
}

// TestDivided checks the division of 10 replicas of 1 CPU over a with 4 CPUs, and b and c with 100: 3, 3 and 4.
// The division remains while capacity, promises of other placements and the controller change, and changes with the replicas.
func TestDivided(t *testing.T) {
	s := hub("a", "b", "c", "d")
	for cluster, cores := range map[string]int64{"a": 4, "b": 100, "c": 100, "d": 0} {
		s.SetCapacity(capacityOf(t, cluster, now, cores, nil))
	}
	add(s, divided(t, "web", 10, "{numberOfClusters: 3}"))
	r := decideNow(t, s, "web")
	if got := sharesOf(r); got != "a:3 b:3 c:4" { // d fits none
		t.Fatalf("got %s", got)
	}
	add(s, withWorkload(t, "other", 1, 3, "{}"))
	decideNow(t, s, "other")
	later := now.Add(time.Minute)
	s.SetCapacity(capacityOf(t, "a", later, 0, map[string]int32{"web": 3}))
	s.SetCapacity(capacityOf(t, "b", later, 1, nil))
	if r, _ = s.Decide(keyOf("web"), later); sharesOf(r) != "a:3 b:3 c:4" {
		t.Errorf("changed without a reason to %s", sharesOf(r))
	}
	restarted := hub("a", "b", "c", "d")
	p := divided(t, "web", 10, "{numberOfClusters: 3}")
	restarted.SetWorkload(p, nil, nil)
	restarted.RestorePromises(keyOf("web"), r.Promises)
	restarted.AddPlacement(p, []string{"a", "b", "c"})
	if r = decideNow(t, restarted, "web"); sharesOf(r) != "a:3 b:3 c:4" {
		t.Errorf("changed by a restart to %s", sharesOf(r))
	}
	// 40 replicas: the 3 that run in a and 0 more, b has 1 CPU and has promised 3 to other, and c has the rest of its 97.
	s.SetWorkload(divided(t, "web", 40, "{numberOfClusters: 3}"), nil, nil)
	if r, _ = s.Decide(keyOf("web"), later); sharesOf(r) != "a:3 b:0 c:37" {
		t.Errorf("40 replicas: got %s", sharesOf(r))
	}
	// 3, 0 and 97 fit: the rest, 100, is divided equally, 33, 34 and 33.
	s.SetWorkload(divided(t, "web", 200, "{numberOfClusters: 3}"), nil, nil)
	if r, _ = s.Decide(keyOf("web"), later); sharesOf(r) != "a:36 b:34 c:130" {
		t.Errorf("200 replicas: got %s", sharesOf(r))
	}
}

// TestDividedScores checks that FitReplicas scores the share of a cluster, 10/2 = 5 rounded up: 5 of 10 that fit are 0.
func TestDividedScores(t *testing.T) {
	s := hub("a", "b", "c")
	for cluster, cores := range map[string]int64{"a": 5, "b": 10, "c": 1} {
		s.SetCapacity(capacityOf(t, cluster, now, cores, nil))
	}
	add(s, divided(t, "web", 10, "{numberOfClusters: 2, prioritizerPolicy: {mode: Exact, configurations: [{name: FitReplicas}]}}"))
	r, _ := s.Preview(keyOf("web"), now)
	want := map[string]int64{"a": 0, "b": 100, "c": -80}
	for _, c := range r.Ranking() {
		if c.Scores["FitReplicas"].Score != want[c.Name] {
			t.Errorf("%s: got %d, want %d", c.Name, c.Scores["FitReplicas"].Score, want[c.Name])
		}
		if (c.Replicas != nil) != c.Chosen || c.Chosen && *c.Replicas != 5 {
			t.Errorf("%s: replicas %v", c.Name, c.Replicas)
		}
	}
}
