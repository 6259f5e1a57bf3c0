package placement

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	longName     = "europe-west-production-payments-with-a-very-long-name-of-a-cluster-0123456789"
	longestScore = "free-memory-after-requests-of-all-namespaces-with-a-long-name-in-total"
)

// wideHub has names, lists and messages that are wider than a terminal: a placement with all prioritizers and two long scores of an
// add-on, a placement with a group for each cluster, an invalid placement that keeps its decisions, a placement whose cluster sets
// do not exist, and a placement that selects a single cluster.
func wideHub() string {
	var hub strings.Builder
	add := func(format string, args ...any) {
		fmt.Fprintf(&hub, "---\napiVersion: cluster.open-cluster-management.io/"+format+"\n", args...)
	}
	for i := range 12 {
		add(`v1
kind: ManagedCluster
metadata: {name: %s%d, labels: {set: all}}
spec: {hubAcceptsClient: true}
status: {conditions: [], capacity: {cpu: "100"}, allocatable: {cpu: "%d"}}`, longName, i, 50+i)
	}
	add(`v1beta2
kind: ManagedClusterSet
metadata: {name: all}
spec: {clusterSelector: {selectorType: LabelSelector, labelSelector: {matchLabels: {set: all}}}}`)
	add("v1beta2\nkind: ManagedClusterSetBinding\nmetadata: {name: all, namespace: shop}\nspec: {clusterSet: all}")
	placement := func(name, spec string) {
		add("v1beta1\nkind: Placement\nmetadata: {name: %s, namespace: shop}\nspec: %s", name, spec)
	}
	placement("all-prioritizers", `{prioritizerPolicy: {configurations: [
  {name: ResourceRatioCPU}, {name: ResourceRatioMemory}, {name: ResourceAllocatableCPU}, {name: ResourceAllocatableMemory},
  {scoreCoordinate: {type: AddOn, addOn: {resourceName: plimsoll, scoreName: `+longestScore+`}}},
  {scoreCoordinate: {type: AddOn, addOn: {resourceName: `+longestScore+`, scoreName: free}}}]}}`)
	placement("groups", "{decisionStrategy: {groupStrategy: {clustersPerDecisionGroup: 1}}}")
	placement("invalid", `{numberOfClusters: -1, predicates: [{requiredClusterSelector: {celSelector: {celExpressions: ["`+
		strings.Repeat("unknown.", 30)+`x"]}}}]}`)
	placement("unbound", "{clusterSets: ["+longName+", "+longName+"x]}")
	placement("single", "{numberOfClusters: 1}")
	add(`v1beta1
kind: PlacementDecision
metadata: {name: invalid-decision-1, namespace: shop, labels: {cluster.open-cluster-management.io/placement: invalid}}
status: {decisions: [{clusterName: %s3, reason: ""}]}`, longName)
	return hub.String()
}

// runDecide returns the output of plimsoll placement decide for wideHub.
func runDecide(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := newDecideCommand()
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetIn(strings.NewReader(wideHub()))
	cmd.SetOut(&out)
	cmd.SetArgs(append([]string{"-f", "-"}, args...))
	const want = "1 of 5 placements is misconfigured: shop/invalid: see PlacementMisconfigured above"
	if err := cmd.ExecuteContext(t.Context()); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	return out.String()
}

// TestOutcomes checks the tables of placements: the scores of more prioritizers than fit a terminal need -o wide.
func TestOutcomes(t *testing.T) {
	out := runDecide(t)
	if !strings.Contains(out, "selected 1 cluster (clusters in the sets: 12") || strings.Contains(out, "ALLOCATABLEMEMORY") {
		t.Errorf("got\n%s", out)
	}
	if wide := runDecide(t, "-o", "wide"); !strings.Contains(wide, "ALLOCATABLEMEMORY X1") {
		t.Errorf("got\n%s", wide)
	}
}

// TestOutcomesInJSON checks that -o json has the complete names, and which scores have no data.
func TestOutcomesInJSON(t *testing.T) {
	var result placementsResult
	must.Succeed(t, json.Unmarshal([]byte(runDecide(t, "-o", "json")), &result))
	find := func(name string) *placementResult {
		return &result.Placements[slices.IndexFunc(result.Placements, func(p placementResult) bool { return p.Name == name })]
	}
	all := find("all-prioritizers")
	if len(all.Clusters) != 12 || !strings.HasPrefix(all.Clusters[0].Name, longName) {
		t.Errorf("clusters %+v", all.Clusters)
	}
	for name, want := range map[string]fleet.Score{
		"ResourceRatioCPU":               {Score: 22, Weight: 1, HasData: true}, // 200 x (61/100 - 0.5)
		"ResourceRatioMemory":            {Score: -100, Weight: 1},
		"AddOn/plimsoll/" + longestScore: {Score: -100, Weight: 1},
	} {
		// The best cluster has the most allocatable CPU.
		if got := all.Clusters[0].Scores[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if groups := find("groups").Groups; len(groups) != 12 {
		t.Errorf("%d groups, want 12", len(groups))
	}
	if kept := find("invalid").Decisions; !slices.Equal(kept, []string{longName + "3"}) {
		t.Errorf("kept %v", kept)
	}
}
