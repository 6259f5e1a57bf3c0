package placement

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
)

// lookAgain is the time between two looks for kinds that are not served.
const lookAgain = 10 * time.Second

// whenServed sets the controller up when all its kinds are served. A cluster that
// is no hub has none of them, which is no fault.
type whenServed struct {
	manager    ctrl.Manager
	controller *Controller
}

// Start waits, sets up, and ends.
func (w *whenServed) Start(ctx context.Context) error {
	told := false
	err := wait.PollUntilContextCancel(ctx, lookAgain, true, func(context.Context) (bool, error) {
		missing := w.missing()
		if missing == "" {
			return true, nil
		}
		if !told {
			log.FromContext(ctx).Info("Placements are not decided: this is no hub of Open Cluster Management, or not yet", "missing", missing)
			told = true
		}
		return false, nil
	})
	if err != nil {
		return nil //nolint:nilerr // asked to end
	}
	return w.controller.setUp(ctx, w.manager)
}

// missing returns a kind that is not served, or of which that is not known, if
// there is one.
func (w *whenServed) missing() string {
	for _, object := range []runtime.Object{
		&v1beta1.Placement{}, &clusterv1beta1.PlacementDecision{}, &clusterv1.ManagedCluster{},
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
