package placement

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// The first decision creates PlacementDecisions with labels and owner, each with one write, then writes the
// status. Later reconciliations write nothing, also after a restart. On a hub with the CRDs of Open Cluster Management each
// PlacementDecision needs two writes.
func TestFirstDecision(t *testing.T) {
	t.Run("own CRDs", func(t *testing.T) {
		testFirstDecision(t, false, "create p-decision-1", "create p-decision-2", "status p")
	})
	t.Run("CRDs of Open Cluster Management", func(t *testing.T) {
		testFirstDecision(t, true, "create p-decision-1", "update p-decision-1", "create p-decision-2", "update p-decision-2", "status p")
	})
}

func testFirstDecision(t *testing.T, ocmCRDs bool, writes ...string) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b", "c"), newPlacement(t, "p", canaries))...)
	h.ocmCRDs = ocmCRDs
	h.relabel("b", "canary", "1")
	h.reconciled("p")
	if diff := cmp.Diff(writes, h.writes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"p-decision-1 0 canary: b", "p-decision-2 1: a c"}, h.slices("p")); diff != "" {
		t.Error(diff)
	}
	status, reason := h.status("p", satisfied)
	want := []clusterv1beta1.DecisionGroupStatus{
		{DecisionGroupIndex: 0, DecisionGroupName: "canary", Decisions: []string{"p-decision-1"}, ClustersCount: 1},
		{DecisionGroupIndex: 1, Decisions: []string{"p-decision-2"}, ClustersCount: 2},
	}
	if diff := cmp.Diff(want, status.DecisionGroups); diff != "" || status.NumberOfSelectedClusters != 3 ||
		reason != "True AllDecisionsScheduled" {
		t.Errorf("numberOfSelectedClusters %d, %s, %s", status.NumberOfSelectedClusters, reason, diff)
	}
	object := decisionOf("p", "p-decision-1")
	must.Succeed(t, h.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != "Placement" || owner.Name != "p" || owner.UID != "p" ||
		!*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	for range 3 {
		if result, err := h.reconcile("p"); err != nil || len(h.writes) != 0 || result.RequeueAfter != 0 {
			t.Errorf("repeated: writes %v, %v, %v", h.writes, result, err)
		}
	}
	h.restart()
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 0 || result.RequeueAfter != 0 {
		t.Errorf("after a restart: writes %v, %v, %v", h.writes, result, err)
	}
}

// A PlacementDecision without decisions is one write on every hub.
func TestFirstDecisionWithoutClusters(t *testing.T) {
	for _, ocmCRDs := range []bool{false, true} {
		h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", "numberOfClusters: 0"))...)
		h.ocmCRDs = ocmCRDs
		h.reconciled("p")
		if diff := cmp.Diff([]string{"create p-decision-1", "status p"}, h.writes); diff != "" {
			t.Error(diff)
		}
		h.restart()
		if _, err := h.reconcile("p"); err != nil || len(h.writes) != 0 {
			t.Errorf("after a restart: writes %v, %v", h.writes, err)
		}
	}
}

// Each write of the first decision fails in turn. The status never reports more than the PlacementDecisions contain, no
// PlacementDecision lacks its decisions, and the same or a restarted controller completes the decision.
func TestEveryFirstWriteFails(t *testing.T) {
	for k, write := range []string{"create p-decision-1", "create p-decision-2", "status p"} {
		for _, killed := range []bool{false, true} {
			t.Run(fmt.Sprint(write, ", killed ", killed), func(t *testing.T) {
				h := newHub(t, AdoptAll, append(fleetOf("a", "b", "c"), newPlacement(t, "p", canaries))...)
				h.relabel("b", "canary", "1")
				want := []string{"p-decision-1 0 canary: b", "p-decision-2 1: a c"}
				h.wrote = func() {
					have := h.slices("p")
					if len(have) > len(want) || !slices.Equal(have, want[:len(have)]) {
						t.Errorf("%v after %v", have, h.writes)
					}
					if status, _ := h.status("p", satisfied); int(status.NumberOfSelectedClusters) > len(h.chosen("p")) {
						t.Errorf("numberOfSelectedClusters %d with %v", status.NumberOfSelectedClusters, have)
					}
				}
				h.fail = func(string) error {
					if len(h.writes) == k+1 {
						return errors.New("connection refused")
					}
					return nil
				}
				if _, err := h.reconcile("p"); err == nil {
					t.Errorf("no error although %s failed", write)
				}
				if status, reason := h.status("p", satisfied); reason != "" || status.NumberOfSelectedClusters != 0 {
					t.Errorf("status %+v", status)
				}
				h.fail = nil
				if killed {
					h.restart()
				}
				h.settled("p")
				if status, reason := h.status("p", satisfied); !slices.Equal(h.slices("p"), want) ||
					status.NumberOfSelectedClusters != 3 || reason != "True AllDecisionsScheduled" {
					t.Errorf("%v, status %+v", h.slices("p"), status)
				}
			})
		}
	}
}

// A hub that has creationVersion with a subresource status drops the decisions: they are written afterwards, and
// creationVersion is not tried again.
func TestHubDropsInitialStatus(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", withoutScores), newPlacement(t, "q", withoutScores))...)
	h.dropInitialStatus = true
	for _, name := range []string{"p", "q"} {
		h.reconciled(name)
		if diff := cmp.Diff([]string{"create " + name + "-decision-1", "update " + name + "-decision-1", "status " + name},
			h.writes); diff != "" {
			t.Error(diff)
		}
		if got := h.chosen(name); !slices.Equal(got, []string{"a"}) {
			t.Error(got)
		}
	}
}

// TestStaleDecision checks that a PlacementDecision of a deleted placement is deleted when a placement of the same name is decided, whose
// workload does not fit beside what was promised to another one meanwhile: the selected cluster and the promise were of the deleted one.
func TestStaleDecision(t *testing.T) {
	stale := decisionOf("p", "p-decision-1", "a")
	stale.OwnerReferences[0].UID = "old"
	stale.Annotations = map[string]string{v1beta1.AnnotationReplicas: `{"a": {"replicas": 8, "since": 1795239886}}`}
	workload := map[string]string{v1beta1.AnnotationWorkload: `{"requireFit": true, "replicas": 8, "template": {"kind": "Deployment",
		"metadata": {"name": "w"}, "spec": {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}}}`}
	other, p := newPlacement(t, "other", "{}"), newPlacement(t, "p", "{}")
	other.Annotations, p.Annotations = workload, workload
	h := newHub(t, AdoptAll, append(fleetOf("a"), other, stale)...)
	h.reportCapacity()
	h.settled("other")
	must.Succeed(t, h.client.Create(t.Context(), p))
	for range 2 {
		h.settled("p")
		if got := h.chosen("p"); len(got) > 0 || !slices.Equal(h.chosen("other"), []string{"a"}) {
			t.Errorf("p selects %q, other %q", got, h.chosen("other"))
		}
		var left clusterv1beta1.PlacementDecisionList
		must.Succeed(t, h.client.List(t.Context(), &left, client.MatchingLabels{clusterv1beta1.PlacementLabel: "p"}))
		for i := range left.Items {
			d := &left.Items[i]
			if owner := metav1.GetControllerOf(d); owner.UID != "p" || d.Annotations[v1beta1.AnnotationReplicas] != "" {
				t.Errorf("%s has owner %s and the promises %v", d.Name, owner.UID, d.Annotations)
			}
		}
		h.restart()
		h.reportCapacity()
	}
}
