package integration

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// promptly is the time limit for a decision after a change. It is usually below a second,
// and longer while tests of other packages run. A decision that no change triggers is not made at all.
const promptly = 20 * time.Second

// clustersOf are the selected clusters by the name of the placement.
type clustersOf map[string][]string

// story is an example: the placements in folders, the clusters that they select initially, and
// changes of the fleet with the placements whose clusters change.
type story struct {
	name    string
	folders []string
	want    clustersOf
	changes []fleetChange
}

type fleetChange struct {
	file string
	want clustersOf
}

// withoutSteady is an additional placement that always selects the cluster with the most
// CPU.
const withoutSteady = "without-steady"

var stories = []story{
	{
		name:    "largest ratios",
		folders: []string{"1-largest-ratios"},
		want:    clustersOf{"largest-ratios": {"cluster2", "cluster4", "cluster6"}},
	},
	{name: "most memory", folders: []string{"2-most-memory"}, want: clustersOf{"most-memory": {"cluster3"}}},
	{
		name: "decisions follow", folders: []string{"3-follow"}, want: clustersOf{"follow": {"cluster3", "cluster4"}},
		changes: []fleetChange{
			{"changes/cluster2-grows.yaml", clustersOf{"follow": {"cluster2", "cluster4"}}},
			{"fleet.yaml", clustersOf{"follow": {"cluster3", "cluster4"}}},
		},
	},
	{
		// A change that affects follow does not affect steady.
		name: "decisions stay", folders: []string{"3-follow", "4-steady"},
		want: clustersOf{"follow": {"cluster3", "cluster4"}, "steady": {"cluster1", "cluster3", "cluster4", "cluster6"}},
		changes: []fleetChange{
			{"changes/cluster2-grows.yaml", clustersOf{"follow": {"cluster2", "cluster4"}}},
			{"fleet.yaml", clustersOf{"follow": {"cluster3", "cluster4"}}},
		},
	},
	{
		name: "a cluster scales up, then down", folders: []string{"5-scaling"},
		want: clustersOf{"where-most-is": {"cluster4"}, "where-it-was": {"cluster4"}, withoutSteady: {"cluster4"}},
		changes: []fleetChange{
			{"changes/cluster1-two-nodes-more.yaml", clustersOf{"where-most-is": {"cluster1"}, withoutSteady: {"cluster1"}}},
			{"changes/cluster1-one-node-less.yaml", clustersOf{withoutSteady: {"cluster4"}}},
			{"changes/cluster1-two-nodes-less.yaml", clustersOf{"where-most-is": {"cluster4"}}},
		},
	},
}

// The examples of placements have the documented results in both versions.
func TestPlacementStories(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	controller := h.startController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	for _, s := range stories {
		scores := map[string]map[string]int64{}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if !t.Run(s.name+" in "+version, func(t *testing.T) { scores[version] = h.runStory(t, controller, s, version) }) {
				t.FailNow() // remaining objects would affect the other stories
			}
		}
		if diff := cmp.Diff(scores["v1alpha1"], scores["v1beta1"]); diff != "" {
			t.Errorf("%s: scores differ between versions: %s", s.name, diff)
		}
	}
	controller.Stop(t)
}

// runStory creates the placements of a story, applies its changes and deletes the
// placements. It returns the scores of the first decisions if the story has one placement:
// with several, Balance makes scores depend on the order of decisions.
func (c *testCluster) runStory(t *testing.T, log fmt.Stringer, s story, version string) map[string]int64 {
	decisions := c.recordChanges(t, decisionKind)
	var placements []*unstructured.Unstructured
	for _, folder := range s.folders {
		placements = append(placements, example(t, filepath.Join(folder, "placement."+version+".yaml"))...)
	}
	if s.want[withoutSteady] != nil {
		placements = append(placements, placementIn(team, withoutSteady, exactly(1, map[string]int{"ResourceAllocatableCPU": 1})))
	}
	began := time.Now()
	c.apply(t, placements...)
	want := map[string][][]string{}
	scores := map[string]int64{}
	for name, clusters := range s.want {
		object := c.awaitChosen(t, log, name, clusters...)
		condition := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		if condition.Status != metav1.ConditionTrue {
			t.Errorf("%s: %+v", name, condition)
		}
		want[name] = append(want[name], clusters)
		existing, err := c.slicesOf(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range existing[0].Status.Decisions {
			if len(s.want) == 1 {
				scores[d.ClusterName] = d.Score
			}
		}
	}
	t.Logf("decided %d ms after the placements were created", time.Since(began).Milliseconds())
	for _, change := range s.changes {
		objects := example(t, change.file)
		began := time.Now()
		c.apply(t, objects...)
		for name, clusters := range change.want {
			c.awaitChosen(t, log, name, clusters...)
			want[name] = append(want[name], clusters)
			took := decisions.since(t, name, clusters...).Sub(began)
			t.Logf("%s: %s selects %v after %d ms", change.file, name, clusters, took.Milliseconds())
			if took > promptly {
				t.Errorf("%s: decided after %s, want at most %s: %s", change.file, took, promptly, name)
			}
		}
	}
	c.deletePlacements(t, log, placements...)
	for name, clusters := range want {
		var got [][]string
		for _, moment := range decisions.history(t, name) {
			if len(moment.clusters) > 0 {
				got = append(got, moment.clusters)
			}
		}
		if !slices.EqualFunc(clusters, got, slices.Equal) {
			t.Errorf("%s selected %v in turn, want %v", name, got, clusters)
		}
	}
	return scores
}

// placementIn returns a placement in a namespace, in version v1beta1.
func placementIn(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	placement := placementOf("v1beta1", name, spec)
	placement.SetNamespace(namespace)
	return placement
}
