package fleet

import (
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// expressed is the cluster over which the tests evaluate expressions.
const expressed = `
metadata:
  name: a
  labels: {zone: "1", replicas: "3"}
  annotations: {config: '{"tier": {"name": "gold"}, "sizes": [1, 2]}', list: "[1]", broken: "{"}
spec: {hubAcceptsClient: true, leaseDurationSeconds: 60}
status:
  conditions: [{type: Available, status: "True", reason: "", message: "", lastTransitionTime: null}]
  version: {kubernetes: v1.31.4}
  allocatable: {cpu: "3500m", memory: 16Gi}
  clusterClaims: [{name: platform, value: AWS}]
`

func TestExpressions(t *testing.T) {
	scores := map[string]*addOnScore{"usage": {values: map[string]int32{"cpu": 40, "memory": -7}}}
	variables, err := variablesOf(read[clusterv1.ManagedCluster](t, expressed), scores)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		`true`:  true,
		`false`: false,
		// Labels. An expression with a missing key does not match; it is not an error.
		`managedCluster.metadata.labels["zone"] == "1"`:                                           true,
		`managedCluster.metadata.labels.zone == "2"`:                                              false,
		`managedCluster.metadata.labels["nope"] == "1"`:                                           false,
		`managedCluster.metadata.labels["nope"] != "1"`:                                           false,
		`!has(managedCluster.metadata.labels.nope)`:                                               true,
		`int(managedCluster.metadata.labels.replicas) >= 3`:                                       true,
		`int(managedCluster.metadata.labels.zone + "x") > 0`:                                      false,
		`managedCluster.metadata.labels["zone"].matches("^[0-9]+$")`:                              true,
		`"zone" in managedCluster.metadata.labels`:                                                true,
		`managedCluster.spec.hubAcceptsClient`:                                                    true,
		`managedCluster.spec.leaseDurationSeconds == 60`:                                          true,
		`managedCluster.status.conditions.exists(c, c.type == "Available")`:                       true,
		`managedCluster.metadata.name.startsWith("a")`:                                            true,
		`managedCluster.metadata.annotations["none"].size() > 0`:                                  false,
		`managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value == "AWS")`: true,
		`managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value == "GCP")`: false,
		// Versions: 1.31.4 > 1.9.0, though "1.31.4" < "1.9.0" as text.
		`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.9.0"))`: true,
		`semver(managedCluster.status.version.kubernetes, true).isLessThan(semver("1.31.0"))`:   false,
		`semver(managedCluster.status.version.kubernetes, true).minor() == 31`:                  true,
		// Without normalization, the leading "v" is invalid.
		`semver(managedCluster.status.version.kubernetes).minor() == 31`: false,
		// Quantities: 3500m < 4, 16Gi > 16G.
		`quantity(managedCluster.status.allocatable.cpu).isLessThan(quantity("4"))`:         true,
		`quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity("16G"))`: true,
		`quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity("1Ti"))`: false,
		`quantity(managedCluster.status.capacity.cpu).isGreaterThan(quantity("0"))`:         false,
		// Scores of add-ons, by name.
		`managedCluster.scores("usage").exists(s, s.name == "cpu" && s.value > 39)`:        true,
		`managedCluster.scores("usage").filter(s, s.name == "memory").all(s, s.value < 0)`: true,
		`managedCluster.scores("usage").map(s, s.name) == ["cpu", "memory"]`:               true,
		`managedCluster.scores("usage")[0].value == 40`:                                    true,
		// A cluster without scores does not match, even though all() of an empty list is true.
		`managedCluster.scores("nope").all(s, s.value < 0)`:    false,
		`managedCluster.scores("nope").exists(s, s.value < 0)`: false,
		// Objects in annotations.
		`managedCluster.metadata.annotations["config"].parseJSON().tier.name == "gold"`: true,
		`managedCluster.metadata.annotations["config"].parseJSON().sizes[1] == 2.0`:     true,
		`managedCluster.metadata.annotations["config"].parseJSON().nope == "gold"`:      false,
		`managedCluster.metadata.annotations["broken"].parseJSON().tier == "gold"`:      false,
		`managedCluster.metadata.annotations["list"].parseJSON().tier == "gold"`:        false,
		// The type of a field is known only at evaluation.
		`managedCluster.metadata.name`: false,
	} {
		e, err := compileExpression(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := e.matches(variables); err != nil || got != want {
			t.Errorf("%s: %t, %v, want %t", text, got, err, want)
		}
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

// An expression that exceeds the cost limit is a misconfiguration: the decisions are kept
// until the cluster or the expression becomes simpler.
func TestCostKeepsDecisions(t *testing.T) {
	s := hub()
	s.SetCluster(withClaims("a", 1))
	s.SetCluster(withClaims("b", 1))
	s.SetPlacement(newPlacement(t, "p", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['`+costly+`']}}}]`))
	if got := clustersOf(decide(t, s, "p")); got != "a b" {
		t.Fatalf("chosen %q, want a b", got)
	}
	s.SetCluster(withClaims("b", 110))
	for range 3 {
		v := decide(t, s, "p")
		if !v.KeepDecisions || v.Conditions[0].Reason != reasonMisconfigured ||
			!strings.Contains(v.Conditions[0].Message, "spec.predicates") || !strings.Contains(v.Conditions[0].Message, errCost.Error()) {
			t.Fatalf("keeps %t, %+v", v.KeepDecisions, v.Conditions)
		}
	}
	s.SetCluster(withClaims("b", 2))
	if v := decide(t, s, "p"); v.KeepDecisions || clustersOf(v) != "a b" {
		t.Errorf("chosen %q, %+v", clustersOf(v), v.Conditions)
	}
}

// An expression is evaluated once per version of a cluster.
func TestExpressionsAreMemoized(t *testing.T) {
	s := hub("a", "b", "c")
	s.SetPlacement(newPlacement(t, "p", celPredicate("managedCluster.metadata.labels.set == 'web'")))
	p := s.placements[keyOf("p")]
	for range 10 {
		s.SetCluster(managed("b", "set=web heartbeat="+strings.Repeat("x", len(p.memos[0])+1)))
		if got := clustersOf(decide(t, s, "p")); got != "a b c" {
			t.Fatalf("chosen %q", got)
		}
		// Results for outdated versions of clusters are dropped: their number never
		// exceeds the number of clusters.
		if n := len(p.memos[0]); n > 2*3+3 {
			t.Fatalf("%d results are memoized for 3 clusters, want at most 9", n)
		}
	}
	decide(t, s, "p")
	before := len(p.memos[0])
	decide(t, s, "p")
	if after := len(p.memos[0]); after != before {
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
		if got := clustersOf(decide(t, s, "p")); got != tc.want {
			t.Errorf("chosen %q, want %q", got, tc.want)
		}
	}
}
