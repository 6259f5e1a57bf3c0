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
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

)

const (
	satisfied     = clusterv1beta1.PlacementConditionSatisfied
	misconfigured = clusterv1beta1.PlacementConditionMisconfigured
	// byScoreless ranks by names alone, so that scores never change.
	byScoreless = "prioritizerPolicy: {mode: Exact}\n"
	canaries    = byScoreless + `decisionStrategy: {groupStrategy: {decisionGroups: [{groupName: canary, groupClusterSelector: {labelSelector: {matchLabels: {canary: "1"}}}}]}}`
)

// The first decision: objects with labels and owner, then the status, and then
// nothing more.
func TestFirstDecision(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b", "c"), asks(t, "p", canaries))...)
	h.relabel("b", "canary", "1")
	if _, err := h.reconcile("p"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"create p-decision-1", "update p-decision-1", "create p-decision-2", "update p-decision-2", "status p"}, h.writes); diff != "" {
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
	if diff := cmp.Diff(want, status.DecisionGroups); diff != "" || status.NumberOfSelectedClusters != 3 || reason != "True "+"AllDecisionsScheduled" {
		t.Errorf("%d chosen, %s, %s", status.NumberOfSelectedClusters, reason, diff)
	}
	object := decisionOf("p", "p-decision-1")
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		t.Fatal(err)
	}
	if owner := metav1.GetControllerOf(object); owner == nil || owner.Kind != "Placement" || owner.Name != "p" || owner.UID != "p" || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v", owner)
	}
	for range 3 {
		if result, err := h.reconcile("p"); err != nil || len(h.writes) != 0 || result.RequeueAfter != 0 {
			t.Errorf("again: %v, %v, %v", h.writes, result, err)
		}
	}
	h.restart()
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 0 || result.RequeueAfter != 0 {
		t.Errorf("by another controller: %v, %v, %v", h.writes, result, err)
	}
}

// A write fails, every one in turn, in every way. What it was to write needs all
// kinds of steps: clusters change groups, and 30 of 240 come and go. At no time a
// cluster that stays is missing; the status says nothing new before all is
// written; and in the end, by the same controller or the next, there is what was
// wanted.
func TestEveryWriteFails(t *testing.T) {
	var names []string
	for i := range 270 {
		names = append(names, fmt.Sprintf("c%03d", i))
	}
	const before = canaries + "\n" + `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: new, operator: DoesNotExist}]}}}]`
	after := strings.Replace(canaries, "{canary:", "{next:", 1) + "\n" + `predicates: [{requiredClusterSelector: {labelSelector: {matchExpressions: [{key: old, operator: DoesNotExist}]}}}]`
	start := func(t *testing.T) *hub {
		objects := append(fleetOf(names...), asks(t, "p", before))
		for i, object := range objects[:270] {
			labels := map[string]string{}
			switch {
			case i < 30:
				labels["new"] = ""
			case i >= 240:
				labels["old"] = ""
			case i < 230: // some become canaries, some are no more
				labels["canary"] = fmt.Sprint((i + 1) % 2)
				labels["next"] = fmt.Sprint(min(1, i%4)) // three of four
			}
			object.SetLabels(labels)
		}
		h := newHub(t, AdoptAll, objects...)
		h.settled("p")
		h.respecify("p", after)
		return h
	}
	h := start(t)
	if _, err := h.reconcile("p"); err != nil {
		t.Fatal(err)
	}
	writes, wanted := h.writes, h.chosen("p")
	if !slices.Contains(writes, "create p-decision-4") || !slices.Contains(writes, "delete p-decision-3") || !slices.Equal(wanted, names[:240]) {
		t.Fatalf("writes %v, %d clusters", writes, len(wanted))
	}
	decisions := schema.GroupResource{Resource: "placementdecisions"}
	faults := map[string]struct {
		err     error
		retried bool // without an error
		killed  bool
	}{
		"fails":    {errors.New("connection refused"), false, false},
		"conflict": {apierrors.NewConflict(decisions, "p", errors.New("changed")), true, false},
		"killed":   {errors.New("connection refused"), false, true},
	}
	for name, fault := range faults {
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
				// A conflict of the status cannot be: it is a patch.
				if status := strings.HasPrefix(write, "status"); (err == nil) != (fault.retried && !status) || err == nil && result.RequeueAfter != changeDelay {
					t.Errorf("%v, %v", result, err)
				}
				if got, _ := h.status("p", satisfied); got.Conditions[0].ObservedGeneration != 1 {
					t.Errorf("the status is of generation %d", got.Conditions[0].ObservedGeneration)
				}
				h.fail = nil
				if fault.killed {
					h.restart()
				}
				h.settled("p")
				if got := h.chosen("p"); !slices.Equal(got, wanted) {
					t.Errorf("%d clusters in the end", len(got))
				}
				if status, reason := h.status("p", satisfied); status.NumberOfSelectedClusters != 240 || status.Conditions[0].ObservedGeneration != 2 || reason != "True "+"AllDecisionsScheduled" {
					t.Errorf("%d chosen, %s", status.NumberOfSelectedClusters, reason)
				}
			})
		}
	}
}

// A spec that makes no sense says so, and its decisions stay as they are.
func TestMisconfiguredKeepsDecisions(t *testing.T) {
	for name, spec := range map[string]string{
		"refused":         `numberOfClusters: -1`,
		"matches nothing": `predicates: [{requiredClusterSelector: {labelSelector: {matchLabels: {a: typo}}}}]`,
		"no such set":     `clusterSets: [typo]`,
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(fmt.Sprint(name, restarted), func(t *testing.T) {
				h := newHub(t, AdoptAll, append(fleetOf("a", "b"), asks(t, "p", byScoreless))...)
				h.settled("p")
				before, _ := h.status("p", satisfied)
				h.respecify("p", spec)
				for i, want := range [][]string{{"status p"}, nil, nil} {
					if restarted {
						h.restart()
					}
					if _, err := h.reconcile("p"); err != nil || !slices.Equal(h.writes, want) {
						t.Fatalf("writes %v, %v, the time %d", h.writes, err, i)
					}
				}
				status, reason := h.status("p", misconfigured)
				if !strings.HasPrefix(reason, "True") || status.NumberOfSelectedClusters != 2 || !cmp.Equal(status.DecisionGroups, before.DecisionGroups) {
					t.Errorf("%s, %+v", reason, status)
				}
				if got := h.chosen("p"); !slices.Equal(got, []string{"a", "b"}) {
					t.Errorf("chosen %v", got)
				}
				// Mended, it goes on.
				h.respecify("p", byScoreless+"numberOfClusters: 1")
				h.settled("p")
				if _, reason := h.status("p", misconfigured); reason != "False "+"Succeedconfigured" || len(h.chosen("p")) != 1 {
					t.Errorf("%s, chosen %v", reason, h.chosen("p"))
				}
			})
		}
	}
}

// A placement that is not adopted is not touched, not even when it is being
// deleted, but the others are balanced against what it has.
func TestForeign(t *testing.T) {
	theirs, ours := asks(t, "theirs", `numberOfClusters: 1`), asks(t, "ours", `numberOfClusters: 1`)
	ours.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "true"}
	theirs.Annotations = map[string]string{clusterv1beta1.PlacementDisableAnnotation: "false"}
	theirs.Finalizers = []string{"example.com/hold"}
	h := newHub(t, AdoptAnnotated, append(fleetOf("a", "b"), theirs, ours, decisionOf("theirs", "theirs-decision-1", "a"))...)
	look := func(when string) {
		t.Helper()
		if _, err := h.reconcile("theirs"); err != nil || len(h.writes) > 0 {
			t.Errorf("%s: writes %v, %v", when, h.writes, err)
		}
	}
	look("at first")
	h.settled("ours")
	// a has 1 of at most 1 decision: -100; b none: 100.
	if got := h.chosen("ours"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("chosen %v, want b", got)
	}
	if err := h.client.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	look("being deleted")
	// It is handed over, with what it has: nothing is to be written but scores and
	// status.
	h = newHub(t, AdoptAll, append(fleetOf("a", "b", "c"), asks(t, "p", byScoreless+"numberOfClusters: 1"), decisionOf("p", "any-name", "c"))...)
	h.settled("p")
	if got := h.slices("p"); !slices.Equal(got, []string{"any-name 0: c"}) {
		t.Errorf("%v", got)
	}
}

// What is deleted of a placement that is not in the cache depends on what the API
// server says of it, and on nothing else.
func TestNothingIsDeletedOnHearsay(t *testing.T) {
	placements := schema.GroupResource{Group: clusterv1beta1.GroupName, Resource: "placements"}
	for name, tc := range map[string]struct {
		says    error
		deleted bool
		fails   bool
	}{
		"it is gone":                  {nil, true, false},
		"the server is away":          {errors.New("connection refused"), false, true},
		"the server is starting":      {apierrors.NewServiceUnavailable("starting"), false, true},
		"the server knows of no such": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", placements, "p", "404 page not found", 0, true), false, true},
		"nobody may ask":              {apierrors.NewForbidden(placements, "p", errors.New("no")), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			orphan := decisionOf("p", "p-decision-2", "b")
			orphan.OwnerReferences = nil // made by hand: not ours to delete
			h := newHub(t, AdoptAll, append(fleetOf("a", "b"), decisionOf("p", "p-decision-1", "a"), decisionOf("other", "other-decision-1", "a"), orphan)...)
			h.liveFails = tc.says
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
	// A placement being deleted gives its decisions back.
	p := asks(t, "p", byScoreless)
	p.Finalizers = []string{"example.com/hold"}
	h := newHub(t, AdoptAll, append(fleetOf("a"), p)...)
	h.settled("p")
	if err := h.client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if _, err := h.reconcile("p"); err != nil || len(h.slices("p")) != 0 {
		t.Errorf("%v, %v", h.slices("p"), err)
	}
}

// Scores that choose no other cluster wait for scoreRateLimit since the last time
// they were written; a change of clusters does not wait.
func TestScoreRateLimit(t *testing.T) {
	spec := `{scoreRateLimit: 2m, prioritizerPolicy: {mode: Exact, configurations: [{name: ResourceRatioCPU}]}}`
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), asks(t, "p", spec))...)
	h.settled("p")
	size := func(name, cpu string) {
		object := managed(name)
		h.change(object, func() {
			object.Status.Allocatable, object.Status.Capacity = amount(cpu), amount("10")
		})
		if _, err := h.c.readCluster(t.Context(), client.ObjectKey{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	size("a", "8")
	h.now = h.now.Add(30 * time.Second)
	// 120 s after the first, 30 s are over.
	if result, err := h.reconcile("p"); err != nil || len(h.writes) > 0 || result.RequeueAfter != 90*time.Second {
		t.Errorf("writes %v, %v, %v", h.writes, result, err)
	}
	h.now = h.now.Add(90 * time.Second)
	if result, err := h.reconcile("p"); err != nil || len(h.writes) != 2 || result.RequeueAfter != 0 {
		t.Errorf("writes %v, %v, %v", h.writes, result, err)
	}
	if status, _ := h.status("p", satisfied); !status.LastScoreUpdateTime.Time.Equal(h.now) {
		t.Errorf("last %s, now %s", status.LastScoreUpdateTime, h.now)
	}
	size("a", "6")
	if err := h.client.Delete(t.Context(), managed("b")); err != nil {
		t.Fatal(err)
	}
	if keys, err := h.c.readCluster(t.Context(), client.ObjectKey{Name: "b"}); err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	if _, err := h.reconcile("p"); err != nil || len(h.writes) != 2 || !slices.Equal(h.chosen("p"), []string{"a"}) {
		t.Errorf("writes %v, chosen %v, %v", h.writes, h.chosen("p"), err)
	}
}

// The answer changes by itself when a toleration ends, 100 s after the taint: 40
// s from now, and then it does.
func TestTolerationEnds(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a", "b"), asks(t, "p", byScoreless+`tolerations: [{key: k, operator: Exists, tolerationSeconds: 100}]`))...)
	object := managed("a")
	h.change(object, func() {
		object.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: clusterv1.TaintEffectNoSelect, TimeAdded: metav1.NewTime(h.now.Add(-time.Minute))}}
	})
	if result := h.settled("p"); result.RequeueAfter != 40*time.Second || len(h.chosen("p")) != 2 {
		t.Errorf("%v, %v", result, h.chosen("p"))
	}
	h.now = h.now.Add(40 * time.Second)
	if result := h.settled("p"); result.RequeueAfter != 0 || !slices.Equal(h.chosen("p"), []string{"b"}) {
		t.Errorf("%v, %v", result, h.chosen("p"))
	}
}

// Somebody takes the label off: nobody finds the decisions any more, and they are
// made anew beside what has their name, which stays as it is.
func TestLabelIsLost(t *testing.T) {
	for name, owned := range map[string]bool{"its own": true, "somebody else's": false} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, AdoptAll, append(fleetOf("a"), asks(t, "p", byScoreless))...)
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

// The cache has not heard yet of what was created: it is looked at again, and
// nothing is deleted.
func TestCacheIsBehind(t *testing.T) {
	h := newHub(t, AdoptAll, append(fleetOf("a"), asks(t, "p", byScoreless))...)
	h.fail = func(write string) error {
		if write == "create p-decision-1" {
			h.fail = nil
			if err := h.client.Create(t.Context(), decisionOf("p", "p-decision-1", "a")); err != nil {
				t.Fatal(err)
			}
		}
		return nil
	}
	if result, err := h.reconcile("p"); err != nil || result.RequeueAfter != changeDelay || slices.Contains(h.writes, "delete p-decision-1") {
		t.Errorf("%v, %v, %v", h.writes, result, err)
	}
	h.settled("p")
	if got := h.slices("p"); !slices.Equal(got, []string{"p-decision-1 0: a"}) {
		t.Errorf("%v", got)
	}
}
