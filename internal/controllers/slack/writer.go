package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// writeTimeout limits one request that writes an object. Webhooks may delay it.
	writeTimeout = 10 * time.Second
	// maxNamespaceTime is the time after which the remaining objects of a namespace are left for the next attempt: many objects of one
	// namespace, or a slow webhook, do not delay the status and other policies for long.
	maxNamespaceTime = 2 * time.Second
	// maxNamespaces is the number of namespaces whose objects are written at the same time.
	maxNamespaces = 100
)

// objectKey identifies an object of a policy.
type objectKey struct {
	kind string
	types.NamespacedName
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GetKind(), client.ObjectKeyFromObject(object)}
}

// writer writes the objects of one policy in one namespace.
type writer struct {
	outcome
	controller *Controller
	// existing are the existing objects, and desired the objects to write. outdated are the existing objects to delete.
	existing map[objectKey]*unstructured.Unstructured
	desired  []*unstructured.Unstructured
	outdated []*unstructured.Unstructured
	// failed are the groups with an object that could not be written. Its zero value is a PriorityClass, which all groups need.
	failed map[types.NamespacedName]bool
	// end is the time after which the remaining objects are left for the next attempt.
	end time.Time
}

// newWriters returns the writers by namespace, which keep existing objects of the rate that are not desired if keepsRate is set. Objects
// without a namespace belong to the first one.
func (c *Controller) newWriters(
	existing []unstructured.Unstructured, desired []*unstructured.Unstructured, first string, keepsRate bool,
) map[string]*writer {
	writers := map[string]*writer{}
	writerOf := func(object *unstructured.Unstructured) *writer {
		namespace := cmp.Or(object.GetNamespace(), first)
		if writers[namespace] == nil {
			existing, failed := map[objectKey]*unstructured.Unstructured{}, map[types.NamespacedName]bool{}
			writers[namespace] = &writer{controller: c, existing: existing, failed: failed}
		}
		return writers[namespace]
	}
	isDesired := map[objectKey]bool{}
	for _, object := range desired {
		w := writerOf(object)
		w.desired, isDesired[keyOf(object)] = append(w.desired, object), true
	}
	for i := range existing {
		object := &existing[i]
		w, key := writerOf(object), keyOf(object)
		w.existing[key] = object
		if !isDesired[key] && (!keepsRate || slack.IsMirrorName(object.GetName())) {
			w.outdated = append(w.outdated, object)
		}
	}
	return writers
}

// runWriters runs the first writer, and then the others at the same time, in random order: no namespace is always among the last.
func runWriters(ctx context.Context, writers map[string]*writer, first string) (all outcome, err error) {
	if w := writers[first]; w != nil {
		err = w.run(ctx)
		all.add(w)
		delete(writers, first)
	}
	if err != nil || all.unavailable {
		return all, err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxNamespaces)
	for _, w := range writers {
		group.Go(func() error { return w.run(ctx) })
	}
	err = group.Wait()
	for _, namespace := range slices.Sorted(maps.Keys(writers)) {
		all.add(writers[namespace])
	}
	return all, err
}

// add adds the outcome of a writer.
func (o *outcome) add(w *writer) {
	byName := func(a, b objectKey) int { return strings.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(w.existing), byName) {
		o.held = append(o.held, *w.existing[key])
	}
	o.failures, o.mirrorFailures = append(o.failures, w.failures...), append(o.mirrorFailures, w.mirrorFailures...)
	o.unavailable, o.retryAfter = o.unavailable || w.unavailable, max(o.retryAfter, w.retryAfter)
}

// run writes and deletes objects. It returns an error if the API server cannot be reached.
func (w *writer) run(ctx context.Context) error {
	w.end = w.controller.now().Add(maxNamespaceTime)
	for _, object := range w.desired {
		if err := w.write(ctx, object); err != nil || w.unavailable {
			return err
		}
	}
	for _, object := range w.outdated {
		if err := w.delete(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// write writes an object unless it exists with all desired fields, and no others of its spec and template. It returns an error if the API
// server cannot be reached.
func (w *writer) write(ctx context.Context, desired *unstructured.Unstructured) error {
	key := keyOf(desired)
	existing := w.existing[key]
	if existing != nil && contains(existing.Object, desired.Object) && len(othersOf(existing)) == 0 {
		return nil
	}
	// A buffer without its template would be refused, and Deployments without their PriorityClass as well.
	if w.failed[key.NamespacedName] || w.failed[types.NamespacedName{}] || w.postpones() {
		return nil
	}
	return w.request(ctx, key, "applying", func(ctx context.Context) error {
		err := w.apply(ctx, existing != nil, desired)
		if err == nil {
			unstructured.RemoveNestedField(desired.Object, "status")
			w.existing[key] = desired
		}
		return err
	})
}

// postpones reports whether the remaining objects are left for the next attempt.
func (w *writer) postpones() bool {
	if w.controller.now().Before(w.end) {
		return false
	}
	w.retryAfter = cmp.Or(w.retryAfter, batchPeriod)
	return true
}

// apply writes an object. An object that exists without the label of the policy must have the label of
// another policy, for example a policy that was deleted.
func (w *writer) apply(ctx context.Context, labeled bool, desired *unstructured.Unstructured) error {
	c := w.controller
	if !labeled {
		existing := &unstructured.Unstructured{}
		existing.SetGroupVersionKind(desired.GroupVersionKind())
		err := c.client.Get(ctx, client.ObjectKeyFromObject(desired), existing)
		switch {
		case err == nil && contains(existing.Object, desired.Object):
			return nil
		case err == nil && desired.GetNamespace() != "" && existing.GetLabels()[slack.PlaceholderLabel] == "":
			return fmt.Errorf("%s %s/%s exists, %w (label %s is missing) and is not changed: rename or delete it",
				existing.GetKind(), existing.GetNamespace(), existing.GetName(), errUnmanaged, slack.PlaceholderLabel)
		case apierrors.IsNotFound(err):
			err = w.deleteCopy(ctx, desired)
		}
		if err != nil {
			return err
		}
	}
	c.metrics.writes.WithLabelValues(desired.GetKind(), "apply").Inc()
	own := desired.DeepCopy()
	err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), fieldOwner, client.ForceOwnership)
	if err != nil && strings.Contains(err.Error(), "."+slack.StrategyField+": field not declared in schema") {
		c.withoutStrategy.Store(c.now().Unix())
		removeStrategy(desired)
		setHash(desired)
		own = desired.DeepCopy()
		err = c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), fieldOwner, client.ForceOwnership)
	}
	if err == nil && len(othersOf(desired)) > 0 {
		err = w.removeOthers(ctx, own, desired)
	}
	return err
}

// othersOf returns the clients that own fields of the spec or the template of an object, besides the controller. Defaults and what
// webhooks add have no owner.
func othersOf(object *unstructured.Unstructured) (names []string) {
	for _, entry := range object.GetManagedFields() {
		var fields map[string]json.RawMessage
		if entry.FieldsV1 == nil || entry.Manager == string(fieldOwner) || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		if fields["f:spec"] != nil || fields["f:template"] != nil {
			names = append(names, entry.Manager)
		}
	}
	return names
}

// removeOthers removes the fields that other clients have added to the spec or the template of an applied object: an autoscaler would
// honor them. Applying removes only fields that the controller owns.
func (w *writer) removeOthers(ctx context.Context, own, applied *unstructured.Unstructured) error {
	names := othersOf(applied)
	log.FromContext(ctx).Info("Removing fields of placeholders that others have set", "kind", own.GetKind(),
		"object", client.ObjectKeyFromObject(own), "managers", names)
	remaining := slices.DeleteFunc(applied.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return slices.Contains(names, e.Manager)
	})
	patch := []map[string]any{{"op": "replace", "path": "/metadata/managedFields", "value": remaining}}
	for _, field := range []string{"spec", "template"} {
		if content := own.Object[field]; content != nil {
			patch = append(patch, map[string]any{"op": "replace", "path": "/" + field, "value": content})
		}
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return w.controller.client.Patch(ctx, applied, client.RawPatch(types.JSONPatchType, raw), fieldOwner)
}

// strategyPeriod is the time for which buffers are written without a provisioning strategy after the API server refused
// it. The definition may be replaced.
const strategyPeriod = 10 * time.Minute

// removeStrategy removes the provisioning strategy of an object.
func removeStrategy(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "spec", slack.StrategyField)
}

// hasStrategy reports whether buffers have a provisioning strategy, as far as it is known.
func (c *Controller) hasStrategy() bool {
	return c.now().Unix()-c.withoutStrategy.Load() >= int64(strategyPeriod/time.Second)
}

// deleteCopy deletes the copy of the template that Cluster Autoscaler made for a deleted buffer with the name of
// a buffer to be created. Cluster Autoscaler would use it for the new buffer until the garbage collector deletes
// it, and then provision nothing for up to ten minutes.
func (w *writer) deleteCopy(ctx context.Context, buffer *unstructured.Unstructured) error {
	if buffer.GetKind() != slack.CapacityBufferKind.Kind {
		return nil
	}
	found := &unstructured.Unstructured{} // read from the API server rather than the cache
	found.SetGroupVersionKind(v1.SchemeGroupVersion.WithKind("PodTemplate"))
	key := client.ObjectKey{Namespace: buffer.GetNamespace(), Name: "capacitybuffer-" + buffer.GetName() + "-pod-template"}
	if err := w.controller.client.Get(ctx, key, found); err != nil {
		return client.IgnoreNotFound(err)
	}
	if owner := metav1.GetControllerOf(found); owner == nil || owner.Kind != buffer.GetKind() || owner.Name != buffer.GetName() {
		return nil
	}
	w.controller.metrics.writes.WithLabelValues("PodTemplate", "delete").Inc()
	return client.IgnoreNotFound(w.controller.client.Delete(ctx, found, client.Preconditions{UID: new(found.GetUID())}))
}

// delete deletes an object. It returns an error if the API server cannot be reached.
func (w *writer) delete(ctx context.Context, object *unstructured.Unstructured) error {
	if w.postpones() {
		return nil
	}
	key := keyOf(object)
	return w.request(ctx, key, "deleting", func(ctx context.Context) error {
		w.controller.metrics.writes.WithLabelValues(object.GetKind(), "delete").Inc()
		err := client.IgnoreNotFound(w.controller.client.Delete(ctx, object))
		if err == nil {
			delete(w.existing, key)
		}
		return err
	})
}

// request sends requests for an object, and records a failure that the API server reports. It returns other
// errors: the API server cannot be reached.
func (w *writer) request(ctx context.Context, key objectKey, verb string, send func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := send(limited)
	timedOut := limited.Err() != nil && ctx.Err() == nil
	unmanaged := errors.Is(err, errUnmanaged) && !timedOut
	status, answered := errors.AsType[*apierrors.StatusError](err) // such as a refusal by admission
	switch {
	case err == nil:
		return nil
	case resources.IsNotServed(err):
		w.unavailable = true
		return nil
	case timedOut:
		err = fmt.Errorf("the API server has not answered within %s", writeTimeout)
	case !unmanaged && !answered:
		return fmt.Errorf("%s %s %s: %w", verb, key.kind, key.NamespacedName, err)
	}
	// The namespace of a PriorityClass, which all groups need, is empty.
	if key.Namespace == "" {
		key.NamespacedName = types.NamespacedName{}
	}
	w.failed[key.NamespacedName] = true
	if timedOut || answered && isTemporary(status) {
		w.retryAfter = retryPeriod
	}
	if !unmanaged {
		err = fmt.Errorf("%s %s %s: %w", verb, key.kind, key.NamespacedName, err)
	}
	failures := &w.failures
	if slack.IsMirrorName(key.Name) {
		failures = &w.mirrorFailures
	}
	*failures = append(*failures, err)
	return nil
}

// isTemporary reports whether the same request may succeed later: the API server, or a webhook, has failed.
func isTemporary(err *apierrors.StatusError) bool {
	return err.ErrStatus.Code >= http.StatusInternalServerError || err.ErrStatus.Code == http.StatusTooManyRequests
}
