package doctor

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
)

// placements checks for misconfigured placements, and for clusters that report no
// resources.
func (x *examination) placements(ctx context.Context) error {
	group := schema.GroupVersion{Group: "cluster.open-cluster-management.io", Version: "v1beta1"}
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(group.WithKind("PlacementList"))
	if err := x.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			x.ok("this is no hub: it has no placements")
			return nil
		}
		return err
	}
	for i := range list.Items {
		x.placement(&list.Items[i])
	}
	return x.managedClusters(ctx)
}

// placement checks the conditions of a placement.
func (x *examination) placement(p *unstructured.Unstructured) {
	name := facts.Name(p)
	conditions, _, _ := unstructured.NestedSlice(p.Object, "status", "conditions") // anything but a list has no conditions
	for _, c := range conditions {
		condition, ok := c.(map[string]any)
		if ok && condition["type"] == "PlacementMisconfigured" && condition["status"] == "True" {
			x.add(Problem, fmt.Sprintf("placement %s is misconfigured: %v", name, condition["message"]), "plimsoll placement explain "+name)
		}
	}
}

// managedClusters checks for clusters that report no allocatable resources.
func (x *examination) managedClusters(ctx context.Context) error {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.open-cluster-management.io", Version: "v1", Kind: "ManagedClusterList"})
	if err := x.client.List(ctx, &list); err != nil {
		if meta.IsNoMatchError(err) {
			return nil // reported by definitions
		}
		return err
	}
	var silent []string
	for i := range list.Items {
		if allocatable, _, err := unstructured.NestedMap(list.Items[i].Object, "status", "allocatable"); err != nil || len(allocatable) == 0 {
			silent = append(silent, list.Items[i].GetName())
		}
	}
	if len(silent) > 0 {
		x.add(Warning, fmt.Sprintf("%d of %d managed clusters report no allocatable resources: %s", len(silent), len(list.Items), some(silent)), "run the agent in them (docs/agent.md); prioritizers rate them lowest")
	}
	return nil
}
