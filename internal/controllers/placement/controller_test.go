package placement

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const (
	satisfied     = clusterv1beta1.PlacementConditionSatisfied
	misconfigured = clusterv1beta1.PlacementConditionMisconfigured
	// withoutScores ranks by name only, so that scores never change.
	withoutScores = "prioritizerPolicy: {mode: Exact}\n"
	canaries      = withoutScores + `decisionStrategy: {groupStrategy: {decisionGroups: [` +
		`{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {canary: "1"}}}}]}}`
)

// Each write of a change fails in turn, in each way. The change needs all kinds of steps:
// clusters change groups, 30 of 240 are added and 30 are removed. A cluster that is selected
// before and after is never missing, the status is written last, and afterwards the same or
// a restarted controller completes the change.
func TestEveryWriteFails(t *testing.T) {
	t.Run("own CRDs", func(t *testing.T) { testEveryWriteFails(t, false) })
	t.Run("CRDs of Open Cluster Management", func(t *testing.T) { testEveryWriteFails(t, true) })
}

func testEveryWriteFails(t *testing.T, ocmCRDs bool) {
	var names []string
	for i := range 270 {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	without := func(label string) string {
		return "\npredicates: [{requiredClusterSelector: {labelSelector: " +
			"{matchExpressions: [{key: " + label + ", operator: DoesNotExist}]}}}]"
	}
	before := canaries + without("new")
	after := strings.Replace(canaries, "{canary:", "{next:", 1) + without("old")
	start := func(t *testing.T) *hub {
		objects := append(fleetOf(names...), newPlacement(t, "p", before))
		for i, object := range objects[:270] {
			labels := map[string]string{}
			switch {
			case i < 30:
				labels["new"] = ""
			case i >= 240:
				labels["old"] = ""
			case i < 230: // some clusters join the group canary, some leave it
				labels["canary"] = fmt.Sprint((i + 1) % 2)
				labels["next"] = fmt.Sprint(min(1, i%4)) // three of four
			}
			object.SetLabels(labels)
		}
		h := newHub(t, AdoptAll, objects...)
		h.ocmCRDs = ocmCRDs
		h.settled("p")
		h.respecify("p", after)
		return h
	}
	h := start(t)
	h.reconciled("p")
	writes, wanted := h.writes, h.chosen("p")
	if !slices.Contains(writes, "create p-decision-4") || !slices.Contains(writes, "delete p-decision-3") ||
		!slices.Equal(wanted, names[:240]) {
		t.Fatalf("writes %v, %d clusters", writes, len(wanted))
	}
	decisions := schema.GroupResource{Resource: "placementdecisions"}
	for name, fault := range map[string]struct {
		err     error
		retried bool // Reconcile returns no error
		killed  bool
	}{
		"fails":    {errors.New("connection refused"), false, false},
		"conflict": {apierrors.NewConflict(decisions, "p", errors.New("changed")), true, false},
		"killed":   {errors.New("connection refused"), false, true},
	} {
		for k, write := range writes {
			t.Run(fmt.Sprint(name, " ", k, " ", write), func(t *testing.T) {
				h := start(t)
				stay := names[30:240]
				h.wrote = func() {
					have := h.chosen("p")
					for _, c := range stay {
						if _, found := slices.BinarySearch(have, c); !found {
							t.Fatalf("%s is missing after %v", c, h.writes)
						}
					}
				}
				h.fail = func(string) error {
					if len(h.writes) == k+1 {
						return fault.err
					}
					return nil
				}
				result, err := h.reconcile("p")
				// The status is patched, which cannot conflict.
				if status := strings.HasPrefix(write, "status"); (err == nil) != (fault.retried && !status) ||
					err == nil && result.RequeueAfter != changeDelay {
					t.Errorf("%v, %v", result, err)
				}
				if got, _ := h.status("p", satisfied); got.Conditions[0].ObservedGeneration != 1 {
					t.Errorf("observedGeneration %d, want 1", got.Conditions[0].ObservedGeneration)
				}
				h.fail = nil
				if fault.killed {
					h.restart()
				}
				h.settled("p")
				if got := h.chosen("p"); !slices.Equal(got, wanted) {
					t.Errorf("%d clusters after the last reconciliation, want 240", len(got))
				}
				if status, reason := h.status("p", satisfied); status.NumberOfSelectedClusters != 240 ||
					status.Conditions[0].ObservedGeneration != 2 || reason != "True AllDecisionsScheduled" {
					t.Errorf("numberOfSelectedClusters %d, %s", status.NumberOfSelectedClusters, reason)
				}
			})
		}
	}
}

// A misconfigured placement keeps its decisions and has the condition.
func TestMisconfiguredKeepsDecisions(t *testing.T) {
	for name, spec := range map[string]string{
		"invalid":         `numberOfClusters: -1`,
		"matches nothing": `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {a: typo}}}}]`,
		"unknown set":     `clusterSets: [typo]`,
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restarted), func(t *testing.T) {
				h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", withoutScores))...)
				h.settled("p")
				before, _ := h.status("p", satisfied)
				h.respecify("p", spec)
				for i, want := range [][]string{{"status p"}, nil, nil} {
					if restarted {
						h.restart()
					}
					if _, err := h.reconcile("p"); err != nil || !slices.Equal(h.writes, want) {
						t.Fatalf("writes %v, %v in reconciliation %d", h.writes, err, i)
					}
				}
				status, reason := h.status("p", misconfigured)
				_, kept := h.status("p", satisfied)
				if kept != "False "+strings.TrimPrefix(reason, "True ") {
					t.Errorf("PlacementSatisfied is %s, PlacementMisconfigured %s", kept, reason)
				}
				if !strings.HasPrefix(reason, "True") || status.NumberOfSelectedClusters != 2 ||
					!cmp.Equal(status.DecisionGroups, before.DecisionGroups) {
					t.Errorf("%s, %+v", reason, status)
				}
				if got := h.chosen("p"); !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("chosen %v", got)
				}
				// A corrected spec is applied.
				h.respecify("p", withoutScores+"numberOfClusters: 1")
				h.settled("p")
				if _, reason := h.status("p", misconfigured); reason != "False Succeedconfigured" || len(h.chosen("p")) != 1 {
					t.Errorf("%s, chosen %v", reason, h.chosen("p"))
				}
			})
		}
	}
}

// An unmanaged placement is not written, not even while it is being deleted, but Balance of
// other placements counts its decisions.
func TestUnmanagedPlacement(t *testing.T) {
	theirs, ours := newPlacement(t, "theirs", `numberOfClusters: 1`), newPlacement(t, "ours", `numberOfClusters: 1`)
	ours.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	theirs.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "false"}
	theirs.Finalizers = []string{"example.com/hold"}
	h := newHub(t, AdoptAnnotated, append(fleetOf("a", "b"), theirs, ours, decisionOf("theirs", "theirs-decision-1", "a"))...)
	expectNoWrites := func(when string) {
		t.Helper()
		if _, err := h.reconcile("theirs"); err != nil || len(h.writes) > 0 {
			t.Errorf("%s: writes %v, %v", when, h.writes, err)
		}
	}
	expectNoWrites("initially")
	h.settled("ours")
	// a has 1 of at most 1 decisions: -100; b has none: 100.
	if got := h.chosen("ours"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("chosen %v, want b", got)
	}
	must.Succeed(t, h.client.Delete(t.Context(), theirs))
	expectNoWrites("being deleted")
	// With AdoptAll the annotation excludes a placement.
	excluded := newPlacement(t, "excluded", `numberOfClusters: 1`)
	excluded.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	h = newHub(t, AdoptAll, append(fleetOf("a", "b"), excluded, newPlacement(t, "p", `numberOfClusters: 1`),
		decisionOf("excluded", "excluded-decision-1", "a"))...)
	if _, err := h.reconcile("excluded"); err != nil || len(h.writes) > 0 {
		t.Errorf("annotated: writes %v, %v", h.writes, err)
	}
	h.settled("p")
	if got := h.chosen("p"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("chosen %v, want b", got)
	}
	// An adopted placement keeps its PlacementDecision; only scores and status are written.
	h = newHub(t, AdoptAll,
		append(fleetOf("a", "b", "c"), newPlacement(t, "p", withoutScores+"numberOfClusters: 1"), decisionOf("p", "any-name", "c"))...)
	h.settled("p")
	if got := h.slices("p"); !slices.Equal(got, []string{"any-name 0: c"}) {
		t.Errorf("%v", got)
	}
}

// Decisions of a placement that is not in the cache are deleted only if the API server
// confirms that the placement does not exist.
func TestDeletionNeedsConfirmation(t *testing.T) {
	placements := schema.GroupResource{Group: clusterv1beta1.GroupName, Resource: "placements"}
	for name, tc := range map[string]struct {
		err     error
		deleted bool
		fails   bool
	}{
		"placement does not exist": {nil, true, false},
		"connection refused":       {errors.New("connection refused"), false, true},
		"service unavailable":      {apierrors.NewServiceUnavailable("starting"), false, true},
		"kind not served": {
			apierrors.NewGenericServerResponse(http.StatusNotFound, "get", placements, "p", "404 page not found", 0, true), false, true,
		},
		"forbidden": {apierrors.NewForbidden(placements, "p", errors.New("no")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			orphan := decisionOf("p", "p-decision-2", "b")
			orphan.OwnerReferences = nil // created by a user: must not be deleted
			h := newHub(t, AdoptAll,
				append(fleetOf("a", "b"), decisionOf("p", "p-decision-1", "a"), decisionOf("other", "other-decision-1", "a"), orphan)...)
			h.liveFails = tc.err
			if _, err := h.reconcile("p"); (err != nil) != tc.fails {
				t.Errorf("error %v", err)
			}
			want := []string{"p-decision-1 0: a", "p-decision-2 0: b"}
			if tc.deleted {
				want = want[1:]
			}
			if diff := cmp.Diff(want, h.slices("p")); diff != "" || len(h.slices("other")) != 1 {
				t.Error(diff)
			}
		})
	}
}

// TestDeletedDecisionsDoNotCount checks that Balance does not count decisions that the controller has
// deleted, even before it observes their deletion.
func TestDeletedDecisionsDoNotCount(t *testing.T) {
	const spec = "{numberOfClusters: 1, prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {builtIn: Balance}, weight: 1}]}}"
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), decisionOf("other", "other-decision-1", "b"))...)
	h.reconciled("other")
	h.c.state.SetUnmanaged(keyOf("third"), []string{"a"})
	must.Succeed(t, h.client.Create(t.Context(), newPlacement(t, "p", spec)))
	if h.settled("p"); !slices.Equal(h.chosen("p"), []string{"b"}) {
		t.Errorf("chosen %v, want b: its decision has been deleted", h.chosen("p"))
	}
}

// While a placement is being deleted, its decisions are not written: with finalizers they
// remain, and `kubectl delete --cascade=orphan` keeps them for good.
func TestPlacementBeingDeleted(t *testing.T) {
	p := newPlacement(t, "p", withoutScores)
	p.Finalizers = []string{"orphan"}
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), p, newPlacement(t, "q", `numberOfClusters: 1`))...)
	h.settled("p")
	must.Succeed(t, h.client.Delete(t.Context(), p))
	h.relabel("a", "zone", "1")
	if _, err := h.reconcile("p"); err != nil || len(h.writes) != 0 || !slices.Equal(h.chosen("p"), []string{"a", "b"}) {
		t.Errorf("being deleted: writes %v, %v, %v", h.writes, h.slices("p"), err)
	}
	// The garbage collector orphans one decision, then ends the deletion. The cache has the
	// old version of the decision.
	cached := decisionOf("p", "p-decision-1")
	must.Succeed(t, h.client.Get(t.Context(), client.ObjectKeyFromObject(cached), cached))
	h.fail = func(write string) error {
		if write == "delete p-decision-1" {
			h.fail = nil
			h.change(decisionOf("p", "p-decision-1"), func() {})
			orphan := decisionOf("p", "p-decision-1")
			h.change(orphan, func() { orphan.OwnerReferences = nil })
		}
		return nil
	}
	h.change(p, func() { p.Finalizers = nil })
	for range 2 {
		if _, err := h.reconcile("p"); err != nil || !slices.Equal(h.chosen("p"), []string{"a", "b"}) {
			t.Errorf("orphaned: writes %v, %v, %v", h.writes, h.slices("p"), err)
		}
	}
}

// TestDecisionsWithoutPlacement checks that Balance counts decisions of a placement that does not exist,
// as long as they exist.
func TestDecisionsWithoutPlacement(t *testing.T) {
	decision := decisionOf("other", "other", "b")
	decision.OwnerReferences = nil
	const spec = "{numberOfClusters: 1, prioritizerPolicy: {mode: Exact, configurations: [{scoreCoordinate: {builtIn: Balance}, weight: 1}]}}"
	h := newHub(t, AdoptAll, fleetOf("a", "b")...)
	h.reconciled("p")
	h.c.state.SetUnmanaged(keyOf("third"), []string{"a"})
	must.Succeed(t, h.client.Create(t.Context(), newPlacement(t, "p", spec)))
	h.settled("p")
	if got := h.chosen("p"); !slices.Equal(got, []string{"b"}) {
		t.Fatalf("chosen %v, want b: another placement has a decision for a", got)
	}
	h.c.state.DeletePlacement(keyOf("third"))
	must.Succeed(t, h.client.Create(t.Context(), decision))
	h.settled("other")
	if h.settled("p"); !slices.Equal(h.chosen("p"), []string{"a"}) {
		t.Errorf("chosen %v, want a: there is a decision for b", h.chosen("p"))
	}
	must.Succeed(t, h.client.Delete(t.Context(), decision))
	h.c.state.SetUnmanaged(keyOf("third"), []string{"a"})
	h.settled("other")
	if h.settled("p"); !slices.Equal(h.chosen("p"), []string{"b"}) {
		t.Errorf("chosen %v, want b: the decision for b has been deleted", h.chosen("p"))
	}
}

// A change of scores alone is written scoreRateLimit after the last write of scores; a
// change of clusters is written at once.
func TestScoreRateLimit(t *testing.T) {
	spec := `{scoreRateLimit: 2m, prioritizerPolicy: {mode: Exact, configurations: [{name: ResourceRatioCPU}]}}`
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", spec))...)
	h.settled("p")
	size := func(name, cpu string) {
		object := managed(name)
		h.change(object, func() {
			object.Status.Allocatable, object.Status.Capacity = amount(cpu), amount("10")
		})
		h.observe(name)
	}
	size("a", "8")
	h.now = h.now.Add(30 * time.Second)
	// 30 s of the 120 s after the first write have passed.
	if result, err := h.reconcile("p"); err != nil || len(h.writes) > 0 || result.RequeueAfter != 90*time.Second {
		t.Errorf("writes %v, %v, %v", h.writes, result, err)
	}
	h.now = h.now.Add(90 * time.Second)
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 2 || result.RequeueAfter != 0 {
		t.Errorf("writes %v, %v, %v", h.writes, result, err)
	}
	if status, _ := h.status("p", satisfied); !status.LastScoreUpdateTime.Time.Equal(h.now) {
		t.Errorf("lastScoreUpdateTime %s, want %s", status.LastScoreUpdateTime, h.now)
	}
	size("a", "6")
	must.Succeed(t, h.client.Delete(t.Context(), managed("b")))
	if keys := h.observe("b"); len(keys) != 1 {
		t.Fatal(keys)
	}
	// The clusters are written at once, the number in the status a second after its last write.
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 1 || !slices.Equal(h.chosen("p"), []string{"a"}) ||
		result.RequeueAfter != statusInterval {
		t.Errorf("writes %v, chosen %v, %v, %v", h.writes, h.chosen("p"), result, err)
	}
	h.now = h.now.Add(statusInterval)
	if _, err := h.reconcile("p"); err != nil || !slices.Equal(h.writes, []string{"status p"}) {
		t.Errorf("writes %v, %v", h.writes, err)
	}
	// The clock is set back by an hour: the last write is in the future, and the scores are written at once.
	h.now = h.now.Add(-time.Hour)
	size("a", "8")
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 2 || result.RequeueAfter != 0 {
		t.Errorf("writes %v, %v, %v", h.writes, result, err)
	}
	if status, _ := h.status("p", satisfied); !status.LastScoreUpdateTime.Time.Equal(h.now) {
		t.Errorf("lastScoreUpdateTime %s, want %s", status.LastScoreUpdateTime, h.now)
	}
}

// The clock jumps by an hour while a taint is tolerated for another 40 s, or the score of b is valid for another
// minute. The decision follows the clock: at the latest five minutes after the clock is right again, the decision
// is right.
func TestClockJumps(t *testing.T) {
	for name, tc := range map[string]struct {
		spec          string
		right, future string // the decisions with the right clock and an hour later
	}{
		"toleration": {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]`, "a b", "b"},
		"score": {
			"numberOfClusters: 1\nprioritizerPolicy: {mode: Exact, configurations: " +
				"[{scoreCoordinate: {type: AddOn, addOn: {resourceName: usage, scoreName: cpu}}}]}\n" +
				"tolerations: [{key: k, operator: Exists}]", "b", "a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			score := &clusterv1alpha1.AddOnPlacementScore{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "usage"}}
			other := score.DeepCopy() // of a, without an end
			other.Namespace, other.Status.Scores = "a", []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: 1}}
			h := newHub(t, AdoptAll, append(fleetOf("a", "b"), newPlacement(t, "p", tc.spec), score, other)...)
			h.change(score, func() {
				score.Status.Scores = []clusterv1alpha1.AddOnPlacementScoreItem{{Name: "cpu", Value: 5}}
				score.Status.ValidUntil = &metav1.Time{Time: h.now.Add(time.Minute)}
			})
			object := managed("a")
			h.change(object, func() {
				object.Spec.Taints = []clusterv1.Taint{
					{Key: "k", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(h.now.Add(-time.Minute))},
				}
			})
			for i, step := range []struct {
				by   time.Duration
				want string
			}{
				{0, tc.right},
				{time.Hour, tc.future},
				{-time.Hour, tc.right},
				{-time.Hour, tc.right},
				{time.Hour, tc.right},
				{2 * time.Minute, tc.future},
			} {
				h.now = h.now.Add(step.by)
				result := h.settled("p")
				if got := strings.Join(h.chosen("p"), " "); got != step.want || result.RequeueAfter == 0 ||
					result.RequeueAfter > maxRequeue {
					t.Errorf("step %d: chosen %s, next decision after %s; want %s, within %s", i, got, result.RequeueAfter, step.want,
						maxRequeue)
				}
			}
		})
	}
}

// If the labels of a PlacementDecision are removed, another PlacementDecision is created with a
// free name. The PlacementDecision without labels is kept.
func TestLabelsAreRemoved(t *testing.T) {
	for name, owned := range map[string]bool{"owned": true, "without owner": false} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", withoutScores))...)
			h.settled("p")
			object := decisionOf("p", "p-decision-1")
			h.change(object, func() {
				object.Labels = nil
				if !owned {
					object.OwnerReferences = nil
				}
			})
			h.settled("p")
			if got := h.slices("p"); !slices.Equal(got, []string{"p-decision-2 0: a"}) {
				t.Errorf("%v", got)
			}
			if status, _ := h.status("p", satisfied); !slices.Equal(status.DecisionGroups[0].Decisions, []string{"p-decision-2"}) {
				t.Errorf("%+v", status.DecisionGroups)
			}
			if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Error(err)
			}
		})
	}
}

// While the cache lacks a PlacementDecision that exists, the placement is reconciled again
// and nothing is deleted.
func TestOutdatedCache(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a"), newPlacement(t, "p", withoutScores))...)
	h.fail = func(write string) error {
		if write == "create p-decision-1" {
			h.fail = nil
			must.Succeed(t, h.client.Create(t.Context(), decisionOf("p", "p-decision-1", "a")))
		}
		return nil
	}
	if result, err := h.reconcile("p"); err != nil || result.RequeueAfter != changeDelay ||
		slices.Contains(h.writes, "delete p-decision-1") {
		t.Errorf("%v, %v, %v", h.writes, result, err)
	}
	h.settled("p")
	if got := h.slices("p"); !slices.Equal(got, []string{"p-decision-1 0: a"}) {
		t.Errorf("%v", got)
	}
}
