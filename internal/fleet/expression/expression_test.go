package expression

import (
	"strings"
	"testing"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/yaml"
)

// expressed is the cluster over which the tests evaluate expressions.
const expressed = `
metadata:
  name: a
  labels: {zone: "1", replicas: "3", gen: "5", ratio: "0.5", spot: "true", since: "2026-01-02T03:04:05Z"}
  annotations: {config: '{"tier": {"name": "gold"}, "sizes": [1, 2]}', list: "[1, 2]", number: "1.5", text: '"gold"', broken: "{"}
spec: {hubAcceptsClient: true, leaseDurationSeconds: 60}
status:
  conditions: [{type: Available, status: "True", reason: "", message: "", lastTransitionTime: null}]
  version: {kubernetes: v1.31.4}
  allocatable: {cpu: "3500m", memory: 16Gi}
  clusterClaims: [{name: platform, value: AWS}]
`

// expressedCluster returns the object of the cluster.
func expressedCluster(t testing.TB) *Cluster {
	t.Helper()
	object := &clusterv1.ManagedCluster{}
	if err := yaml.UnmarshalStrict([]byte(expressed), object); err != nil {
		t.Fatal(err)
	}
	return NewCluster(object, func(name string) map[string]int32 {
		return map[string]map[string]int32{"usage": {"cpu": 40, "memory": -7}}[name]
	})
}

// evaluateText returns the outcome of an expression for the cluster.
func evaluateText(t testing.TB, text string) Outcome {
	t.Helper()
	e, err := Compile("field", text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return EvaluateAll([]*Expression{e}, expressedCluster(t))
}

// expressions are expressions with their results for the cluster.
var expressions = map[string]bool{
	`true`:  true,
	`false`: false,
	// Labels. An expression with a missing key does not match; it is not an error.
	`managedCluster.metadata.labels["zone"] == "1"`:                                           true,
	`managedCluster.metadata.labels["nope"] == "1"`:                                           false,
	`managedCluster.metadata.labels["nope"] != "1"`:                                           false,
	`!has(managedCluster.metadata.labels.nope)`:                                               true,
	`int(managedCluster.metadata.labels.replicas) >= 3`:                                       true,
	`int(managedCluster.metadata.labels.zone + "x") > 0`:                                      false,
	`managedCluster.metadata.labels["zone"].matches("^[0-9]+$")`:                              true,
	`managedCluster.spec.leaseDurationSeconds == 60`:                                          true,
	`managedCluster.status.conditions.exists(c, c.type == "Available")`:                       true,
	`managedCluster.metadata.name.startsWith("a")`:                                            true,
	`managedCluster.status.clusterClaims.exists(c, c.name == "platform" && c.value == "AWS")`: true,
	// Conversions.
	`int(managedCluster.metadata.labels["gen"]) > 4`:                                                 true,
	`bool(managedCluster.metadata.labels["spot"])`:                                                   true,
	`timestamp(managedCluster.metadata.labels["since"]) < timestamp("2026-02-01T00:00:00Z")`:         true,
	`int(managedCluster.metadata.labels["gen"]) > 4.5`:                                               true,
	`string(managedCluster.spec.leaseDurationSeconds) == "60"`:                                       true,
	`[managedCluster.metadata.labels["zone"]] + ["x"] == ["1", "x"]`:                                 true,
	`managedCluster.metadata.labels["zone"] in ["1", "2"]`:                                           true,
	`["a", "b", "c"].filter(x, x != "b") + ["d"] == ["a", "c", "d"]`:                                 true,
	`managedCluster.metadata.labels["zone"] in [managedCluster.metadata.name]`:                       false,
	`sets.contains(["1", "2"], [managedCluster.metadata.labels["zone"]])`:                            true,
	`managedCluster.metadata.labels["nope"] == "1" || managedCluster.metadata.labels["zone"] == "1"`: true,
	// Optional values.
	`managedCluster.metadata.labels[?"zone"].orValue("none") == "1"`:                 true,
	`managedCluster.status.clusterClaims[?7].optMap(c, c.name).orValue("x") == "x"`:  true,
	`managedCluster.metadata.labels[?"zone"].optMap(z, z + "x").orValue("") == "1x"`: true,
	`managedCluster.metadata.labels[?"nope"].value() == "1"`:                         false,
	// Formats and strings.
	`!format.dns1123Label().validate(managedCluster.metadata.name).hasValue()`: true,
	`"%s-%d".format([managedCluster.metadata.name, 7]) == "a-7"`:               true,
	`"a,b".split(",").join("-").replace("-", "+").upperAscii() == "A+B"`:       true,
	`managedCluster.status.version.kubernetes.findAll("[0-9]+").size() == 3`:   true,
	`[3, 1, 2].max() == 3 && [1, 2].sum() == 3 && [1, 2].isSorted()`:           true,
	// Versions: 1.31.4 > 1.9.0, though "1.31.4" < "1.9.0" as text.
	`semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver("1.9.0"))`: true,
	// Without normalization, the leading "v" is invalid.
	`semver(managedCluster.status.version.kubernetes).minor() == 31`: false,
	// Quantities: 3500m < 4, 16Gi > 16G.
	`quantity(managedCluster.status.allocatable.cpu).isLessThan(quantity("4"))`:         true,
	`quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity("16G"))`: true,
	`quantity(managedCluster.status.capacity.cpu).isGreaterThan(quantity("0"))`:         false,
	// Scores of add-ons, by name.
	`managedCluster.scores("usage").exists(s, s.name == "cpu" && s.value > 39)`: true,
	`managedCluster.scores("usage").map(s, s.name) == ["cpu", "memory"]`:        true,
	`managedCluster.scores("usage")[0].value == 40`:                             true,
	// A cluster without scores does not match, even though all() of an empty list is true.
	`managedCluster.scores("nope").all(s, s.value < 0)`: false,
	// JSON in annotations.
	`managedCluster.metadata.annotations["config"].parseJSON().tier.name == "gold"`: true,
	`managedCluster.metadata.annotations["config"].parseJSON().sizes[1] == 2.0`:     true,
	`managedCluster.metadata.annotations["broken"].parseJSON().tier == "gold"`:      false,
	`managedCluster.metadata.annotations["list"].parseJSON().exists(n, n > 1)`:      true,
	`managedCluster.metadata.annotations["number"].parseJSON() == 1.5`:              true,
	// The cluster is an object as in JSON.
	`managedCluster == managedCluster && managedCluster.metadata == managedCluster.metadata`:     true,
	`managedCluster.size() == 3 && "spec" in managedCluster && !("x" in managedCluster)`:         true,
	`managedCluster.exists(key, key == "status") && managedCluster["metadata"]["name"] == "a"`:   true,
	`has(managedCluster.status) && has(managedCluster.status.version) && !has(managedCluster.x)`: true,
	`[managedCluster].exists(c, c.scores("usage").size() == 2)`:                                  true,
	`type(managedCluster) == map`: true,
}

func TestExpressions(t *testing.T) {
	for text, want := range expressions {
		if got := evaluateText(t, text); got.Err != nil || got.Matches != want {
			t.Errorf("%s: %t, %v, want %t", text, got.Matches, got.Err, want)
		}
	}
}

// A value of a type that an operator or function does not accept is an error of the
// expression, not a cluster that does not match.
func TestExpressionTypeErrors(t *testing.T) {
	for text, want := range map[string]string{
		`managedCluster.metadata.labels["gen"] > 4`:                              "field: no such overload",
		`managedCluster.spec.leaseDurationSeconds.exists(x, x > 1)`:              "expected iterable type",
		`managedCluster.metadata.annotations["list"].parseJSON().tier == "gold"`: "field: unsupported index type",
		`managedCluster.metadata.name`:                                           "field: must be true or false, is of type string",
	} {
		if got := evaluateText(t, text); got.Err == nil || !strings.Contains(got.Err.Error(), want) || got.Matches {
			t.Errorf("%s: %t, %v, want an error with %q", text, got.Matches, got.Err, want)
		}
	}
}

// TestInvalidExpressions checks that errors have the place, and the sentence of CEL.
func TestInvalidExpressions(t *testing.T) {
	for text, want := range map[string]string{
		" ":                                 "must not be empty",
		`managedCluster.metadata.name = ""`: `1:30: Syntax error: `,
		"true\n and true":                   `2:2: Syntax error: `,
		`cluster.metadata.name == "a"`:      `1:1: undeclared reference to 'cluster'`,
		`"a" > 4`:                           `1:5: found no matching overload for '_>_' applied to '(string, int)'`,
		`"a".matches("[")`:                  `1:13: invalid matches argument`,
		`semver("v1.31", true).major() == 1 && quantity("1e30") == quantity("4Gi")`: "",
	} {
		_, err := Compile("field", text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
