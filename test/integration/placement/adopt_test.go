package placement

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
	"github.com/plimsoll-k8s/plimsoll/test/support/testcluster"
)

// decideElsewhere writes the decisions of a placement as another controller would.
func decideElsewhere(t *testing.T, c *testcluster.Cluster, placement string, clusters ...string) *clusterv1beta1.PlacementDecision {
	t.Helper()
	decision := &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
		Name: placement + "-decision-1", Namespace: testcluster.Team,
		Labels: map[string]string{
			clusterv1beta1.PlacementLabel:          placement,
			clusterv1beta1.DecisionGroupIndexLabel: "0",
			clusterv1beta1.DecisionGroupNameLabel:  "",
		},
	}}
	c.Create(t, decision)
	decision.Status.Decisions = []clusterv1beta1.ClusterDecision{}
	for _, cluster := range clusters {
		decision.Status.Decisions = append(decision.Status.Decisions, clusterv1beta1.ClusterDecision{ClusterName: cluster})
	}
	must.Succeed(t, c.Client.Status().Update(t.Context(), decision))
	return decision
}

// On a hub with another placement controller, only annotated placements are adopted. Their
// existing decisions count as selected.
func TestPlacementAdoption(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	// The other controller selected other clusters than Plimsoll would: by CPU the first two
	// are cluster4 and cluster1.
	for _, name := range []string{"theirs", "handed-over", "followed"} {
		weights := map[string]int{"ResourceAllocatableCPU": 1, "Steady": 3}
		if name == "followed" {
			weights["Steady"] = 0
		}
		placement := testcluster.PlacementIn(testcluster.Team, name, testcluster.Exactly(2, weights))
		h.Apply(t, placement)
		decideElsewhere(t, h, name, "cluster3", "cluster5")
	}
	decisions := h.RecordChanges(t, testcluster.DecisionKind)
	controller := h.StartController(t, "--controllers=placement", "--leader-elect=false")
	// The placement ours is annotated from the start and therefore decided.
	ours := testcluster.PlacementIn(testcluster.Team, "ours", testcluster.Exactly(1, map[string]int{"ResourceAllocatableCPU": 1}))
	ours.SetAnnotations(map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"})
	h.Apply(t, ours)
	h.AwaitChosen(t, controller, "ours", "cluster4")
	annotate := func(name, annotation string) {
		h.Patch(t, testcluster.PlacementIn(testcluster.Team, name, nil), map[string]any{
			"metadata": map[string]any{"annotations": map[string]any{clusterv1beta1.PlacementDisableAnnotation: annotation}},
		})
	}
	for _, name := range []string{"theirs", "handed-over", "followed"} {
		if history := decisions.History(t, name); len(history) > 0 {
			t.Errorf("%s is not adopted, but was written: %v", name, history)
		}
	}
	annotate("handed-over", "true")
	h.AwaitChosen(t, controller, "handed-over", "cluster3", "cluster5")
	if history := decisions.History(t, "handed-over"); len(history) > 1 ||
		len(history) == 1 && !slices.Equal(history[0].Clusters, []string{"cluster3", "cluster5"}) {
		t.Errorf("adopted with weight 3 of Steady, but the decisions changed: %v", history)
	}
	annotate("followed", "true")
	h.AwaitChosen(t, controller, "followed", "cluster1", "cluster4")
	// Once the annotation is false, changes of the fleet are ignored.
	annotate("followed", "false")
	h.Apply(t, testcluster.Example(t, "changes/cluster2-grows.yaml")...)
	h.AwaitChosen(t, controller, "ours", "cluster2")
	h.AwaitChosen(t, controller, "followed", "cluster1", "cluster4")
	var theirs v1beta1.Placement
	must.Succeed(t, h.Client.Get(t.Context(), client.ObjectKey{Namespace: testcluster.Team, Name: "theirs"}, &theirs))
	if len(theirs.Status.Conditions) > 0 || len(decisions.History(t, "theirs")) > 0 {
		t.Errorf("theirs was written: %+v, %v", theirs.Status, decisions.History(t, "theirs"))
	}
	controller.Stop(t)
}

// A typo in a spec does not remove decisions, and a condition names the field.
func TestPlacementTypos(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	selecting := func(label string) map[string]any {
		return map[string]any{
			"predicates": []any{
				map[string]any{
					"requiredClusterSelector": map[string]any{
						"labelSelector": map[string]any{"matchLabels": map[string]any{label: "fleet"}},
					},
				},
			},
		}
	}
	all := []string{"cluster1", "cluster2", "cluster3", "cluster4", "cluster5", "cluster6"}
	const setLabel = "cluster.open-cluster-management.io/clusterset"
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, "typo", selecting(setLabel)),
		testcluster.PlacementIn(testcluster.Team, "set", map[string]any{"clusterSets": []any{"fleet"}}))
	h.AwaitChosen(t, controller, "typo", all...)
	h.AwaitChosen(t, controller, "set", all...)
	decisions := h.RecordChanges(t, testcluster.DecisionKind)

	h.Patch(t, testcluster.PlacementIn(testcluster.Team, "typo", nil),
		map[string]any{"spec": selecting("cluster.open-cluster-management.io/cluster-set")})
	message := h.AwaitPlacement(t, controller, "typo", clusterv1beta1.PlacementConditionMisconfigured, "MatchesNothing")
	if !strings.Contains(message, "spec.predicates") {
		t.Errorf("message does not name the field: %s", message)
	}
	t.Logf("a typo in a selector: %s", message)
	h.Patch(
		t, testcluster.PlacementIn(testcluster.Team, "set", nil), map[string]any{"spec": map[string]any{"clusterSets": []any{"fleeet"}}},
	)
	message = h.AwaitPlacement(t, controller, "set", clusterv1beta1.PlacementConditionMisconfigured, "MatchesNothing")
	if !strings.Contains(message, "spec.clusterSets") || !strings.Contains(message, "fleeet") {
		t.Errorf("message does not name the field and the set: %s", message)
	}
	t.Logf("a typo in a set: %s", message)
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, "unbound", map[string]any{"clusterSets": []any{"elsewhere"}}))
	message = h.AwaitPlacement(t, controller, "unbound", clusterv1beta1.PlacementConditionSatisfied, "NoIntersection")
	if !strings.Contains(message, "spec.clusterSets: elsewhere") {
		t.Errorf("message does not name the field and the set: %s", message)
	}
	for _, name := range []string{"typo", "set"} {
		if history := decisions.History(t, name); len(history) > 0 {
			t.Errorf("%s lost its decisions: %v", name, history)
		}
	}
	// A corrected spec is applied.
	spec := selecting(setLabel)
	spec["numberOfClusters"] = int64(5)
	h.Patch(t, testcluster.PlacementIn(testcluster.Team, "typo", nil), map[string]any{"spec": spec})
	h.AwaitPlacement(t, controller, "typo", clusterv1beta1.PlacementConditionMisconfigured, "Succeedconfigured")
	h.AwaitPlacement(t, controller, "typo", clusterv1beta1.PlacementConditionSatisfied, "AllDecisionsScheduled")
	controller.Stop(t)
}

// laxPlacementCRD returns the path of a CRD of placements without validation.
func laxPlacementCRD(t *testing.T) string {
	t.Helper()
	crd := testcluster.ReadCRD(t, program.File(t, testcluster.PlacementCRD))
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema = &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	}
	raw, err := yaml.Marshal(crd)
	must.Succeed(t, err)
	path := filepath.Join(t.TempDir(), "placements.yaml")
	must.Succeed(t, os.WriteFile(path, raw, 0o600))
	return path
}

// Invalid placements that the API server accepts have condition PlacementMisconfigured, and
// valid placements are decided.
func TestInvalidPlacements(t *testing.T) {
	h := testcluster.StartWithCRDs(t, append(testcluster.OCMCRDs(t), laxPlacementCRD(t))...)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	cel := func(expression string) map[string]any {
		return map[string]any{
			"predicates": []any{
				map[string]any{
					"requiredClusterSelector": map[string]any{"celSelector": map[string]any{"celExpressions": []any{expression}}},
				},
			},
		}
	}
	ten := "[0,1,2,3,4,5,6,7,8,9]"
	costly := "true"
	for i := range 7 {
		costly = fmt.Sprintf("%s.all(x%d, %s)", ten, i, costly)
	}
	bad := append(placementDocuments(t, "refused.yaml"),
		placementDocument{
			Name:     "CEL that does not compile",
			Spec:     cel("managedCluster.metadata.name =="),
			Validate: "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]",
		},
		placementDocument{
			Name: "CEL that is not boolean", Spec: cel("1 + 1"),
			Validate: "spec.predicates[0].requiredClusterSelector.celSelector.celExpressions[0]",
		},
		placementDocument{Name: "CEL above the cost limit", Spec: cel(costly), Validate: "costs more than"},
	)
	for i, d := range bad {
		h.Apply(t, testcluster.PlacementIn(testcluster.Team, fmt.Sprint("bad-", i), d.Spec))
	}
	long := strings.Repeat("long-name-", 25) + "abc"
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, long, map[string]any{"numberOfClusters": int64(1)}))
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, "good", testcluster.Exactly(1, map[string]int{"ResourceAllocatableCPU": 1})))
	h.AwaitChosen(t, controller, "good", "cluster4")
	for i, d := range bad {
		message := h.AwaitPlacement(t, controller, fmt.Sprint("bad-", i), clusterv1beta1.PlacementConditionMisconfigured, "Misconfigured")
		if want := cmp.Or(
			d.CRD,
			d.Validate,
		); !strings.Contains(testcluster.WithoutValue(message), want) ||
			!strings.HasPrefix(message, "spec.") {
			t.Errorf("%s: %s, want %s", d.Name, message, want)
		}
	}
	message := h.AwaitPlacement(t, controller, long, clusterv1beta1.PlacementConditionMisconfigured, "Misconfigured")
	if !strings.Contains(message, "metadata.name") {
		t.Errorf("name of %d characters: message %s", len(long), message)
	}
	var all clusterv1beta1.PlacementDecisionList
	must.Succeed(t, h.Client.List(t.Context(), &all))
	// Each placement has one, except the placement with the long name, which cannot be the value of a label.
	if len(all.Items) != len(bad)+1 {
		t.Errorf("%d PlacementDecisions, want %d", len(all.Items), len(bad)+1)
	}
	for _, decision := range all.Items {
		if placement := decision.Labels[clusterv1beta1.PlacementLabel]; placement != "good" && len(decision.Status.Decisions) > 0 {
			t.Errorf("%s: %v", placement, decision.Status.Decisions)
		}
	}
	t.Logf("%d invalid placements and a valid one", len(bad)+1)
	if strings.Contains(controller.String(), "panic") {
		t.Errorf("the controller panicked:\n%s", controller)
	}
	controller.Stop(t)
}

// Clusters with missing or invalid resources are ranked last.
func TestPlacementOfClustersWithInvalidResources(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")[:3]...)
	cluster := func(name string, status map[string]any) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"cluster.open-cluster-management.io/clusterset": "fleet"}},
			"spec":     map[string]any{"hubAcceptsClient": true},
		}}
		if status != nil {
			object.Object["status"] = status
		}
		return object
	}
	amounts := func(cpu string) map[string]any { return map[string]any{"cpu": cpu, "memory": "1Gi"} }
	h.Apply(t, cluster("a-missing", nil), cluster("b-zero", map[string]any{"allocatable": amounts("0"), "capacity": amounts("0")}),
		cluster("c-negative", map[string]any{"allocatable": amounts("-8"), "capacity": amounts("-8")}),
		cluster("d-no-capacity", map[string]any{"allocatable": amounts("8")}),
		cluster("e-good", map[string]any{"allocatable": amounts("2"), "capacity": amounts("16")}),
		cluster("f-good", map[string]any{"allocatable": amounts("2"), "capacity": amounts("16")}))
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	h.Apply(t, testcluster.PlacementIn(testcluster.Team, "ratio", testcluster.Exactly(2, map[string]int{"ResourceRatioCPU": 1})),
		testcluster.PlacementIn(testcluster.Team, "memory", testcluster.Exactly(2, map[string]int{"ResourceAllocatableMemory": 1})))
	h.AwaitChosen(t, controller, "ratio", "e-good", "f-good")
	// All clusters with memory have the same amount: the first by name are selected.
	h.AwaitChosen(t, controller, "memory", "b-zero", "c-negative")
	controller.Stop(t)
}

// Scores of add-ons are used until they expire.
func TestPlacementScoresExpire(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	score := func(cluster string, value int, until string) *unstructured.Unstructured {
		h.Create(t, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}})
		status := map[string]any{"scores": []any{map[string]any{"name": "free", "value": int64(value)}}}
		if until != "" {
			status["validUntil"] = until
		}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore",
			"metadata": map[string]any{"name": "plimsoll", "namespace": cluster}, "status": status,
		}}
	}
	spec := map[string]any{"numberOfClusters": int64(1), "prioritizerPolicy": map[string]any{"mode": "Exact", "configurations": []any{
		map[string]any{
			"scoreCoordinate": map[string]any{"type": "AddOn", "addOn": map[string]any{"resourceName": "plimsoll", "scoreName": "free"}},
		},
	}}}
	decisions := h.RecordChanges(t, testcluster.DecisionKind)
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	expiring := score("cluster2", 80, "2099-01-01T00:00:00Z")
	h.Apply(t, score("cluster1", 10, ""), expiring, score("cluster3", 90, "2020-01-01T00:00:00Z"),
		testcluster.PlacementIn(testcluster.Team, "free", spec))
	h.AwaitChosen(t, controller, "free", "cluster2")
	until := time.Now().Add(5 * time.Second).Truncate(time.Second)
	h.Patch(t, expiring, map[string]any{"status": map[string]any{"validUntil": until.UTC().Format(time.RFC3339)}}, "status")
	h.AwaitChosen(t, controller, "free", "cluster1")
	late := decisions.Since(t, "free", "cluster1").Sub(until)
	t.Logf("the decision changed %d ms after the score had expired", late.Milliseconds())
	// The score is valid until the end of the second. A decision usually takes less than a second, and longer while tests of other
	// packages run.
	if late < 0 || late > 21*time.Second {
		t.Errorf("the decision changed %s after the score had expired", late)
	}
	controller.Stop(t)
}

// With an invalid flag the program exits with code 2 and one line that names the flag.
func TestControllerFlags(t *testing.T) {
	t.Parallel()
	run := func(args ...string) (out string, code int) {
		stdout, stderr, code := program.Run(t, program.Path(t, "plimsoll-controller"), args...)
		return stdout + stderr, code
	}
	help, code := run("--help")
	for _, want := range []string{"--controllers", "--adopt", "annotated", "--leader-elect", "placement: select managed clusters"} {
		if code != 0 || !strings.Contains(help, want) {
			t.Errorf("--help, exit code %d, lacks %q:\n%s", code, want, help)
		}
	}
	for flag, want := range map[string]string{
		"--adopt=some":             `plimsoll-controller: --adopt: invalid value "some": must be annotated or all`,
		"--controllers=placements": `plimsoll-controller: --controllers: invalid value "placements": must be slack or placement`,
		"--adpot=all":              "plimsoll-controller: unknown flag: --adpot; did you mean --adopt? (see plimsoll-controller --help)",
		"--leader-elect=perhaps":   `plimsoll-controller: invalid argument "perhaps" for "--leader-elect" flag`,
		"placement":                `plimsoll-controller: unexpected argument "placement": plimsoll-controller has flags only`,
		"--kubeconfig=/nowhere":    "plimsoll-controller: --kubeconfig: stat /nowhere: no such file or directory",
	} {
		if out, code := run(flag); code != 2 || !strings.HasPrefix(out, want) || strings.Count(out, "\n") != 1 {
			t.Errorf("%s: exit code %d, want 2 and %q:\n%s", flag, code, want, out)
		}
	}
}

// The controller restores decisions that another client changes.
func TestPlacementConflictingWriter(t *testing.T) {
	h := testcluster.StartPlacementHub(t)
	h.Apply(t, testcluster.Example(t, "fleet.yaml")...)
	// Another object has the name of the first PlacementDecision.
	h.Create(t, &clusterv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{Name: "taken-decision-1", Namespace: testcluster.Team}})
	controller := h.StartController(t, "--controllers=placement", "--adopt=all", "--leader-elect=false")
	h.Apply(
		t, testcluster.PlacementIn(testcluster.Team, "fought-over", testcluster.Exactly(2, map[string]int{"ResourceAllocatableCPU": 1})),
		testcluster.PlacementIn(testcluster.Team, "taken", testcluster.Exactly(2, map[string]int{"ResourceAllocatableCPU": 1})),
	)
	h.AwaitChosen(t, controller, "fought-over", "cluster1", "cluster4")
	t.Run("status", func(t *testing.T) {
		key := client.ObjectKey{Namespace: testcluster.Team, Name: "fought-over-decision-1"}
		every := time.NewTicker(20 * time.Millisecond)
		defer every.Stop()
		var wrote, lost int
		for range 200 {
			<-every.C
			var decision clusterv1beta1.PlacementDecision
			must.Succeed(t, h.Client.Get(t.Context(), key, &decision))
			decision.Status.Decisions = []clusterv1beta1.ClusterDecision{{ClusterName: "cluster5", Reason: "because"}}
			if err := h.Client.Status().Update(t.Context(), &decision); apierrors.IsConflict(err) {
				lost++
			} else if err != nil {
				t.Fatal(err)
			}
			wrote++
		}
		began := time.Now()
		h.AwaitChosen(t, controller, "fought-over", "cluster1", "cluster4")
		t.Logf("overwritten %d times (%d conflicts), restored %d ms after the last write", wrote, lost, time.Since(began).Milliseconds())
	})
	t.Run("labels", func(t *testing.T) {
		existing, err := h.SlicesOf(t.Context(), "fought-over")
		if err != nil || len(existing) != 1 {
			t.Fatal(existing, err)
		}
		raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": nil}})
		must.Succeed(t, err)
		must.Succeed(t, h.Client.Patch(t.Context(), &existing[0], client.RawPatch("application/merge-patch+json", raw)))
		h.AwaitChosen(t, controller, "fought-over", "cluster1", "cluster4")
	})
	t.Run("deletion", func(t *testing.T) {
		existing, err := h.SlicesOf(t.Context(), "fought-over")
		if err != nil || len(existing) != 1 {
			t.Fatal(existing, err)
		}
		must.Succeed(t, h.Client.Delete(t.Context(), &existing[0]))
		h.AwaitChosen(t, controller, "fought-over", "cluster1", "cluster4")
	})
	t.Run("name in use", func(t *testing.T) { h.AwaitChosen(t, controller, "taken", "cluster1", "cluster4") })
	eventually.True(t, "condition PlacementSatisfied is not True", controller, func(ctx context.Context) (bool, error) {
		var placement v1beta1.Placement
		err := h.Client.Get(ctx, client.ObjectKey{Namespace: testcluster.Team, Name: "fought-over"}, &placement)
		return meta.IsStatusConditionTrue(placement.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied), err
	})
	controller.Stop(t)
}
