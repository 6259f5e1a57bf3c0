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

// promptly is how soon decisions follow a change: within a second, and more where
// tests of other packages run beside this one.
const promptly = 3 * time.Second

// clustersOf are what placements have, by their names.
type clustersOf map[string][]string

// story is one of the examples: what placements have at first, and after changes
// of the fleet, which name those placements that have others then.
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

// weathercock is a placement beside those of the examples that goes where the
// most CPU is, whatever was before.
const weathercock = "weathercock"

var stories = []story{
	{name: "the largest ratios", folders: []string{"1-largest-ratios"}, want: clustersOf{"largest-ratios": {"cluster2", "cluster4", "cluster6"}}},
	{name: "the most memory", folders: []string{"2-most-memory"}, want: clustersOf{"most-memory": {"cluster3"}}},
	{
		name: "decisions follow", folders: []string{"3-follow"}, want: clustersOf{"follow": {"cluster3", "cluster4"}},
		changes: []fleetChange{
			{"changes/cluster2-grows.yaml", clustersOf{"follow": {"cluster2", "cluster4"}}},
			{"fleet.yaml", clustersOf{"follow": {"cluster3", "cluster4"}}},
		},
	},
	{
		// What moves the one does not move the other.
		name: "decisions stay", folders: []string{"3-follow", "4-steady"},
		want: clustersOf{"follow": {"cluster3", "cluster4"}, "steady": {"cluster1", "cluster3", "cluster4", "cluster6"}},
		changes: []fleetChange{
			{"changes/cluster2-grows.yaml", clustersOf{"follow": {"cluster2", "cluster4"}}},
			{"fleet.yaml", clustersOf{"follow": {"cluster3", "cluster4"}}},
		},
	},
	{
		name: "a cluster scales up, then nodes go", folders: []string{"5-scaling"},
		want: clustersOf{"where-most-is": {"cluster4"}, "where-it-was": {"cluster4"}, weathercock: {"cluster4"}},
		changes: []fleetChange{
			{"changes/cluster1-two-nodes-more.yaml", clustersOf{"where-most-is": {"cluster1"}, weathercock: {"cluster1"}}},
			{"changes/cluster1-one-node-less.yaml", clustersOf{weathercock: {"cluster4"}}},
			{"changes/cluster1-two-nodes-less.yaml", clustersOf{"where-most-is": {"cluster4"}}},
		},
	},
}

// The stories of the examples, as a user would write them, in both versions.
func TestPlacementStories(t *testing.T) {
	t.Parallel()
	h := startPlacementHub(t)
	h.apply(t, example(t, "fleet.yaml")...)
	controller := h.startController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	for _, s := range stories {
		scores := map[string]map[string]int64{}
		for _, version := range []string{"v1alpha1", "v1beta1"} {
			if !t.Run(s.name+" in "+version, func(t *testing.T) { scores[version] = h.tell(t, controller, s, version) }) {
				t.FailNow() // the others would find what this one left
			}
		}
		if diff := cmp.Diff(scores["v1alpha1"], scores["v1beta1"]); diff != "" {
			t.Errorf("%s: the scores of the versions differ: %s", s.name, diff)
		}
	}
	controller.Stop(t)
}

// tell makes a story happen and undoes it. It returns the scores of the first
// decisions where there is one placement alone: of several the first one that is
// decided is not balanced against the others.
func (h *testCluster) tell(t *testing.T, log fmt.Stringer, s story, version string) map[string]int64 {
	decisions := h.recordChanges(t, decisionKind)
	var placements []*unstructured.Unstructured
	for _, folder := range s.folders {
		placements = append(placements, example(t, filepath.Join(folder, "placement."+version+".yaml"))...)
	}
	if s.want[weathercock] != nil {
		placements = append(placements, placementIn(team, weathercock, map[string]any{"numberOfClusters": int64(1), "prioritizerPolicy": map[string]any{
			"mode": "Exact", "configurations": []any{map[string]any{"name": "ResourceAllocatableCPU"}},
		}}))
	}
	began := time.Now()
	h.apply(t, placements...)
	want := map[string][][]string{}
	scores := map[string]int64{}
	for name, clusters := range s.want {
		object := h.awaitChosen(t, log, name, clusters...)
		if c := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied); c.Status != metav1.ConditionTrue {
			t.Errorf("%s: %+v", name, c)
		}
		want[name] = append(want[name], clusters)
		there, err := h.slicesOf(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range there[0].Status.Decisions {
			if len(s.want) == 1 {
				scores[d.ClusterName] = d.Score
			}
		}
	}
	t.Logf("decided %d ms after the placements were created", time.Since(began).Milliseconds())
	for _, change := range s.changes {
		objects := example(t, change.file)
		began := time.Now()
		h.apply(t, objects...)
		for name, clusters := range change.want {
			h.awaitChosen(t, log, name, clusters...)
			want[name] = append(want[name], clusters)
			took := decisions.since(t, name, clusters...).Sub(began)
			t.Logf("%s: %s has %v %d ms later", change.file, name, clusters, took.Milliseconds())
			if took > promptly {
				t.Errorf("%s: it took %s until %s had followed", change.file, took, name)
			}
		}
	}
	h.forget(t, log, placements...)
	for name, clusters := range want {
		var got [][]string
		for _, moment := range decisions.history(t, name) {
			if len(moment.clusters) > 0 {
				got = append(got, moment.clusters)
			}
		}
		if !slices.EqualFunc(clusters, got, slices.Equal) {
			t.Errorf("%s had %v one after the other, want %v", name, got, clusters)
		}
	}
	return scores
}

// placementIn returns a placement in a namespace.
func placementIn(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	placement := placementOf("v1beta1", name, spec)
	placement.SetNamespace(namespace)
	return placement
}
