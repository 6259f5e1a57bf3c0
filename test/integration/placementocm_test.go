package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// startOCMHub starts a hub with the CRDs of Open Cluster Management 1.2, which lack fields
// of 1.3: sortBy, scoreRateLimit and lastScoreUpdateTime of placements, and the scores of
// decisions. They have only the versions that are stored.
func startOCMHub(t *testing.T) *testCluster {
	t.Helper()
	folder := t.TempDir()
	files := append(ocmCRDs(t), filepath.Join(moduleFolder(t, "../..", "open-cluster-management.io/api"), ocmPlacementCRD))
	for i, file := range files {
		crd := readCRD(t, file)
		crd.Spec.Versions = slices.DeleteFunc(
			crd.Spec.Versions,
			func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return !v.Storage },
		)
		for v := range crd.Spec.Versions {
			schema := crd.Spec.Versions[v].Schema.OpenAPIV3Schema
			for _, path := range [][]string{
				{"spec", "sortBy"}, {"spec", "scoreRateLimit"}, {"status", "lastScoreUpdateTime"}, {"status", "decisions", "score"},
			} {
				dropField(schema, path...)
			}
		}
		raw, err := yaml.Marshal(crd)
		if err != nil {
			t.Fatal(err)
		}
		files[i] = filepath.Join(folder, fmt.Sprintf("%d.yaml", i))
		if err := os.WriteFile(files[i], raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return startClusterWithCRDs(t, files...)
}

// dropField removes a field from a schema, if it exists.
func dropField(schema *apiextensionsv1.JSONSchemaProps, path ...string) {
	if schema.Items != nil {
		dropField(schema.Items.Schema, path...)
		return
	}
	if len(path) == 1 {
		delete(schema.Properties, path[0])
		return
	}
	if child, ok := schema.Properties[path[0]]; ok {
		dropField(&child, path[1:]...)
		schema.Properties[path[0]] = child
	}
}

// awaitGroups waits until the status of a placement has exactly the given groups.
func (c *testCluster) awaitGroups(t *testing.T, log fmt.Stringer, placement string, want ...clusterv1beta1.DecisionGroupStatus) {
	t.Helper()
	var object v1beta1.Placement
	defer func() {
		if t.Failed() {
			t.Log(cmp.Diff(want, object.Status.DecisionGroups))
		}
	}()
	eventually.True(t, placement+" does not have the expected groups", log, func(ctx context.Context) (bool, error) {
		object = v1beta1.Placement{}
		err := c.client.Get(ctx, client.ObjectKey{Namespace: team, Name: placement}, &object)
		return err == nil && cmp.Equal(want, object.Status.DecisionGroups), err
	})
	var names, wanted []string
	decisions, err := c.slicesOf(t.Context(), placement)
	if err != nil {
		t.Fatal(err)
	}
	for i := range decisions {
		names = append(names, decisions[i].Name)
	}
	for _, group := range want {
		wanted = append(wanted, group.Decisions...)
	}
	slices.Sort(names)
	if slices.Sort(wanted); !slices.Equal(names, wanted) {
		t.Errorf("%s has PlacementDecisions %v, want %v", placement, names, wanted)
	}
}

func groupStatus(index int32, name string, count int32, decisions ...string) clusterv1beta1.DecisionGroupStatus {
	return clusterv1beta1.DecisionGroupStatus{
		DecisionGroupIndex: index,
		DecisionGroupName:  name,
		Decisions:          decisions,
		ClustersCount:      count,
	}
}

// On a hub of Open Cluster Management 1.2, placements behave as with its own controller where
// users can see it: conditions, names of PlacementDecisions, deletion and events.
func TestPlacementAsOnOCMHub(t *testing.T) {
	t.Parallel()
	h := startOCMHub(t)
	h.apply(t, example(t, "fleet.yaml")[:3]...)
	for i := range 5 {
		cluster := managedCluster(fmt.Sprintf("cluster%d", i+1), "50")
		if i < 2 {
			cluster.SetLabels(map[string]string{"cluster.open-cluster-management.io/clusterset": "fleet", "vendor": "openShift"})
		}
		h.apply(t, cluster)
	}
	metrics := fmt.Sprintf("127.0.0.1:%d", program.FreePort(t))
	log := h.startController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false", "--metrics-bind-address="+metrics)
	for name, test := range map[string]func(*testing.T, *testCluster, *program.Process){
		"misconfigured": ocmMisconfigured, "numberOfClusters 0": ocmZeroClusters, "groups": ocmGroups, "deletion": ocmDeletion,
		"status of another client": ocmStatus, "disabled": ocmDisabled,
	} {
		t.Run(name, func(t *testing.T) { test(t, h, log) })
	}
	// Clusters change, but no decision: nothing is written, although the hub drops scores and
	// times.
	before := fmt.Sprint(writes(t, metrics))
	for i := range 5 {
		h.patch(t, managedCluster(fmt.Sprintf("cluster%d", i+1), "50"),
			map[string]any{"metadata": map[string]any{"labels": map[string]any{"changed": "yes"}}})
	}
	h.apply(t, placementIn(team, "last", exactly(1, nil)))
	h.awaitChosen(t, log, "last", "cluster1")
	h.deletePlacements(t, log, placementIn(team, "last", nil))
	after := writes(t, metrics)
	after["create"]--
	after["update"]--
	after["status"]--
	after["delete"]--
	if before != fmt.Sprint(after) {
		t.Errorf("writes %s, then, without those of a placement, %v", before, after)
	}
	log.Stop(t)
}

func ocmMisconfigured(t *testing.T, h *testCluster, log *program.Process) {
	cel := func(expression string) map[string]any {
		return map[string]any{"numberOfClusters": int64(1), "predicates": []any{map[string]any{
			"requiredClusterSelector": map[string]any{"celSelector": map[string]any{"celExpressions": []any{expression}}},
		}}}
	}
	for name, tc := range map[string]struct{ wrong, right map[string]any }{
		"toleration": {
			map[string]any{"numberOfClusters": int64(1), "tolerations": []any{
				map[string]any{"key": "key1", "operator": "Exists", "value": "value1"},
			}},
			map[string]any{"tolerations": nil},
		},
		"expression": {cel("xxxx.expression"), cel(`managedCluster.metadata.name == "cluster1"`)},
	} {
		h.apply(t, placementIn(team, name, tc.wrong))
		for _, condition := range []string{clusterv1beta1.PlacementConditionMisconfigured, clusterv1beta1.PlacementConditionSatisfied} {
			h.awaitPlacement(t, log, name, condition, "Misconfigured")
		}
		h.awaitGroups(t, log, name, groupStatus(0, "", 0, name+"-decision-1"))
		h.patch(t, placementIn(team, name, nil), map[string]any{"spec": tc.right})
		h.awaitChosen(t, log, name, "cluster1")
		h.awaitPlacement(t, log, name, clusterv1beta1.PlacementConditionMisconfigured, "Succeedconfigured")
		h.awaitPlacement(t, log, name, clusterv1beta1.PlacementConditionSatisfied, "AllDecisionsScheduled")
		h.deletePlacements(t, log, placementIn(team, name, nil))
	}
}

func ocmZeroClusters(t *testing.T, h *testCluster, log *program.Process) {
	h.apply(t, placementIn(team, "zero", exactly(0, nil)))
	h.awaitPlacement(t, log, "zero", clusterv1beta1.PlacementConditionSatisfied, "NoManagedClusterMatched")
	h.awaitGroups(t, log, "zero", groupStatus(0, "", 0, "zero-decision-1"))
	h.deletePlacements(t, log, placementIn(team, "zero", nil))
}

func ocmGroups(t *testing.T, h *testCluster, log *program.Process) {
	spec := exactly(10, nil)
	spec["decisionStrategy"] = map[string]any{"groupStrategy": map[string]any{
		"clustersPerDecisionGroup": int64(2),
		"decisionGroups": []any{map[string]any{
			"groupName":            "canary",
			"groupClusterSelector": map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"vendor": "openShift"}}},
		}},
	}}
	h.apply(t, placementIn(team, "groups", spec))
	vendor := func(cluster string, value any) {
		h.patch(t, managedCluster(cluster, "50"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"vendor": value}}})
	}
	h.awaitGroups(t, log, "groups", groupStatus(0, "canary", 2, "groups-decision-1"), groupStatus(1, "", 2, "groups-decision-2"),
		groupStatus(2, "", 1, "groups-decision-3"))
	vendor("cluster1", nil)
	h.awaitGroups(t, log, "groups", groupStatus(0, "canary", 1, "groups-decision-1"), groupStatus(1, "", 2, "groups-decision-2"),
		groupStatus(2, "", 2, "groups-decision-3"))
	vendor("cluster2", nil)
	h.awaitGroups(t, log, "groups", groupStatus(0, "", 2, "groups-decision-1"), groupStatus(1, "", 2, "groups-decision-2"),
		groupStatus(2, "", 1, "groups-decision-3"))
	vendor("cluster1", "openShift")
	vendor("cluster2", "openShift")
	h.deletePlacements(t, log, placementIn(team, "groups", nil))
}

// ocmDeletion deletes a placement as kubectl delete --cascade=orphan does: decisions remain
// while a finalizer holds the placement, and for good once they have no owner.
func ocmDeletion(t *testing.T, h *testCluster, log *program.Process) {
	placement := placementIn(team, "orphans", exactly(2, nil))
	h.apply(t, placement)
	h.awaitChosen(t, log, "orphans", "cluster1", "cluster2")
	if err := h.client.Delete(t.Context(), placement, client.PropagationPolicy("Orphan")); err != nil {
		t.Fatal(err)
	}
	// The placement of this name is decided after the change of the deleted one.
	h.apply(t, placementIn(team, "later", exactly(2, nil)))
	h.awaitChosen(t, log, "later", "cluster1", "cluster2")
	var held unstructured.Unstructured
	held.SetGroupVersionKind(placement.GroupVersionKind())
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(placement), &held); err != nil || held.GetDeletionTimestamp() == nil {
		t.Fatal("the finalizer does not hold the placement", err)
	}
	decisions, err := h.slicesOf(t.Context(), "orphans")
	if err != nil || len(decisions) != 1 {
		t.Fatal(decisions, err)
	}
	h.patch(t, &decisions[0], map[string]any{"metadata": map[string]any{"ownerReferences": nil}})
	h.patch(t, &held, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	h.deletePlacements(t, log, placementIn(team, "later", nil))
	if decisions, err = h.slicesOf(t.Context(), "orphans"); err != nil || len(clustersIn(decisions...)) != 2 {
		t.Errorf("orphaned decisions %v, %v", decisions, err)
	}
	if err := h.client.Delete(t.Context(), &decisions[0]); err != nil {
		t.Fatal(err)
	}
	var events eventsv1.EventList
	eventually.True(t, "there are no events of the decisions", log, func(ctx context.Context) (bool, error) {
		err := h.client.List(ctx, &events, client.InNamespace(team))
		return slices.ContainsFunc(events.Items, func(e eventsv1.Event) bool {
			return e.Regarding.Name == "orphans" && e.Reason == "DecisionCreate" && e.Action == "DecisionCreated" && e.Related != nil &&
				e.Related.Name == "orphans-decision-1"
		}), err
	})
}

func ocmStatus(t *testing.T, h *testCluster, log *program.Process) {
	h.apply(t, placementIn(team, "overwritten", exactly(2, nil)))
	want := h.awaitChosen(t, log, "overwritten", "cluster1", "cluster2").Status
	for range 3 {
		h.patch(t, placementIn(team, "overwritten", nil), map[string]any{"status": map[string]any{
			"numberOfSelectedClusters": 9, "decisionGroups": nil, "conditions": nil,
		}}, "status")
		eventually.True(t, "the status is not restored", log, func(ctx context.Context) (bool, error) {
			var object v1beta1.Placement
			err := h.client.Get(ctx, client.ObjectKey{Namespace: team, Name: "overwritten"}, &object)
			return err == nil && cmp.Equal(want.DecisionGroups, object.Status.DecisionGroups) &&
				object.Status.NumberOfSelectedClusters == 2 &&
				meta.IsStatusConditionTrue(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied), err
		})
	}
	h.deletePlacements(t, log, placementIn(team, "overwritten", nil))
}

func ocmDisabled(t *testing.T, h *testCluster, log *program.Process) {
	disabled := placementIn(team, "disabled", exactly(2, nil))
	disabled.SetAnnotations(map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"})
	h.apply(t, disabled, placementIn(team, "enabled", exactly(1, nil)))
	h.awaitChosen(t, log, "enabled", "cluster1")
	if decisions, err := h.slicesOf(t.Context(), "disabled"); err != nil || len(decisions) > 0 {
		t.Errorf("%v, %v", decisions, err)
	}
	h.patch(t, disabled, map[string]any{"metadata": map[string]any{"annotations": nil}})
	h.awaitChosen(t, log, "disabled", "cluster1", "cluster2")
	h.deletePlacements(t, log, placementIn(team, "enabled", nil), placementIn(team, "disabled", nil))
}
