// Package setup is shared by the controllers: the manager with its caches and its
// connection to the API server, events from conditions, and the check that an
// object is gone.
package setup

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
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

// dialInterval is the time between two attempts to connect to the API server.
const dialInterval = time.Second

// retryDial repeats requests that failed because the API server could not be
// reached, until the context of the request ends. Informers use it: their own
// backoff grows to a minute, so they would notice late that the API server is back.
type retryDial struct {
	next     http.RoundTripper
	interval time.Duration
}

// RoundTrip implements http.RoundTripper. A request with a body is sent once.
func (r retryDial) RoundTrip(request *http.Request) (*http.Response, error) {
	for {
		response, err := r.next.RoundTrip(request)
		unreachable, ok := errors.AsType[*net.OpError](err)
		if !ok || unreachable.Op != "dial" || request.Body != nil {
			return response, err
		}
		select {
		case <-request.Context().Done():
			return nil, err
		case <-time.After(r.interval):
		}
	}
}

// MaxNote is the length in bytes up to which the API server accepts the note of an event.
const MaxNote = 1024

// RecordConditions records an event for every condition whose status or reason
// changed, with its message, which is shortened to MaxNote. eventType returns the type of the event, "" for no event; its argument
// before is nil for a condition that is new.
func RecordConditions(
	recorder events.EventRecorder,
	object runtime.Object,
	before, after []metav1.Condition,
	eventType func(before, after *metav1.Condition) string,
) {
	for i := range after {
		condition, old := &after[i], meta.FindStatusCondition(before, after[i].Type)
		if old != nil && old.Status == condition.Status && old.Reason == condition.Reason {
			continue
		}
		if kind := eventType(old, condition); kind != "" {
			recorder.Eventf(object, nil, kind, condition.Reason, condition.Type, "%s", format.Shorten(condition.Message, MaxNote))
		}
	}
}

// IsGone reports whether the API server confirms that an object does not exist or
// is being deleted. It must be called before dependents are deleted: a missing
// entry in a cache is not sufficient, nor is a 404 from an API server that does not
// serve the kind. The reader must not be cached; the object is overwritten.
func IsGone(ctx context.Context, live client.Reader, key client.ObjectKey, object client.Object) (bool, error) {
	err := live.Get(ctx, key, object)
	switch {
	case err == nil:
		return object.GetDeletionTimestamp() != nil, nil
	case apierrors.IsNotFound(err) && !resources.IsNotServed(err):
		return true, nil
	}
	return false, err
}
