package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
)

// team is the namespace of the examples' placements.
const team = "team"

// decisionKind is that of PlacementDecisions.
var decisionKind = v1beta1.GroupVersion.WithKind("PlacementDecision")

// startPlacementHub starts a hub with all that placements need.
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
	return objectsIn(t, raw)
}

// objectsIn returns the objects in documents of YAML.
func objectsIn(t *testing.T, raw []byte) (objects []*unstructured.Unstructured) {
	t.Helper()
	reader := utilyaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(raw)))
	defer reader.Close()
	for document := make([]byte, len(raw)+1); ; {
		n, err := reader.Read(document)
		if errors.Is(err, io.EOF) {
			return objects
		}
		object := &unstructured.Unstructured{}
		if err == nil {
			err = yaml.Unmarshal(document[:n], &object.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// apply creates the objects that there are not, and writes what they say of
// status: for a managed cluster its agent does.
func (h *testCluster) apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		object = object.DeepCopy()
		status := object.Object["status"]
		delete(object.Object, "status")
		err := h.client.Create(t.Context(), object, client.FieldValidation(metav1.FieldValidationStrict))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
		if status != nil {
			h.patch(t, object, map[string]any{"status": status}, "status")
		}
	}
}

// patch merges something into an object, or into a part of it that is written
// apart.
func (h *testCluster) patch(t *testing.T, object client.Object, change map[string]any, subresource ...string) {
	t.Helper()
	raw, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	patch := client.RawPatch(types.MergePatchType, raw)
	if len(subresource) > 0 {
		err = h.client.SubResource(subresource[0]).Patch(t.Context(), object, patch)
	} else {
		err = h.client.Patch(t.Context(), object, patch)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// moment is what a placement had from some time on.
type moment struct {
	at       time.Time
	clusters []string
}

// history returns what a placement had after each change that a witness of
// PlacementDecisions has seen, where that was something else than before.
func (w *changeRecorder) history(t *testing.T, placement string) (history []moment) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[string][]string{}
	for i, event := range w.events {
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
		there[object.GetName()] = clustersIn(decision)
		if event.Type == watch.Deleted {
			delete(there, object.GetName())
		}
		now := slices.Sorted(maps.Keys(setOf(there)))
		if len(history) == 0 && len(now) > 0 || len(history) > 0 && !slices.Equal(now, history[len(history)-1].clusters) {
			history = append(history, moment{w.times[i], now})
		}
	}
	return history
}

// since returns when a placement came to have just these clusters, which it has.
func (w *changeRecorder) since(t *testing.T, placement string, clusters ...string) (at time.Time) {
	t.Helper()
	eventually.True(t, fmt.Sprintf("nobody saw %s have %v", placement, clusters), nil, func(context.Context) (bool, error) {
		history := w.history(t, placement)
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
func (h *testCluster) slicesOf(ctx context.Context, placement string) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	err := h.client.List(ctx, &list, client.InNamespace(team), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement})
	return list.Items, err
}

// awaitChosen waits until a placement has just these clusters and its status says
// so, and returns it.
func (h *testCluster) awaitChosen(t *testing.T, log fmt.Stringer, placement string, clusters ...string) *v1beta1.Placement {
	t.Helper()
	var got []string
	object := &v1beta1.Placement{}
	defer func() {
		if t.Failed() {
			t.Logf("%s has %v, want %v; status %+v", placement, got, clusters, object.Status)
		}
	}()
	eventually.True(t, placement+" is not decided as it should be", log, func(ctx context.Context) (bool, error) {
		there, err := h.slicesOf(ctx, placement)
		if err != nil {
			return false, err
		}
		got = slices.Sorted(slices.Values(clustersIn(there...)))
		*object = v1beta1.Placement{}
		if err := h.client.Get(ctx, client.ObjectKey{Namespace: team, Name: placement}, object); err != nil {
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
func (h *testCluster) awaitPlacement(t *testing.T, log fmt.Stringer, placement, condition, reason string) string {
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
		if err := h.client.Get(ctx, client.ObjectKey{Namespace: team, Name: placement}, &object); err != nil {
			return false, err
		}
		c := meta.FindStatusCondition(object.Status.Conditions, condition)
		if c == nil || c.Reason != reason || c.ObservedGeneration != object.Generation {
			return false, nil
		}
		message = c.Message
		return true, nil
	})
	return message
}

// forget deletes placements, and waits until their decisions have gone, too.
func (h *testCluster) forget(t *testing.T, log fmt.Stringer, placements ...*unstructured.Unstructured) {
	t.Helper()
	for _, placement := range placements {
		if err := h.client.Delete(t.Context(), placement); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "decisions of "+placement.GetName()+" are left", log, func(ctx context.Context) (bool, error) {
			there, err := h.slicesOf(ctx, placement.GetName())
			return len(there) == 0, err
		})
	}
}

// settled is how long the controller gathers changes, and somewhat more.
const settled = 200 * time.Millisecond

// clustersOfStatus returns how many clusters a placement has, as its status says.
func clustersOfStatus(t *testing.T, h *testCluster, placement string) int {
	t.Helper()
	var object v1beta1.Placement
	if err := h.client.Get(t.Context(), client.ObjectKey{Namespace: team, Name: placement}, &object); err != nil {
		t.Fatal(err)
	}
	return int(object.Status.NumberOfSelectedClusters)
}
