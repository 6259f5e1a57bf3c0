package testcluster

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

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// PlacementCRD is the path of Plimsoll's CRD of placements, ocmPlacementCRD the path of Open
// Cluster Management's CRD within its Go module.
const (
	PlacementCRD    = "config/crd/cluster.open-cluster-management.io_placements.yaml"
	OCMPlacementCRD = "cluster/v1beta1/0000_02_clusters.open-cluster-management.io_placements.crd.yaml"
)

// OCMCRDs returns the paths of the CRDs that are used unchanged from Open Cluster Management.
func OCMCRDs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(program.File(t, "config/crd/ocm/*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return files
}

// PlacementOf returns a placement in namespace default, without defaults.
func PlacementOf(version, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/" + version,
		"kind":       "Placement",
		"metadata":   map[string]any{"name": name, "namespace": "default"},
		"spec":       spec,
	}}
}

// PlacementClient returns a client with strict field validation.
func PlacementClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: kube.Scheme()})
	must.Succeed(t, err)
	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// ReadCRD reads a CRD from a file.
func ReadCRD(t *testing.T, file string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	raw, err := os.ReadFile(file)
	must.Succeed(t, err)
	crd := &apiextensionsv1.CustomResourceDefinition{}
	must.Succeed(t, yaml.UnmarshalStrict(raw, crd))
	return crd
}

// Team is the namespace of the placements in the examples.
const Team = "team"

// DecisionKind is the kind of PlacementDecisions.
var DecisionKind = v1beta1.GroupVersion.WithKind("PlacementDecision")

// StartPlacementHub starts a hub with the CRDs of placements.
func StartPlacementHub(t *testing.T) *Cluster {
	t.Helper()
	return Start(t, OCMCRDs(t)...)
}

// Example returns the objects in a file of examples/placement.
func Example(t *testing.T, file string) (objects []*unstructured.Unstructured) {
	t.Helper()
	raw, err := os.ReadFile(program.File(t, "examples/placement/"+file))
	must.Succeed(t, err)
	if objects, err = program.ObjectsOf(string(raw)); err != nil {
		t.Fatal(err)
	}
	return objects
}

// Apply creates objects unless they exist, and writes their status, as agents do for
// managed clusters.
func (c *Cluster) Apply(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		must.Succeed(t, kube.Apply(t.Context(), c.Client, object))
	}
}

// Patch applies a merge patch to an object or to one of its subresources.
func (c *Cluster) Patch(t *testing.T, object client.Object, change map[string]any, subresource ...string) {
	t.Helper()
	raw, err := json.Marshal(change)
	must.Succeed(t, err)
	patch := client.RawPatch(types.MergePatchType, raw)
	if len(subresource) > 0 {
		err = c.Client.SubResource(subresource[0]).Patch(t.Context(), object, patch)
	} else {
		err = c.Client.Patch(t.Context(), object, patch)
	}
	must.Succeed(t, err)
}

// moment is the clusters that a placement selects after a change.
type moment struct{ Clusters []string }

// History returns the selected clusters of a placement after each recorded change of its
// PlacementDecisions, without changes that select the same clusters.
func (r *ChangeRecorder) History(t *testing.T, placement string) (history []moment) {
	t.Helper()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	existing := map[string][]string{}
	for _, event := range r.Events {
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			t.Fatal(event)
		}
		if object.GetLabels()[clusterv1beta1.PlacementLabel] != placement {
			continue
		}
		var decision clusterv1beta1.PlacementDecision
		must.Succeed(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &decision))
		existing[object.GetName()] = clustersIn(decision)
		if event.Type == watch.Deleted {
			delete(existing, object.GetName())
		}
		now := slices.Sorted(maps.Keys(setOf(existing)))
		if len(history) == 0 && len(now) > 0 || len(history) > 0 && !slices.Equal(now, history[len(history)-1].Clusters) {
			history = append(history, moment{now})
		}
	}
	return history
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

// SlicesOf returns the PlacementDecisions of a placement.
func (c *Cluster) SlicesOf(ctx context.Context, placement string) ([]clusterv1beta1.PlacementDecision, error) {
	var list clusterv1beta1.PlacementDecisionList
	err := c.Client.List(ctx, &list, client.InNamespace(Team), client.MatchingLabels{clusterv1beta1.PlacementLabel: placement})
	return list.Items, err
}

// AwaitChosen waits until a placement selects exactly the given clusters and its status is
// up to date, and returns it.
func (c *Cluster) AwaitChosen(t *testing.T, log fmt.Stringer, placement string, clusters ...string) *v1beta1.Placement {
	t.Helper()
	var got []string
	object := &v1beta1.Placement{}
	defer func() {
		if t.Failed() {
			t.Logf("%s selects %v, want %v; status %+v", placement, got, clusters, object.Status)
		}
	}()
	eventually.True(t, placement+" does not select the expected clusters", log, func(ctx context.Context) (bool, error) {
		existing, err := c.SlicesOf(ctx, placement)
		if err != nil {
			return false, err
		}
		got = slices.Sorted(slices.Values(clustersIn(existing...)))
		*object = v1beta1.Placement{}
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: Team, Name: placement}, object); err != nil {
			return false, err
		}
		satisfied := meta.FindStatusCondition(object.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		return slices.Equal(got, clusters) && int(object.Status.NumberOfSelectedClusters) == len(clusters) &&
			satisfied != nil && satisfied.ObservedGeneration == object.Generation, nil
	})
	return object
}

// AwaitPlacement waits until a placement has a condition with a reason, and
// returns its message.
func (c *Cluster) AwaitPlacement(t *testing.T, log fmt.Stringer, placement, condition, reason string) string {
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
		if err := c.Client.Get(ctx, client.ObjectKey{Namespace: Team, Name: placement}, &object); err != nil {
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

// DeletePlacements deletes placements and waits until their decisions are deleted.
func (c *Cluster) DeletePlacements(t *testing.T, log fmt.Stringer, placements ...*unstructured.Unstructured) {
	t.Helper()
	for _, placement := range placements {
		must.Succeed(t, c.Client.Delete(t.Context(), placement))
		eventually.True(t, "decisions of "+placement.GetName()+" are not deleted", log, func(ctx context.Context) (bool, error) {
			existing, err := c.SlicesOf(ctx, placement.GetName())
			return len(existing) == 0, err
		})
	}
}

// Settled is longer than the controller's delay after a change.
const Settled = 200 * time.Millisecond

// PlacementIn returns a placement in a namespace, in version v1beta1.
func PlacementIn(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	placement := PlacementOf("v1beta1", name, spec)
	placement.SetNamespace(namespace)
	return placement
}

// Exactly returns a spec that ranks only by the given prioritizers.
func Exactly(number int, weights map[string]int) map[string]any {
	var configurations []any
	for name, weight := range weights {
		configurations = append(configurations, map[string]any{"name": name, "weight": int64(weight)})
	}
	return map[string]any{
		"numberOfClusters":  int64(number),
		"prioritizerPolicy": map[string]any{"mode": "Exact", "configurations": configurations},
	}
}

// ManagedCluster returns a cluster in the cluster set of the examples.
func ManagedCluster(name, cpu string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
		"metadata": map[string]any{"name": name, "labels": map[string]any{"cluster.open-cluster-management.io/clusterset": "fleet"}},
		"spec":     map[string]any{"hubAcceptsClient": true},
		"status": map[string]any{
			"allocatable": map[string]any{"cpu": cpu, "memory": "64Gi"}, "capacity": map[string]any{"cpu": "100", "memory": "64Gi"},
		},
	}}
}
