package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/klog/v2"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	examples "github.com/plimsoll-k8s/plimsoll/examples/placement"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
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
		if err := kube.Apply(ctx, h.API, object); err != nil {
			return fmt.Errorf("%s: %s %s: %w", file, object.GetKind(), object.GetName(), err)
		}
	}
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

// nodePool is a number of nodes and their CPUs. Each node has one to three pods of 2 CPUs.
type nodePool [2]int

// members are the nodes of the clusters of examples/placement/7-fit.
var members = map[string][]nodePool{
	"cluster1": {{20, 16}}, "cluster2": {{12, 24}}, "cluster3": {{2, 48}},
	"cluster4": {{40, 8}}, "cluster5": {{4, 8}}, "cluster6": {{6, 8}},
}

// publish writes the ClusterCapacity of a cluster with generated nodes, as its agent would.
func (h *hub) publish(ctx context.Context, cluster string, pools []nodePool) error {
	in := &summarize.Input{Cluster: cluster, Now: time.Now(), Pods: summarize.Pods{}}
	for _, pool := range pools {
		for i := range pool[0] {
			name := fmt.Sprintf("node-%d-%d", pool[1], i)
			in.Nodes = append(in.Nodes, summarize.NewNode(demo.Node{Name: name, CPU: fmt.Sprint(pool[1])}.Object()))
			for k := range 1 + i%3 {
				in.Pods.Set(summarize.NewPod(demo.Pod{Name: fmt.Sprint(name, "-", k), Node: name, Request: "2"}.Object("")))
			}
		}
	}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster}}
	if err := h.API.Create(ctx, namespace); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	object := &v1alpha1.ClusterCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: cluster, Name: v1alpha1.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, h.API, object, func() error {
		object.Status = *summarize.Summarize(in)
		return nil
	})
	return err
}

// publishAll writes the ClusterCapacities of all clusters.
func (h *hub) publishAll(ctx context.Context) error {
	for cluster, pools := range members {
		if err := h.publish(ctx, cluster, pools); err != nil {
			return fmt.Errorf("capacity of %s: %w", cluster, err)
		}
	}
	return nil
}

// renewInterval is the time after which capacities are written again, as agents do. Capacities that are older than 15 minutes do not count.
const renewInterval = 5 * time.Minute

// renew writes the ClusterCapacities of all clusters again until ctx ends. It is first due long after the scenario.
func (h *hub) renew(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(renewInterval):
		}
		if err := h.publishAll(ctx); err != nil && ctx.Err() == nil {
			klog.ErrorS(err, "Renewing the capacities of clusters failed, the next attempt is in 5 minutes")
		}
	}
}
