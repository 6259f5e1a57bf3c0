package slack

import (
	"context"
	"errors"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/plimsoll-k8s/plimsoll/slack"
)

// The resources of the objects with virtual placeholders, and of the events about them.
var (
	bufferResource   = slack.CapacityBufferVersion.WithResource("capacitybuffers")
	templateResource = v1.SchemeGroupVersion.WithResource("podtemplates")
	eventResource    = v1.SchemeGroupVersion.WithResource("events")
)

// objectSource returns a source of the objects of a resource with slack.PlaceholderLabel, or of the events slack.NotTriggered. It is not a
// watch of the manager: the API server may serve the resource, or permit to read it, later or never.
func objectSource(objects dynamic.Interface, resource schema.GroupVersionResource, events handler.EventHandler) source.Func {
	informer := dynamicinformer.NewFilteredDynamicInformer(objects, resource, metav1.NamespaceAll, 0, cache.Indexers{},
		func(options *metav1.ListOptions) {
			if resource == eventResource {
				options.FieldSelector = "involvedObject.kind=" + slack.CapacityBufferKind.Kind + ",reason=" + slack.NotTriggered
			} else {
				options.LabelSelector = slack.PlaceholderLabel
			}
		}).Informer()
	onError := func(ctx context.Context, _ *cache.Reflector, err error) {
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
		return nil
	}
}

// strip removes the fields of an object that are not read, such as the template of a PodTemplate, whose generation is compared.
func strip(object any) (any, error) {
	if o, ok := object.(*unstructured.Unstructured); ok {
		o.SetManagedFields(nil)
		delete(o.Object, "template")
	}
	return object, nil
}
