package slack

import (
	"context"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// workloadKinds returns the kinds of workloads that can be mirrored.
func workloadKinds() []workloadKind {
	return []workloadKind{
		{&appsv1.Deployment{}, &appsv1.DeploymentList{}},
		{&appsv1.ReplicaSet{}, &appsv1.ReplicaSetList{}},
		{&appsv1.StatefulSet{}, &appsv1.StatefulSetList{}},
		{&batchv1.Job{}, &batchv1.JobList{}},
	}
}

type workloadKind struct {
	object client.Object
	list   client.ObjectList
}

// annotatedIndex is the name of the index of workloads with the annotation.
const annotatedIndex = "annotated"

// indexAnnotated returns the index values of a workload.
func indexAnnotated(object client.Object) []string {
	if _, ok := object.GetAnnotations()[v1alpha1.AnnotationSlack]; ok {
		return []string{"true"}
	}
	return nil
}

// workloads returns the workloads with the annotation, with the labels of their namespaces. They share memory
// with the cache and must not be modified.
func (c *Controller) workloads(ctx context.Context) (all []slack.Workload, err error) {
	for _, kind := range workloadKinds() {
		if err := c.client.List(ctx, kind.list, client.MatchingFields{annotatedIndex: "true"}, client.UnsafeDisableDeepCopy); err != nil {
			return nil, err
		}
		err := meta.EachListItem(kind.list, func(object runtime.Object) error {
			if w, ok := slack.WorkloadOf(object); ok {
				all = append(all, w)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, store := range c.gangs {
		for _, object := range store.List() {
			if w, ok := slack.WorkloadOf(object.(runtime.Object)); ok {
				all = append(all, w)
			}
		}
	}
	namespaces := map[string]map[string]string{}
	for i := range all {
		name := all[i].Namespace
		if _, known := namespaces[name]; !known {
			var namespace v1.Namespace
			if err := c.client.Get(ctx, client.ObjectKey{Name: name}, &namespace); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
			// Nil for a namespace that is not yet, or no longer, in the cache.
			namespaces[name] = namespace.Labels
		}
		all[i].NamespaceLabels = namespaces[name]
	}
	return all, nil
}

// workloadHandler returns a handler that enqueues all policies if a workload has or had the
// annotation, and the policy of a workload of placeholder pods whose spec changes or that is deleted.
func (c *Controller) workloadHandler() handler.EventHandler {
	enqueueAll := func(q queue, objects ...any) {
		if slices.ContainsFunc(objects, isAnnotated) {
			enqueue(q, c.policies())
		}
	}
	enqueueOwner := func(q queue, placeholders client.Object) {
		policy := placeholders.GetLabels()[slack.PlaceholderLabel]
		if policy != "" && placeholders.GetNamespace() == c.podNamespace && slices.Contains(c.policies(), policy) {
			enqueue(q, []string{policy})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueueAll(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			enqueueAll(q, e.ObjectOld, e.ObjectNew)
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() ||
				e.ObjectOld.GetLabels()[slack.PlaceholderLabel] != e.ObjectNew.GetLabels()[slack.PlaceholderLabel] {
				enqueueOwner(q, e.ObjectOld)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) {
			enqueueAll(q, e.Object)
			enqueueOwner(q, e.Object)
		},
	}
}

// gangHandler returns a handler that enqueues all policies if a workload of slack.GangResources has or had the annotation.
func (c *Controller) gangHandler(q queue) cache.ResourceEventHandler {
	enqueueAll := func(objects ...any) {
		if slices.ContainsFunc(objects, isAnnotated) {
			enqueue(q, c.policies())
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { enqueueAll(object) },
		UpdateFunc: func(before, after any) { enqueueAll(before, after) },
		DeleteFunc: func(object any) { enqueueAll(object) },
	}
}

// isAnnotated reports whether an object of a cache has the annotation, or is unknown because it was deleted while the watch was
// interrupted.
func isAnnotated(object any) bool {
	o, ok := object.(client.Object)
	return !ok || indexAnnotated(o) != nil
}

// stripGang removes the fields of a workload that are not read, of a workload without the annotation all but its metadata.
func stripGang(object any) (any, error) {
	if gang, ok := object.(*unstructured.Unstructured); ok {
		gang.SetManagedFields(nil)
		if !isAnnotated(gang) {
			delete(gang.Object, "spec")
			delete(gang.Object, "status")
		}
	}
	return object, nil
}

// namespaceHandler returns a handler that enqueues all policies if the labels of a namespace change, by
// which policies select namespaces.
func (c *Controller) namespaceHandler() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) {
			if !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) {
				enqueue(q, c.policies())
			}
		},
	}
}

// governedBy returns the workloads whose placeholders a policy holds.
func governedBy(policy string, policies []v1alpha1.ResourceSlack, workloads []slack.Workload) []slack.Workload {
	var active []*v1alpha1.ResourceSlack
	for i := range policies {
		if policies[i].DeletionTimestamp == nil {
			active = append(active, &policies[i])
		}
	}
	slices.SortFunc(active, func(a, b *v1alpha1.ResourceSlack) int { return strings.Compare(a.Name, b.Name) })
	var governed []slack.Workload
	for _, w := range workloads {
		if i := slack.GoverningPolicy(active, w); i >= 0 && active[i].Name == policy {
			governed = append(governed, w)
		}
	}
	return governed
}
