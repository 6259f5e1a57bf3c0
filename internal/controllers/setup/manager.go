// Package setup is shared by the controllers: the manager with its caches and its
// connection to the API server, events from conditions, and the check that an
// object is gone.
package setup

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// New returns a manager without controllers. It sets the scheme and the cache of the
// options. With leader election, its clients refuse writes while another process may be
// the leader.
func New(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
	config = rest.CopyConfig(config)
	lease, err := ElectLeader(config, &options)
	if err != nil {
		return nil, err
	}
	config.Wrap(lease.RefuseWrites)
	informers, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	informers.Transport = retryDial{informers.Transport, dialInterval}
	options.Scheme = kube.SchemeWith(fleet.InstallHub)
	options.Cache = cache.Options{
		HTTPClient: informers, DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&appsv1.Deployment{}: {Transform: stripFields}, &appsv1.ReplicaSet{}: {Transform: stripFields},
			&appsv1.StatefulSet{}: {Transform: stripFields}, &batchv1.Job{}: {Transform: stripFields},
		},
	}
	return ctrl.NewManager(config, options)
}

// stripFields removes from a workload, before it is cached, the fields that are
// only read from workloads with the slack annotation.
func stripFields(object any) (any, error) {
	if o, ok := object.(client.Object); ok {
		o.SetManagedFields(nil)
		if _, annotated := o.GetAnnotations()[v1alpha1.AnnotationSlack]; annotated {
			return object, nil
		}
	}
	switch o := object.(type) {
	case *appsv1.Deployment:
		o.Annotations, o.Spec.Template, o.Status = nil, v1.PodTemplateSpec{}, appsv1.DeploymentStatus{}
	case *appsv1.ReplicaSet:
		o.Annotations, o.Spec.Template, o.Status = nil, v1.PodTemplateSpec{}, appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		o.Annotations, o.Spec, o.Status = nil, appsv1.StatefulSetSpec{}, appsv1.StatefulSetStatus{}
	case *batchv1.Job:
		o.Annotations, o.Spec.Template, o.Status = nil, v1.PodTemplateSpec{}, batchv1.JobStatus{}
	}
	return object, nil
}
