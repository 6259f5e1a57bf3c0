package placement

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
)

// servedInterval is the time between two checks whether the kinds are served.
const servedInterval = 10 * time.Second

// waitUntilServed waits until all kinds of the controller are served, or the context ends. A
// cluster that is not a hub serves none of them, which is not an error.
func waitUntilServed(ctx context.Context, m ctrl.Manager) error {
	logged := false
	return wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
		missing := checkServed(m, &v1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}, &fleet.ManagedCluster{},
			&clusterv1beta2.ManagedClusterSet{}, &clusterv1beta2.ManagedClusterSetBinding{}, &clusterv1alpha1.AddOnPlacementScore{})
		if missing != nil && !logged {
			log.FromContext(ctx).Info(
				"Placements are not decided because the cluster does not serve all kinds of an Open Cluster Management hub",
				"missing", missing.Error())
			logged = true
		}
		return missing == nil, nil
	})
}

// checkServed returns an error that names the first kind of the objects that the API server does not serve.
func checkServed(m ctrl.Manager, objects ...runtime.Object) error {
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, m.GetScheme())
		if err == nil {
			_, err = m.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
