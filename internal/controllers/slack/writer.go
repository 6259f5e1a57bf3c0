package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/slack"
)

const (
	// writeTimeout limits one request that writes an object. Webhooks may delay it.
	writeTimeout = 10 * time.Second
	// maxNamespaceTime is the time after which the remaining objects of a namespace are left for the next
	// attempt, so that many objects of one namespace, or a slow webhook, do not delay other namespaces.
	maxNamespaceTime = 2 * time.Second
	// maxSlowTime is the time of one attempt for all namespaces that were slow at their last attempt.
	maxSlowTime = 10 * time.Second
)

// objectKey identifies an object of a policy.
type objectKey struct {
	kind string
	types.NamespacedName
}

func keyOf(object *unstructured.Unstructured) objectKey {
	return objectKey{object.GetKind(), client.ObjectKeyFromObject(object)}
}

// writer writes the objects of one plan.
type writer struct {
	outcome
	controller *Controller
	existing   map[objectKey]*unstructured.Unstructured
	desired    map[objectKey]bool
	// held are the existing objects that remain. Objects that were just written have no status.
	held []unstructured.Unstructured
	// failed are the groups with an object that could not be written.
	failed map[types.NamespacedName]bool
	// spent is the time that the requests for the objects of each namespace have taken, slowTime the time
	// for all slow namespaces. left are the namespaces with objects for the next attempt.
	spent    map[string]time.Duration
	slowTime time.Duration
	left     map[string]bool
	// slow has the namespaces that were slow at their last attempt, with the time of the attempt.
	slow map[string]time.Time
}

func newWriter(c *Controller, existing []unstructured.Unstructured, slow map[string]time.Time) *writer {
	w := &writer{
		controller: c, existing: make(map[objectKey]*unstructured.Unstructured, len(existing)),
		desired: map[objectKey]bool{}, failed: map[types.NamespacedName]bool{},
		spent: map[string]time.Duration{}, left: map[string]bool{}, slow: slow,
	}
	for i := range existing {
		w.existing[keyOf(&existing[i])] = &existing[i]
	}
	return w
}

// write writes an object unless it exists with all desired fields. It returns an error if the API server
// cannot be reached.
func (w *writer) write(ctx context.Context, desired *unstructured.Unstructured) error {
	key := keyOf(desired)
	w.desired[key] = true
	existing := w.existing[key]
	if existing != nil && contains(existing.Object, desired.Object) {
		w.held = append(w.held, *existing)
		return nil
	}
	// A buffer without its template would be refused, and Deployments without their PriorityClass as well.
	if w.failed[key.NamespacedName] || w.failed[types.NamespacedName{}] || w.postpones(key.Namespace) {
		w.keep(existing)
		return nil
	}
	err := w.request(ctx, key, "applying", func(ctx context.Context) error { return w.apply(ctx, existing != nil, desired) })
	if err != nil || w.unavailable || w.failed[key.NamespacedName] {
		w.keep(existing)
		return err
	}
	written := unstructured.Unstructured{Object: desired.Object}
	unstructured.RemoveNestedField(written.Object, "status")
	w.held = append(w.held, written)
	return nil
}

// postpones reports whether the remaining objects of a namespace are left for the next attempt.
func (w *writer) postpones(namespace string) bool {
	_, slow := w.slow[namespace]
	if w.spent[namespace] < maxNamespaceTime && (!slow || w.slowTime < maxSlowTime) {
		return false
	}
	w.left[namespace], w.retryAfter = true, cmp.Or(w.retryAfter, batchPeriod)
	return true
}

// spend counts the time of a request for an object of a namespace.
func (w *writer) spend(namespace string, d time.Duration) {
	w.spent[namespace] += d
	if _, slow := w.slow[namespace]; slow {
		w.slowTime += d
	}
}

// recordSlow updates the slow namespaces after an attempt. A namespace that was not attempted keeps its
// time, so that it is the first slow namespace at the next attempt.
func (w *writer) recordSlow(now time.Time) {
	for namespace, spent := range w.spent {
		switch {
		case spent >= maxNamespaceTime:
			w.slow[namespace] = now
		case !w.left[namespace]:
			delete(w.slow, namespace)
		}
	}
	maps.DeleteFunc(w.slow, func(namespace string, _ time.Time) bool { return w.spent[namespace] == 0 && !w.left[namespace] })
}

// keep records that an object remains as it is.
func (w *writer) keep(existing *unstructured.Unstructured) {
	if existing != nil {
		w.held = append(w.held, *existing)
	}
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
	err := c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), fieldOwner, client.ForceOwnership)
	if err != nil && strings.Contains(err.Error(), "."+slack.StrategyField+": field not declared in schema") {
		c.setWithoutStrategy()
		removeStrategy(desired)
		err = c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), fieldOwner, client.ForceOwnership)
	}
	return err
}

// strategyPeriod is the time for which buffers are written without a provisioning strategy after the API server refused
// it. The definition may be replaced.
const strategyPeriod = 10 * time.Minute

// removeStrategy removes the provisioning strategy of an object.
func removeStrategy(object *unstructured.Unstructured) {
	unstructured.RemoveNestedField(object.Object, "spec", slack.StrategyField)
}

// setWithoutStrategy records that buffers have no provisioning strategy.
func (c *Controller) setWithoutStrategy() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.withoutStrategy = c.now()
}

// hasStrategy reports whether buffers have a provisioning strategy, as far as it is known.
func (c *Controller) hasStrategy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.withoutStrategy.IsZero() || c.now().Sub(c.withoutStrategy) >= strategyPeriod
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
	key := keyOf(object)
	if w.postpones(key.Namespace) {
		w.keep(object)
		return nil
	}
	return w.request(ctx, key, "deleting", func(ctx context.Context) error {
		w.controller.metrics.writes.WithLabelValues(object.GetKind(), "delete").Inc()
		return client.IgnoreNotFound(w.controller.client.Delete(ctx, object))
	})
}

// request sends requests for an object, and records a failure that the API server reports. It returns other
// errors: the API server cannot be reached.
func (w *writer) request(ctx context.Context, key objectKey, verb string, send func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	start := w.controller.now()
	err := send(limited)
	w.spend(key.Namespace, w.controller.now().Sub(start))
	timedOut := limited.Err() != nil && ctx.Err() == nil
	unmanaged := errors.Is(err, errUnmanaged) && !timedOut
	status, answered := errors.AsType[*apierrors.StatusError](err) // such as a refusal by admission
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
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
	w.failures = append(w.failures, err)
	return nil
}

// isTemporary reports whether the same request may succeed later: the API server, or a webhook, has failed.
func isTemporary(err *apierrors.StatusError) bool {
	return err.ErrStatus.Code >= http.StatusInternalServerError || err.ErrStatus.Code == http.StatusTooManyRequests
}
