package fleet

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	examples "github.com/plimsoll-k8s/plimsoll/examples/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// team is the namespace of the example placements.
const team = "team"

// fleetFile has the clusters of the examples, their cluster set and its binding.
const fleetFile = "fleet.yaml"

// placementFile returns the file in examples/placement with the placements of a story.
func placementFile(folder string) string { return folder + "/placement.yaml" }

// hub is a hub of managed clusters.
type hub struct {
	*demo.Cluster
	// probes is the number of probes so far.
	probes int
}

// apply creates or updates the objects of a file in examples/placement, including the status of
// managed clusters, which no agent reports.
func (h *hub) apply(ctx context.Context, file string) error {
	content, err := examples.Files.ReadFile(file)
	if err != nil {
		return err
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content))
	for {
		object := &unstructured.Unstructured{}
		if err := documents.Decode(object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := h.applyObject(ctx, object); err != nil {
			return fmt.Errorf("%s: %s %s: %w", file, object.GetKind(), object.GetName(), err)
		}
	}
}

// applyObject creates an object, or updates its status if it exists.
func (h *hub) applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	status := object.Object["status"]
	strict := client.WithFieldValidation(h.API, metav1.FieldValidationStrict)
	if err := strict.Create(ctx, object.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if status == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return strict.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// decisions returns the names of the selected clusters of each example placement, sorted.
func (h *hub) decisions(ctx context.Context) (map[string][]string, error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := h.API.List(ctx, &list, client.InNamespace(team)); err != nil {
		return nil, err
	}
	var objects fleet.Objects
	for i := range list.Items {
		objects.Decisions = append(objects.Decisions, &list.Items[i])
	}
	selected := map[string][]string{}
	for key, clusters := range objects.Selected() {
		selected[key.Name] = clusters
	}
	return selected, nil
}

// chosen returns the names of the selected clusters of an example placement, sorted.
func (h *hub) chosen(ctx context.Context, placement string) ([]string, error) {
	all, err := h.decisions(ctx)
	return all[placement], err
}

// unsatisfied returns why a placement selects fewer clusters than requested, when the controller has said so.
func (h *hub) unsatisfied(ctx context.Context, placement string) (reason string, err error) {
	err = h.Await(ctx, "condition PlacementSatisfied", func(ctx context.Context) (bool, error) {
		var p v1beta1.Placement
		err := h.API.Get(ctx, client.ObjectKey{Namespace: team, Name: placement}, &p)
		c := meta.FindStatusCondition(p.Status.Conditions, clusterv1beta1.PlacementConditionSatisfied)
		if c != nil && c.Status == metav1.ConditionFalse {
			reason = c.Message
		}
		return reason != "", err
	})
	return reason, err
}

// reset restores the fleet of the examples, waits until the placement controller has observed it, and deletes all placements.
func (h *hub) reset(ctx context.Context) error {
	if err := errors.Join(h.apply(ctx, fleetFile), h.publishAll(ctx)); err != nil {
		return err
	}
	if err := h.waitUntilObserved(ctx); err != nil {
		return err
	}
	return h.deletePlacements(ctx)
}

// waitUntilObserved waits until the placement controller has observed the present state of all clusters. It sets
// a label on all clusters, which the controller observes after all earlier changes, and waits until a
// placement that requires the label has selected all clusters.
func (h *hub) waitUntilObserved(ctx context.Context) error {
	h.probes++
	value := fmt.Sprint(h.probes)
	var clusters clusterv1.ManagedClusterList
	if err := h.API.List(ctx, &clusters); err != nil {
		return err
	}
	var all []string
	for i := range clusters.Items {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, demo.ProbeKey, value)
		if err := h.API.Patch(ctx, &clusters.Items[i], client.RawPatch(types.MergePatchType, patch)); err != nil {
			return err
		}
		all = append(all, clusters.Items[i].Name)
	}
	slices.Sort(all)
	probe := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: "probe-" + value, Namespace: team}}
	probe.Spec.Predicates = []clusterv1beta1.ClusterPredicate{{}}
	probe.Spec.Predicates[0].RequiredClusterSelector.LabelSelector.MatchLabels = map[string]string{demo.ProbeKey: value}
	if err := h.API.Create(ctx, probe); err != nil {
		return err
	}
	return h.Await(ctx, "the placement controller to select all clusters", func(ctx context.Context) (bool, error) {
		chosen, err := h.chosen(ctx, probe.Name)
		return slices.Equal(chosen, all), err
	})
}

// deletePlacements deletes all placements and waits until their decisions are deleted, so that
// they do not count for the balance of the next ones.
func (h *hub) deletePlacements(ctx context.Context) error {
	if err := h.API.DeleteAllOf(ctx, &v1beta1.Placement{}, client.InNamespace(team)); err != nil {
		return err
	}
	return h.Await(ctx, "decisions to be deleted", func(ctx context.Context) (bool, error) {
		all, err := h.decisions(ctx)
		return len(all) == 0, err
	})
}
