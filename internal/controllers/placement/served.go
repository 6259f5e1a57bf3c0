package placement

import (
	"cmp"
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

// whenServed adds the controller to the manager when all its kinds are served. A
// cluster that is not a hub serves none of them, which is not an error.
type whenServed struct {
	manager    ctrl.Manager
	controller *Controller
}

// Start waits until all kinds are served, then adds the controller.
func (w *whenServed) Start(ctx context.Context) error {
	logged := false
	err := wait.PollUntilContextCancel(ctx, servedInterval, true, func(context.Context) (bool, error) {
		missing := w.missing()
		if missing == "" {
			return true, nil
		}
		if !logged {
			log.FromContext(ctx).Info(
				"Placements are not decided because the cluster does not serve all kinds of an Open Cluster Management hub",
				"missing", missing)
			logged = true
		}
		return false, nil
	})
	if err != nil {
		return nil //nolint:nilerr // the context has ended
	}
	return w.controller.setUp(ctx, w.manager)
}

// missing returns a kind that is not served, "" if all are served.
func (w *whenServed) missing() string {
	for _, object := range []runtime.Object{
		&v1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}, &fleet.ManagedCluster{},
		&clusterv1beta2.ManagedClusterSet{}, &clusterv1beta2.ManagedClusterSetBinding{}, &clusterv1alpha1.AddOnPlacementScore{},
	} {
		kind, err := apiutil.GVKForObject(object, w.manager.GetScheme())
		if err == nil {
			_, err = w.manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
		}
		if err != nil {
			return cmp.Or(kind.Kind, err.Error())
		}
	}
	return ""
}
