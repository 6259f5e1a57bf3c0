package slack

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plimsoll-k8s/plimsoll/slack"
)

// The resources of the objects with virtual placeholders.
var (
	bufferResource   = slack.CapacityBufferVersion.WithResource("capacitybuffers")
	templateResource = v1.SchemeGroupVersion.WithResource("podtemplates")
)

// objectSource returns a source of the objects of a resource with a label, all if it is empty, and their cache. It is not a watch of
// the manager: the API server may serve the resource later or never. The source is started when the cache is filled or the API server
// refuses the resource: otherwise the first plan would lack the placeholders of cached workloads.
func objectSource(
	objects dynamic.Interface, resource schema.GroupVersionResource, label string, events handler.EventHandler,
) (source.Func, cache.Store) {
	informer := dynamicinformer.NewFilteredDynamicInformer(objects, resource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) { options.LabelSelector = label }).Informer()
	var isRefused atomic.Bool
	onError := func(ctx context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			isRefused.Store(true)
		}
		if !apierrors.IsNotFound(err) {
			log.FromContext(ctx).V(1).Info("Watching failed", "resource", resource.Resource, "error", err.Error())
		}
	}
	return func(ctx context.Context, q queue) error {
		changes := source.Informer{Informer: informer, Handler: events}
		err := errors.Join(changes.Start(ctx, q), informer.SetTransform(strip), informer.SetWatchErrorHandlerWithContext(onError))
		if err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
		return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) {
			return isRefused.Load() || informer.HasSynced(), nil
		})
	}, informer.GetStore()
}

// strip removes the fields of an object that are not read: the template of a PodTemplate, whose generation is compared, and of a workload
// without the annotation all but its metadata.
func strip(object any) (any, error) {
	if o, ok := object.(*unstructured.Unstructured); ok {
		o.SetManagedFields(nil)
		delete(o.Object, "template")
		if !isAnnotated(o) && o.GetLabels()[slack.PlaceholderLabel] == "" {
			delete(o.Object, "spec")
			delete(o.Object, "status")
		}
	}
	return object, nil
}
