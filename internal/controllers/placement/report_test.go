package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// A new placement that is misconfigured has both conditions and one empty PlacementDecision.
func TestNewPlacementIsMisconfigured(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", `tolerations: [{key: k, operator: Exists, value: v}]`))...)
	h.settled("p")
	status, reason := h.status("p", misconfigured)
	_, selected := h.status("p", satisfied)
	if reason != "True Misconfigured" || selected != "False Misconfigured" || status.NumberOfSelectedClusters != 0 {
		t.Errorf("%s, %s, %+v", reason, selected, status)
	}
	if got := h.slices("p"); !slices.Equal(got, []string{"p-decision-1 0:"}) && !slices.Equal(got, []string{"p-decision-1 0: "}) {
		t.Errorf("%q", got)
	}
	h.respecify("p", withoutScores)
	h.settled("p")
	if got := h.chosen("p"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("chosen %v", got)
	}
}

// overwrite writes a status as another client would.
func (h *hub) overwrite(name string, modify func(*clusterv1beta1.PlacementStatus)) {
	h.Helper()
	object := newPlacement(h.T, name, "{}")
	must.Succeed(h, h.client.Get(h.Context(), keyOf(name), object))
	modify(&object.Status)
	h.wrote = nil
	must.Succeed(h, h.client.Status().Update(h.Context(), object))
}

// A status that another client has overwritten is restored, at most once per second.
// Conditions of other types are kept.
func TestStatusIsRestored(t *testing.T) {
	for name, keeps := range map[string]bool{"valid": false, "misconfigured": true} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", withoutScores))...)
			h.settled("p")
			if keeps {
				h.respecify("p", `numberOfClusters: -1`)
				h.settled("p")
			}
			want, _ := h.status("p", satisfied)
			ruin := func(status *clusterv1beta1.PlacementStatus) {
				status.NumberOfSelectedClusters, status.DecisionGroups = 7, nil
				status.LastScoreUpdateTime = &metav1.Time{Time: h.now.Add(time.Hour)}
				status.Conditions = []metav1.Condition{
					{
						Type:               satisfied,
						Status:             metav1.ConditionUnknown,
						Reason:             "Other",
						LastTransitionTime: metav1.NewTime(h.now.Add(time.Hour)),
					},
					{Type: "Mine", Status: metav1.ConditionTrue, Reason: "Mine", LastTransitionTime: metav1.NewTime(h.now)},
				}
			}
			h.now = h.now.Add(time.Minute)
			h.overwrite("p", ruin)
			if _, err := h.reconcile("p"); err != nil || !slices.Equal(h.writes, []string{"status p"}) {
				t.Fatalf("writes %v, %v", h.writes, err)
			}
			got, _ := h.status("p", satisfied)
			meta.RemoveStatusCondition(&got.Conditions, "Mine")
			if c := (&Controller{}); !c.sameStatus(&want, &got) {
				t.Errorf("%+v, want %+v", got, want)
			}
			// If another client overwrites the status repeatedly, the status is restored once per second.
			h.overwrite("p", ruin)
			if result, err := h.reconcile("p"); err != nil || len(h.writes) > 0 || result.RequeueAfter != statusInterval {
				t.Errorf("writes %v, %v, %v", h.writes, result, err)
			}
		})
	}
}

// The handler of status changes queues placements whose status another client has written.
func TestOnStatusChange(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", withoutScores))...)
	h.settled("p")
	get := func() *v1beta1.Placement {
		object := newPlacement(t, "p", "{}")
		must.Succeed(t, h.client.Get(t.Context(), keyOf("p"), object))
		return object
	}
	before, own := newPlacement(t, "p", "{}"), get()
	h.overwrite("p", func(status *clusterv1beta1.PlacementStatus) { status.NumberOfSelectedClusters = 9 })
	other := get()
	relabeled := own.DeepCopy()
	relabeled.ResourceVersion, relabeled.Labels = "99999", map[string]string{"a": "b"}
	for name, tc := range map[string]struct {
		before, after *v1beta1.Placement
		queued        int
	}{
		"own write":              {before, own, 0},
		"other client":           {own, other, 1},
		"status does not change": {own, relabeled, 0},
	} {
		q := &added{}
		h.c.onStatusChange().Update(t.Context(), event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}, q)
		if len(q.names) != tc.queued {
			t.Errorf("%s: queued %v", name, q.names)
		}
	}
}

// While clusters arrive, the number in the status is written at most once per second. A
// condition that changes is written at once.
func TestStatusWhileClustersArrive(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("c00"), newPlacement(t, "p", withoutScores+"numberOfClusters: 20"))...)
	h.settled("p")
	statusWrites := 0
	for i := range 19 {
		h.now = h.now.Add(100 * time.Millisecond)
		name := fmt.Sprintf("c%02d", i+1)
		must.Succeed(t, h.client.Create(t.Context(), managed(name)))
		h.observe(name)
		h.reconciled("p")
		if slices.Contains(h.writes, "status p") {
			statusWrites++
		}
	}
	// One after the first second, and one for the last cluster, which satisfies the placement.
	if _, reason := h.status("p", satisfied); statusWrites != 2 || reason != "True AllDecisionsScheduled" {
		t.Errorf("%d writes of the status, %s", statusWrites, reason)
	}
}

// The status is written at most once per second, here 0.7 s after the second decisions: it has the time of these, in whole seconds.
func TestLastScoreUpdateTime(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", withoutScores))...)
	h.now = h.now.Add(500 * time.Millisecond)
	h.settled("p")
	must.Succeed(t, h.client.Create(t.Context(), managed("b")))
	h.observe("b")
	h.now = h.now.Add(700 * time.Millisecond)
	want := h.now.Truncate(time.Second)
	for range 3 {
		h.settled("p")
		h.now = h.now.Add(700 * time.Millisecond)
	}
	if status, _ := h.status("p", satisfied); !status.LastScoreUpdateTime.Time.Equal(want) {
		t.Errorf("lastScoreUpdateTime %s, want %s", status.LastScoreUpdateTime, want)
	}
}

// A hub whose CRDs do not have scores and lastScoreUpdateTime drops them. The controller does
// not write them again.
func TestHubDropsFields(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", `{}`))...)
	h.drop = func(object client.Object) {
		switch object := object.(type) {
		case *clusterv1beta1.PlacementDecision:
			for i := range object.Status.Decisions {
				object.Status.Decisions[i].Score = 0
			}
		case *v1beta1.Placement:
			object.Status.LastScoreUpdateTime = nil
		}
	}
	h.settled("p")
	for range 3 {
		h.now = h.now.Add(time.Hour)
		if result, err := h.reconcile("p"); err != nil || len(h.writes) > 0 || result.RequeueAfter != 0 {
			t.Errorf("writes %v, %v, %v", h.writes, result, err)
		}
	}
}

// Events have the reasons of Open Cluster Management.
func TestEvents(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b", "c"), newPlacement(t, "p", `numberOfClusters: 2`))...)
	expect := func(when string, want ...string) {
		t.Helper()
		h.now = h.now.Add(time.Hour)
		h.settled("p")
		var got []string
		for len(h.events.Events) > 0 {
			got = append(got, <-h.events.Events)
		}
		if len(got) != len(want) {
			t.Errorf("%s: events %q, want %q", when, got, want)
			return
		}
		for i := range want {
			if !strings.HasPrefix(got[i], want[i]) {
				t.Errorf("%s: event %q, want %q", when, got[i], want[i])
			}
		}
	}
	// Balance and Steady: 100 each.
	expect("first decision", "Normal DecisionCreate p-decision-1: selected 2 clusters", "Normal ScoreUpdate a:200 b:200")
	expect("no change")
	h.relabel("a", "zone", "1")
	expect("irrelevant change")
	must.Succeed(t, h.client.Delete(t.Context(), managed("b")))
	h.observe("b")
	expect("other clusters", "Normal DecisionUpdate p-decision-1: selected 2 clusters (was 2); added c; removed b",
		"Normal ScoreUpdate a:200 c:200")
	h.respecify("p", `prioritizerPolicy: {configurations: [{name: Steady}, {name: Steady}]}`)
	expect("repeated prioritizer", "Warning PlacementWarning spec.prioritizerPolicy.configurations[1]")
	h.respecify("p", canaries)
	h.relabel("c", "canary", "1")
	expect("groups", "Normal DecisionCreate p-decision-2: selected 1 cluster", "Normal DecisionCreate p-decision-3: selected 1 cluster",
		"Normal DecisionDelete p-decision-1: deleted", "Normal ScoreUpdate c:0 a:0",
		"Normal DecisionCreate p-decision-1: selected 1 cluster", "Normal DecisionDelete p-decision-3: deleted",
		"Normal ScoreUpdate c:0 a:0")
}

// The list of scores of an event has a bounded length.
func TestManyScores(t *testing.T) {
	var names []string
	for i := range 400 {
		names = append(names, fmt.Sprintf("cluster-%03d", i))
	}
	h := newHub(t, AdoptAll, append(fleetOf(names...), newPlacement(t, "p", `{}`))...)
	h.reconciled("p")
	for len(h.events.Events) > 0 {
		if text := <-h.events.Events; len(text) > 1024 || strings.Contains(text, "ScoreUpdate") && !strings.HasSuffix(text, "...") {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
}
