package doctor

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// checkPlacements checks for misconfigured placements, and for clusters that report no
// resources.
func (e *examination) checkPlacements(ctx context.Context) error {
	group := schema.GroupVersion{Group: "cluster.open-cluster-management.io", Version: "v1beta1"}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(group.WithKind("PlacementList"))
	if err := e.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			e.ok("the cluster is not a hub: it has no CRD of Placement")
			return nil
		}
		return err
	}
	for i := range list.Items {
		e.checkPlacement(&list.Items[i])
	}
	return e.checkManagedClusters(ctx)
}

// checkPlacement checks the conditions of a placement.
func (e *examination) checkPlacement(p *unstructured.Unstructured) {
	name := resources.Name(p)
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions") // a value of another type has no conditions
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "PlacementMisconfigured" && condition["status"] == "True" {
			e.add(Problem, fmt.Sprintf("placement %s is misconfigured: %v", name, condition["message"]), "plimsoll placement explain "+name)
		}
	}
}

// checkManagedClusters checks for clusters that report no allocatable resources.
func (e *examination) checkManagedClusters(ctx context.Context) error {
	var list unstructured.UnstructuredList
	group := schema.GroupVersion{Group: "cluster.open-cluster-management.io", Version: "v1"}
	list.SetGroupVersionKind(group.WithKind("ManagedClusterList"))
	if err := e.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil // reported by checkDefinitions
		}
		return err
	}
	var missing []string
	for i := range list.Items {
		allocatable, _, err := unstructured.NestedMap(list.Items[i].Object, "status", "allocatable")
		if err != nil || len(allocatable) == 0 {
			missing = append(missing, list.Items[i].GetName())
		}
	}
	if len(missing) > 0 {
		e.add(Warning, fmt.Sprintf("%d of %d managed clusters report no allocatable resources: %s",
			len(missing), len(list.Items), abbreviate(missing)),
			"run the agent in them (docs/agent.md): they get the worst score of resource prioritizers")
	}
	return nil
}
