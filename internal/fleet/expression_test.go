package fleet

import (
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// expressed is what the expressions of the tests are about.
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
		// Labels. What is not there is no error, but not true either.
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
		// Without normalization the v is no version.
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
		// Silence does not win: of no scores everything would be true.
		`managedCluster.scores("nope").all(s, s.value < 0)`:    false,
		`managedCluster.scores("nope").exists(s, s.value < 0)`: false,
		// Objects in annotations.
		`managedCluster.metadata.annotations["config"].parseJSON().tier.name == "gold"`: true,
		`managedCluster.metadata.annotations["config"].parseJSON().sizes[1] == 2.0`:     true,
		`managedCluster.metadata.annotations["config"].parseJSON().nope == "gold"`:      false,
		`managedCluster.metadata.annotations["broken"].parseJSON().tier == "gold"`:      false,
		`managedCluster.metadata.annotations["list"].parseJSON().tier == "gold"`:        false,
		// Of what kind a value is shows only when it is asked for.
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

// costly is more work than is allowed for a cluster with many claims: of 110 of
// them each is looked at with each of each, which is 110^3 = 1,331,000 times.
const costly = `managedCluster.status.clusterClaims.all(a, managedCluster.status.clusterClaims.all(b, managedCluster.status.clusterClaims.all(c, a.name != "" || b == c)))`

// withClaims returns a cluster with so many claims.
func withClaims(name string, n int) *clusterv1.ManagedCluster {
	object := managed(name, "set=web")
	for i := range n {
		object.Status.ClusterClaims = append(object.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: strings.Repeat("x", i+1)})
	}
	return object
}

// Too much work is the user's mistake. The decisions stay, however often it is
// asked, until the cluster or the expression is simpler.
func TestCostKeepsDecisions(t *testing.T) {
	s := hub()
	s.SetCluster(withClaims("a", 1))
	s.SetCluster(withClaims("b", 1))
	s.SetPlacement(asks(t, "p", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ['`+costly+`']}}}]`))
	if got := clustersOf(decide(t, s, "p")); got != "a b" {
		t.Fatalf("chosen %q, want a b", got)
	}
	s.SetCluster(withClaims("b", 110))
	for range 3 {
		v := decide(t, s, "p")
		if !v.KeepDecisions || v.Conditions[0].Reason != reasonMisconfigured || !strings.Contains(v.Conditions[0].Message, "spec.predicates") || !strings.Contains(v.Conditions[0].Message, errCost.Error()) {
			t.Fatalf("keeps %t, %+v", v.KeepDecisions, v.Conditions)
		}
	}
	s.SetCluster(withClaims("b", 2))
	if v := decide(t, s, "p"); v.KeepDecisions || clustersOf(v) != "a b" {
		t.Errorf("chosen %q, %+v", clustersOf(v), v.Conditions)
	}
}

// An expression is asked once for a cluster as it is.
func TestExpressionsAreRemembered(t *testing.T) {
	s := hub("a", "b", "c")
	s.SetPlacement(asks(t, "p", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.metadata.labels.set == 'web'"]}}}]`))
	p := s.placements[keyOf("p")]
	for range 10 {
		s.SetCluster(managed("b", "set=web beat="+strings.Repeat("x", len(p.memos[0])+1)))
		if got := clustersOf(decide(t, s, "p")); got != "a b c" {
			t.Fatalf("chosen %q", got)
		}
		// Of clusters that are no more what they were, not more is kept than there are
		// clusters.
		if n := len(p.memos[0]); n > 2*3+3 {
			t.Fatalf("%d answers are kept of 3 clusters", n)
		}
	}
	decide(t, s, "p")
	before := len(p.memos[0])
	decide(t, s, "p")
	if after := len(p.memos[0]); after != before {
		t.Errorf("%d answers, then %d of the same clusters", before, after)
	}
}

// Another score is asked for anew, and so is none.
func TestExpressionsSeeScores(t *testing.T) {
	s := hub("a", "b")
	s.SetPlacement(asks(t, "p", `predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["managedCluster.scores('usage').exists(s, s.value > 50)"]}}}]`))
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
