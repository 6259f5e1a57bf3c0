package fleet

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// A type error is reported. If it concerns some clusters, the remaining clusters are selected;
// if it concerns all, the decisions are kept.
func TestTypeErrorsAreReported(t *testing.T) {
	s := hub("a", "b")
	s.SetPlacement(newPlacement(t, "p", ""))
	if got := clustersOf(decideNow(t, s, "p")); got != "a b" {
		t.Fatalf("chosen %q", got)
	}
	broken := newPlacement(t, "p", celPredicate("managedCluster.metadata.labels.set > 4"))
	broken.Generation++
	s.SetPlacement(broken)
	v := decideNow(t, s, "p")
	if c := v.Conditions[0]; !v.KeepDecisions || c.Status != "True" || c.Reason != reasonMisconfigured ||
		!strings.Contains(c.Message, "celExpressions[0]: no such overload") || !strings.Contains(c.Message, "(cluster a and 1 more)") {
		t.Errorf("keeps %t, %+v", v.KeepDecisions, v.Conditions)
	}
	partly := newPlacement(t, "p", celPredicate("managedCluster.metadata.annotations.size.parseJSON() > 4"))
	partly.Generation += 2
	for name, size := range map[string]string{"a": `"large"`, "b": "5"} {
		object := managed(name, "set=web")
		object.Annotations = map[string]string{"size": size}
		s.SetCluster(object)
	}
	s.SetPlacement(partly)
	v = decideNow(t, s, "p")
	if c := v.Conditions[0]; v.KeepDecisions || clustersOf(v) != "b" || c.Status != "True" || c.Reason != reasonExpressionFails ||
		!strings.Contains(c.Message, "(cluster a)") || v.Conditions[1].Status != "True" {
		t.Errorf("chosen %q, keeps %t, %+v", clustersOf(v), v.KeepDecisions, v.Conditions)
	}
}

// costly exceeds the cost limit for a cluster with 110 claims: it evaluates
// 110^3 = 1,331,000 combinations.
const costly = `managedCluster.status.clusterClaims.all(a, ` +
	`managedCluster.status.clusterClaims.all(b, managedCluster.status.clusterClaims.all(c, a.name != "" || b == c)))`

// withClaims returns a cluster with n claims.
func withClaims(name string, n int) *clusterv1.ManagedCluster {
	object := managed(name, "set=web")
	for i := range n {
		object.Status.ClusterClaims = append(object.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: strings.Repeat("x", i+1)})
	}
	return object
}

// A cluster for which an expression exceeds the cost limit does not match, which is
// reported. If that concerns all clusters, the decisions are kept.
func TestCostKeepsDecisions(t *testing.T) {
	s := hub()
	s.SetCluster(withClaims("a", 1))
	s.SetCluster(withClaims("b", 1))
	s.SetPlacement(newPlacement(t, "p", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['`+costly+`']}}}]`))
	if got := clustersOf(decideNow(t, s, "p")); got != "a b" {
		t.Fatalf("chosen %q, want a b", got)
	}
	check := func(reason string, keeps bool, clusters string) {
		t.Helper()
		for range 3 {
			v := decideNow(t, s, "p")
			if v.KeepDecisions != keeps || !keeps && clustersOf(v) != clusters || v.Conditions[0].Reason != reason ||
				!strings.Contains(v.Conditions[0].Message,
					"spec.predicates[0]") || !strings.Contains(v.Conditions[0].Message, "costs more than 1000000 for one cluster") {
				t.Fatalf("keeps %t, chosen %q, %+v", v.KeepDecisions, clustersOf(v), v.Conditions)
			}
		}
	}
	s.SetCluster(withClaims("b", 110))
	check(reasonExpressionFails, false, "a")
	s.SetCluster(withClaims("a", 110))
	check(reasonMisconfigured, true, "")
	s.SetCluster(withClaims("a", 2))
	s.SetCluster(withClaims("b", 2))
	if v := decideNow(t, s, "p"); v.KeepDecisions || clustersOf(v) != "a b" {
		t.Errorf("chosen %q, %+v", clustersOf(v), v.Conditions)
	}
}

// An expression is evaluated once per version of a cluster.
func TestExpressionsAreMemoized(t *testing.T) {
	s := hub("a", "b", "c")
	s.SetPlacement(newPlacement(t, "p", celPredicate("managedCluster.metadata.labels.set == 'web'")))
	p := s.placements[keyOf("p")]
	for range 10 {
		s.SetCluster(managed("b", "set=web heartbeat="+strings.Repeat("x", len(p.outcomes[0])+1)))
		if got := clustersOf(decideNow(t, s, "p")); got != "a b c" {
			t.Fatalf("chosen %q", got)
		}
		// Results for outdated versions of clusters are dropped: their number never
		// exceeds the number of clusters.
		if n := len(p.outcomes[0]); n > 2*3+3 {
			t.Fatalf("%d results are memoized for 3 clusters, want at most 9", n)
		}
	}
	decideNow(t, s, "p")
	before := len(p.outcomes[0])
	decideNow(t, s, "p")
	if after := len(p.outcomes[0]); after != before {
		t.Errorf("%d results before, %d after a decision over the same clusters", before, after)
	}
}

// A changed or deleted score invalidates the memoized results.
func TestExpressionsSeeScores(t *testing.T) {
	s := hub("a", "b")
	s.SetPlacement(newPlacement(t, "p", celPredicate("managedCluster.scores('usage').exists(s, s.value > 50)")))
	for _, tc := range []struct {
		change func()
		want   string
	}{
		{func() {}, ""},
		{func() { s.SetScores(scored("a", "usage", map[string]int32{"cpu": 60})) }, "a"},
		{func() { s.SetScores(scored("b", "usage", map[string]int32{"cpu": 51})) }, "a b"},
		{func() { s.SetScores(scored("a", "usage", map[string]int32{"cpu": 40})) }, "b"},
		{func() { s.DeleteScores("b", "usage") }, ""},
	} {
		tc.change()
		if got := clustersOf(decideNow(t, s, "p")); got != tc.want {
			t.Errorf("chosen %q, want %q", got, tc.want)
		}
	}
}

// The number and the length of the expressions of a placement are bounded.
func TestExpressionsAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		texts []string
		want  string
	}{
		"number": {strings.Split(strings.Repeat("true ", 33), " ")[:33], "spec.predicates: Invalid value: found 33 CEL expressions, at most 32 are allowed"},
		"length": {
			[]string{strings.Repeat("true && ", 800) + "true", strings.Repeat("true && ", 800) + "true", strings.Repeat("true && ", 800) + "true"},
			"bytes in total, at most 16384 are allowed",
		},
		"one": {[]string{strings.Repeat("true && ", 1100) + "true"}, "has 8804 bytes, at most 8192 are allowed"},
	} {
		spec := "predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["
		for _, text := range tc.texts {
			spec += fmt.Sprintf("%q, ", text)
		}
		_, errs := compilePolicy(newPlacement(t, "p", spec+"]}}}]"))
		if got := errs.ToAggregate(); got == nil || !strings.Contains(got.Error(), tc.want) {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
}

// The cost of all clusters together is bounded, and the expressions are not evaluated
// again after it was exceeded.
func TestTotalCostIsBounded(t *testing.T) {
	s := hub()
	s.maxCost = 300_000
	for i := range 100 {
		s.SetCluster(withClaims(fmt.Sprintf("c%02d", i), 20)) // 20^3 = 8,000 combinations
	}
	s.SetPlacement(newPlacement(t, "p", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['`+costly+`']}}}]`))
	v := decideNow(t, s, "p")
	if !strings.Contains(v.Conditions[0].Message, "cost more than 300000 for all clusters") {
		t.Fatalf("%+v", v.Conditions)
	}
	known := len(s.placements[keyOf("p")].outcomes[0])
	if known >= 100 {
		t.Errorf("evaluated for all %d clusters", known)
	}
	decideNow(t, s, "p")
	if again := len(s.placements[keyOf("p")].outcomes[0]); again > known {
		t.Errorf("evaluated for %d clusters, then for %d", known, again)
	}
}

// While the expressions of one placement are evaluated, other placements are decided.
func TestDecisionsDoNotWaitForExpressions(t *testing.T) {
	s := hub()
	for i := range 40 {
		s.SetCluster(withClaims(fmt.Sprintf("c%02d", i), 12))
	}
	s.SetPlacement(newPlacement(t, "slow", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['`+costly+`']}}}]`))
	s.SetPlacement(newPlacement(t, "quick", ""))
	v, ok := s.Decide(keyOf("slow"), now)
	if !ok || !v.Pending || !v.KeepDecisions {
		t.Fatalf("%t, %+v, want a pending result", ok, v)
	}
	if v := decideNow(t, s, "quick"); v.Selected() != 40 {
		t.Errorf("selected %d", v.Selected())
	}
	for v.Pending {
		key, ok := s.EvaluateNext(t.Context())
		if !ok || key != keyOf("slow") {
			t.Fatalf("%v, %t", key, ok)
		}
		v, _ = s.Decide(key, now)
	}
	if v.Selected() != 40 {
		t.Errorf("%+v", v.Conditions)
	}
}

// The queue takes placements from the namespaces in turn.
func TestFairQueue(t *testing.T) {
	s := NewState()
	for _, name := range []string{"a/1", "a/2", "a/3", "a/1", "b/1", "b/2", "c/1"} {
		key := keyOf(name[2:])
		key.Namespace = name[:1]
		s.enqueue(key)
	}
	var got []string
	for key, _, ok := s.queue.Pop(); ok; key, _, ok = s.queue.Pop() {
		got = append(got, key.String())
	}
	if want := "a/1 b/1 c/1 a/2 b/2 a/3"; strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
}

// Decisions, changes of clusters and evaluations are concurrent; all placements are decided
// in the end.
func TestConcurrentEvaluation(t *testing.T) {
	s := hub()
	for i := range 20 {
		s.SetCluster(withClaims(fmt.Sprintf("c%02d", i), 12))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var evaluator, workers sync.WaitGroup
	evaluator.Go(func() {
		for ok := true; ok; {
			_, ok = s.EvaluateNext(ctx)
		}
	})
	for i := range 4 {
		name := fmt.Sprint("p", i)
		s.SetPlacement(newPlacement(t, name, `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['`+costly+`']}}}]`))
		workers.Go(func() {
			for n := range 10 {
				s.SetCluster(withClaims(fmt.Sprintf("c%02d", n), 10+i))
				s.Decide(keyOf(name), now)
			}
		})
	}
	workers.Wait()
	cancel()
	evaluator.Wait()
	for i := range 4 {
		if v, _ := s.Preview(keyOf(fmt.Sprint("p", i)), now); v.Selected() != 20 {
			t.Errorf("p%d: selected %d, %+v", i, v.Selected(), v.Conditions)
		}
	}
}

// TestTryAddPlacement checks that a placement without expressions is added at once, and one with expressions is
// added by EvaluateNext while other placements are being evaluated, in its newest version and unless it was deleted.
func TestTryAddPlacement(t *testing.T) {
	s := hub("a", "b")
	version := func(name, spec string, generation int64) *v1beta1.Placement {
		object := newPlacement(t, name, spec)
		object.Generation = generation
		return object
	}
	one, all := celPredicate(`managedCluster.metadata.name == "a"`), celPredicate("true")
	if !s.TryAddPlacement(version("free", one, 1), nil) || decideNow(t, s, "free").Selected() != 1 {
		t.Error("not added although nothing is being evaluated")
	}
	must.Succeed(t, s.evaluators.Acquire(t.Context(), maxEvaluators()))
	if !s.TryAddPlacement(version("labels", "", 1), nil) || decideNow(t, s, "labels").Selected() != 2 {
		t.Error("a placement without expressions is not added at once")
	}
	for _, generation := range []int64{1, 2} {
		if s.TryAddPlacement(version("p", []string{one, all}[generation-1], generation), nil) {
			t.Errorf("generation %d is compiled while others are being evaluated", generation)
		}
	}
	s.TryAddPlacement(version("deleted", one, 1), nil)
	s.DeletePlacement(keyOf("deleted"))
	s.evaluators.Release(maxEvaluators())
	for _, want := range []string{"p", "deleted"} {
		if key, ok := s.EvaluateNext(t.Context()); !ok || key != keyOf(want) {
			t.Fatalf("%s, %t; want %s", key, ok, want)
		}
	}
	if !s.TryAddPlacement(version("p", all, 2), nil) || decideNow(t, s, "p").Selected() != 2 {
		t.Error("the newest version is not added")
	}
	if _, ok := s.Decide(keyOf("deleted"), now); ok {
		t.Error("a deleted placement is added")
	}
	for key, p := range s.placements {
		if p.uncompiled != nil {
			t.Errorf("left: %s", key)
		}
	}
}
