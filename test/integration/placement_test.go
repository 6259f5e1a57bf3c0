package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/helm"
)

// team is the namespace of the placements in the examples.
const team = "team"

// decisionKind is the kind of PlacementDecisions.
var decisionKind = v1beta1.GroupVersion.WithKind("PlacementDecision")

// startPlacementHub starts a hub with the CRDs of placements.
func startPlacementHub(t *testing.T) *testCluster {
	t.Helper()
	return startCluster(t, ocmCRDs(t)...)
}

// example returns the objects in a file of examples/placement.
func example(t *testing.T, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("../../examples/placement", file))
	if err != nil {
		t.Fatal(err)
	}
	if objects, err = helm.Objects(string(raw)); err != nil {
		t.Fatal(err)
	}
	return objects
}

// apply creates objects unless they exist, and writes their status, as agents do for
// managed clusters.
func (c *testCluster) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		object = object.DeepCopy()
		status := object.Object["status"]
		delete(object.Object, "status")
		err := c.client.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if status != nil {
			c.patch(t, object, map[string]any{"status": status}, "status")
		}
	}
}

// patch applies a merge patch to an object or to one of its subresources.
func (c *testCluster) patch(t *testing.T, object client.Object, change map[string]any, subresource ...string) {
	t.Helper()
	raw, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, raw)
	if len(subresource) > 0 {
		err = c.client.SubResource(subresource[0]).Patch(t.Context(), object, patch)
	} else {
		err = c.client.Patch(t.Context(), object, patch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// moment is the clusters that a placement selects from a point in time on.
type moment struct {
	at       time.Time
	clusters []string
}

// history returns the selected clusters of a placement after each recorded change of its
// PlacementDecisions, without changes that select the same clusters.
func (r *changeRecorder) history(t *testing.T, placement string) (history []moment) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	existing := map[string][]string{}
	for i, event := range r.events {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatal(event)
		}
		if object.GetLabels()[clusterv1beta1.PlacementLabel] != placement {
			continue
		}
		var decision clusterv1beta1.PlacementDecision
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &decision); err != nil {
			t.Fatal(err)
		}
		existing[object.GetName()] = clustersIn(decision)
		if event.Type == watch.Deleted {
			delete(existing, object.GetName())
		}
		now := slices.Sorted(maps.Keys(setOf(existing)))
		if len(history) == 0 && len(now) > 0 || len(history) > 0 && !slices.Equal(now, history[len(history)-1].clusters) {
			history = append(history, moment{r.times[i], now})
		}
	}
	return history
}

// since waits until a placement selects the given clusters, and returns the time from which
// it has selected them.
func (r *changeRecorder) since(t *testing.T, placement string, clusters ...string) (at time.Time) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("%s has not selected %v", placement, clusters), nil, func(context.Context) (bool, error) {
		history := r.history(t, placement)
		if len(history) == 0 || !slices.Equal(history[len(history)-1].clusters, clusters) {
			return false, nil
		}
		at = history[len(history)-1].at
		return true, nil
	})
	return at
}

func setOf(lists map[string][]string) map[string]bool {
	set := map[string]bool{}
	for _, list := range lists {
		for _, name := range list {
			set[name] = true
		}
	}
	return set
}

func clustersIn(decisions ...clusterv1beta1.PlacementDecision) (clusters []string) {
	for _, decision := range decisions {
		for _, d := range decision.Status.Decisions {
			clusters = append(clusters, d.ClusterName)
		}
	}
	return clusters
}

// slicesOf returns the PlacementDecisions of a placement.
func (c *testCluster) slicesOf(ctx context.Context, placement string) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	err := c.client.List(ctx, &list, client.InNamespace(team), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement})
	return list.Items, err
}

// awaitChosen waits until a placement selects exactly the given clusters and its status is
// up to date, and returns it.
func (c *testCluster) awaitChosen(t *testing.T, log fmt.Stringer, placement string, clusters ...string) *v1beta1.Placement {
	t.Helper()
	var got []string
	object := &v1beta1.Placement{}
	defer func() {
		if t.Failed() {
			t.Logf("%s selects %v, want %v; status %+v", placement, got, clusters, object.Status)
		}
	}()
	eventually.True(t, placement+" does not select the expected clusters", log, func(ctx context.Context) (bool, error) {
		existing, err := c.slicesOf(ctx, placement)
		if err != nil {
			return false, err
		}
		got = slices.Sorted(slices.Values(clustersIn(existing...)))
		*object = v1beta1.Placement{}
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: team, Name: placement}, object); err != nil {
			return false, err
		}
		satisfied := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		return slices.Equal(got, clusters) && int(object.Status.NumberOfSelectedClusters) == len(clusters) &&
			satisfied != nil && satisfied.ObservedGeneration == object.Generation, nil
	})
	return object
}

// awaitPlacement waits until a placement has a condition with a reason, and
// returns its message.
func (c *testCluster) awaitPlacement(t *testing.T, log fmt.Stringer, placement, condition, reason string) string {
	t.Helper()
	var object v1beta1.Placement
	defer func() {
		if t.Failed() {
			t.Logf("status of %s: %+v", placement, object.Status)
		}
	}()
	var message string
	eventually.True(t, fmt.Sprintf("%s of %s is not %s", condition, placement, reason), log, func(ctx context.Context) (bool, error) {
		object = v1beta1.Placement{}
		if err := c.client.Get(ctx, client.ObjectKey{Namespace: team, Name: placement}, &object); err != nil {
			return false, err
		}
		got := meta.FindStatusCondition(object.Status.Conditions, condition)
		if got == nil || got.Reason != reason || got.ObservedGeneration != object.Generation {
			return false, nil
		}
		message = got.Message
		return true, nil
	})
	return message
}

// deletePlacements deletes placements and waits until their decisions are deleted.
func (c *testCluster) deletePlacements(t *testing.T, log fmt.Stringer, placements ...*unstructured.Unstructured) {
	t.Helper()
	for _, placement := range placements {
		if err := c.client.Delete(t.Context(), placement); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "decisions of "+placement.GetName()+" are not deleted", log, func(ctx context.Context) (bool, error) {
			existing, err := c.slicesOf(ctx, placement.GetName())
			return len(existing) == 0, err
		})
	}
}

// settled is longer than the controller's delay after a change.
const settled = 200 * time.Millisecond

// placementIn returns a placement in a namespace, in version v1beta1.
func placementIn(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	placement := placementOf("v1beta1", name, spec)
	placement.SetNamespace(namespace)
	return placement
}
