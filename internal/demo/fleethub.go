package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	examples "github.com/plimsoll-k8s/plimsoll/examples/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// team is the namespace that the example placements are in.
const team = "team"

// fleetFile has the clusters of the examples, their set and its binding.
const fleetFile = "fleet.yaml"

// placementFile returns the file with the placements of a story.
func placementFile(folder, form string) string { return folder + "/placement." + form + ".yaml" }

// hub is the control plane as a hub of managed clusters.
type hub struct {
	api client.Client
	// known is what the placement controller has heard of, nil where it is in
	// another process.
	known client.Reader
	// probes is how many have been sent.
	probes int
	// stop ends the placement controller, if it is the demo's; ended is closed when
	// it has ended.
	stop  context.CancelFunc
	ended chan struct{}
}

// apply makes the objects of an example be there, with the status that stands in
// it: of managed clusters, which have nobody who would report one.
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

func (h *hub) applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	status := object.Object["status"]
	strictly := client.WithFieldValidation(h.api, metav1.FieldValidationStrict)
	if err := strictly.Create(ctx, object.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if status == nil {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return err
	}
	return strictly.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
}

// decisions returns the clusters of each placement of the team, by name.
func (h *hub) decisions(ctx context.Context) (map[string][]string, error) {
	var list clusterv1beta1.PlacementDecisionList
	if err := h.api.List(ctx, &list, client.InNamespace(team)); err != nil {
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

// chosen returns the clusters that a placement of the team has, by name.
func (h *hub) chosen(ctx context.Context, placement string) ([]string, error) {
	all, err := h.decisions(ctx)
	return all[placement], err
}

// settle waits until the placement controller has heard of all clusters as they
// are.
func (h *hub) settle(ctx context.Context) error {
	if h.known == nil {
		return h.probe(ctx)
	}
	return h.await(ctx, "the placement controller to hear of all clusters", h.knows)
}

// knows reports whether a placement controller in this process has heard of all
// clusters as they are.
func (h *hub) knows(ctx context.Context) (bool, error) {
	var is, known clusterv1.ManagedClusterList
	if err := errors.Join(h.api.List(ctx, &is), h.known.List(ctx, &known)); err != nil {
		return false, err
	}
	versions := map[string]string{}
	for _, cluster := range known.Items {
		versions[cluster.Name] = cluster.ResourceVersion
	}
	return !slices.ContainsFunc(is.Items, func(c clusterv1.ManagedCluster) bool { return versions[c.Name] != c.ResourceVersion }), nil
}

// remove deletes placements of the team, and waits until their decisions have
// gone: the next ones are to find the fleet free.
func (h *hub) remove(ctx context.Context, placements []string) error {
	for _, name := range placements {
		object := &v1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: team}}
		if err := h.api.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return h.await(ctx, "decisions to go", func(ctx context.Context) (bool, error) {
		all, err := h.decisions(ctx)
		return !slices.ContainsFunc(placements, func(name string) bool { return len(all[name]) > 0 }), err
	})
}

func (h *hub) await(ctx context.Context, what string, condition wait.ConditionWithContextFunc) error {
	return await(ctx, 10*time.Millisecond, patience, what, condition)
}

// standing is how the fleet stands for a placement: what is chosen, and the
// verdict as it would be at this moment.
type standing struct {
	types.NamespacedName
	chosen  []string
	verdict *fleet.Verdict
}

// standings returns how the fleet stands for each placement, by name.
func (h *hub) standings(ctx context.Context) ([]standing, error) {
	objects, err := fleet.Read(func(list fleet.ObjectList) error { return h.api.List(ctx, list) })
	if err != nil {
		return nil, err
	}
	state, selected := objects.State(nil), objects.Selected()
	var out []standing
	for _, key := range state.Placements() {
		if verdict, ok := state.Preview(key, time.Now()); ok {
			out = append(out, standing{key, selected[key], verdict})
		}
	}
	return out, nil
}
