package placement

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
)

// stateOf returns the state of a hub from its objects.
func stateOf(hub *manifest.Hub) *fleet.State {
	state := fleet.NewState()
	for _, object := range hub.Sets {
		state.SetSet(object)
	}
	for _, object := range hub.Bindings {
		state.SetBinding(object)
	}
	for _, object := range hub.Scores {
		state.SetScores(object)
	}
	for _, object := range hub.Clusters {
		state.SetCluster(object)
	}
	for _, object := range hub.Placements {
		key := types.NamespacedName{Namespace: object.Namespace, Name: object.Name}
		state.SetPlacement(object)
		state.Resume(key, chosenBefore(hub, key), 0)
	}
	// Decisions of unknown placements count for the prioritizer Balance.
	others := map[types.NamespacedName]bool{}
	for _, decision := range hub.Decisions {
		others[placementOf(decision)] = true
	}
	for _, object := range hub.Placements {
		delete(others, types.NamespacedName{Namespace: object.Namespace, Name: object.Name})
	}
	for key := range others {
		state.SetForeign(key, chosenBefore(hub, key))
	}
	return state
}

// placementOf returns the placement of a decision.
func placementOf(decision *clusterv1beta1.PlacementDecision) types.NamespacedName {
	return types.NamespacedName{Namespace: decision.Namespace, Name: decision.Labels[clusterv1beta1.PlacementLabel]}
}

// chosenBefore returns the clusters in the decisions of a placement.
func chosenBefore(hub *manifest.Hub, key types.NamespacedName) (names []string) {
	for _, decision := range hub.Decisions {
		if placementOf(decision) == key {
			for _, d := range decision.Status.Decisions {
				names = append(names, d.ClusterName)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
