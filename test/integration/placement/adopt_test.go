package placement

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
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
