package doctor

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// checkPlacements checks for misconfigured placements, and for clusters that report no
// resources.
func (e *examination) checkPlacements(ctx context.Context) error {
	var list v1beta1.PlacementList
	if err := e.client.List(ctx, &list); err != nil {
		if resources.IsNotServed(err) {
			e.absent("the cluster is not a hub: it has no CRD of Placement")
			return nil
		}
		return err
	}
	for i := range list.Items {
		name, conditions := resources.Name(&list.Items[i]), list.Items[i].Status.Conditions
		if c := meta.FindStatusCondition(conditions, "PlacementMisconfigured"); c != nil && c.Status == metav1.ConditionTrue {
			e.add(Problem, fmt.Sprintf("placement %s is misconfigured: %s", name, c.Message), "plimsoll placement explain "+name)
		}
	}
	return e.checkManagedClusters(ctx)
}

// checkManagedClusters checks for clusters that report no allocatable resources.
func (e *examination) checkManagedClusters(ctx context.Context) error {
	var list fleet.ManagedClusterList
	if err := e.client.List(ctx, &list); err != nil {
		if resources.IsNotServed(err) {
			return nil // reported by checkDefinitions
		}
		return err
	}
	var missing []string
	for i := range list.Items {
		if len(list.Items[i].Status.Allocatable) == 0 {
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
