// Package setup sets up what controllers run in: types, caches and the way to
// the API server are the same for the program and for the demo.
package setup

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/placement/v1beta1"
	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
)

// Scheme returns the types that controllers read and write.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, v1alpha1.AddToScheme,
		v1beta1.AddToScheme, clusterv1.Install, clusterv1alpha1.Install, clusterv1beta2.Install,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// New returns a manager without controllers. The options' scheme and cache are
// set.
func New(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	informers, err := patientClient(config)
	if err != nil {
		return nil, err
	}
	options.Scheme = Scheme()
	options.Cache = cache.Options{
		HTTPClient: informers, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Transform: slack.Slim}, &appsv1.ReplicaSet{}: {Transform: slack.Slim},
			&appsv1.StatefulSet{}: {Transform: slack.Slim}, &batchv1.Job{}: {Transform: slack.Slim},
		},
	}
	return ctrl.NewManager(config, options)
}
