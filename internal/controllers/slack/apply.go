package slack

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/slack"
)

// fieldOwner is the owner of the fields that the controller writes.
const fieldOwner = client.FieldOwner("plimsoll-slack")

// kinds returns the kinds of objects of all backends, in the order in which they are deleted.
func kinds() (all []slack.ObjectKind) {
	for _, backend := range slack.Backends() {
		all = append(all, backend.Kinds...)
	}
	return all
}

// apply writes the objects of a plan that are missing or different, and then deletes the objects of
// the policy that are not in the plan. If the pool has no nodes, which is probably a selector typo,
// the existing objects of the rate remain; mirrors of workloads do not depend on the pool.
func (c *Controller) apply(ctx context.Context, t *policyTracker, plan slack.Plan) error {
	policy := t.Policy()
	mirrors := slices.DeleteFunc(slices.Clone(plan.Groups), func(g slack.Group) bool { return g.Mirror == nil })
	keepRate := t.poolEmpty && len(mirrors) < len(plan.Groups)
	if keepRate {
		plan.Groups = mirrors
	}
	desired, err := slack.BackendOf(policy).Objects(policy, plan, c.namespace)
	if err != nil {
		return err
	}
	for _, object := range desired {
		if err := c.applyObject(ctx, object); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if keepRate {
		return nil
	}
	return c.prune(ctx, policy.Name, desired)
}

// applyObject writes an object unless it exists with all desired fields.
func (c *Controller) applyObject(ctx context.Context, desired *unstructured.Unstructured) error {
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(desired.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(desired), existing)
	switch {
	case err == nil && contains(existing.Object, desired.Object):
		return nil
	case err == nil && desired.GetNamespace() != "" && existing.GetLabels()[slack.PlaceholderLabel] == "":
		return &unmanagedError{existing.GetKind(), existing.GetNamespace(), existing.GetName()}
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	c.metrics.recordWrite(desired.GetKind(), "apply")
	return c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(desired), fieldOwner, client.ForceOwnership)
}

// unmanagedError is returned if an object with the name of a desired object was not created by the
// controller.
type unmanagedError struct{ kind, namespace, name string }

func (e *unmanagedError) Error() string {
	return fmt.Sprintf("%s %s/%s exists, is not managed by Plimsoll (label %s is missing) and is not changed: rename or delete it",
		e.kind, e.namespace, e.name, slack.PlaceholderLabel)
}

func isUnmanaged(err error) bool {
	_, ok := errors.AsType[*unmanagedError](err)
	return ok
}

// contains reports whether an existing value has all desired fields with the same values.
func contains(existing, desired any) bool {
	switch desired := desired.(type) {
	case map[string]any:
		object, ok := existing.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range desired {
			if !contains(object[name], value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := existing.([]any)
		if !ok || len(list) != len(desired) {
			return false
		}
		for i := range desired {
			if !contains(list[i], desired[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(existing, desired)
}

// prune deletes the objects of a policy that are not desired. It deletes nothing of a kind that it
// cannot list.
func (c *Controller) prune(ctx context.Context, policy string, desired []*unstructured.Unstructured) error {
	for _, kind := range kinds() {
		existing, err := c.list(ctx, kind, client.MatchingLabels{slack.PlaceholderLabel: policy})
		if err != nil {
			return err
		}
		for i := range existing {
			object := &existing[i]
			if slices.ContainsFunc(desired, func(d *unstructured.Unstructured) bool {
				return d.GetKind() == object.GetKind() && d.GetNamespace() == object.GetNamespace() && d.GetName() == object.GetName()
			}) {
				continue
			}
			c.metrics.recordWrite(object.GetKind(), "delete")
			if err := c.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// list returns the objects of a kind that the controller manages, with labels, in all namespaces
// where they can be. It returns none if the API server does not serve the kind.
func (c *Controller) list(ctx context.Context, kind slack.ObjectKind, labels client.ListOption) ([]unstructured.Unstructured, error) {
	// Unstructured lists are read from the API server rather than the cache.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options := []client.ListOption{labels}
	if kind.OneNamespace {
		options = append(options, client.InNamespace(c.namespace))
	}
	err := c.client.List(ctx, list, options...)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	return slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !c.isManaged(&o) }), err
}

// isManaged reports whether a labeled object can be one of the controller: it is in the controller's
// namespace or has the name of a group that mirrors a workload.
func (c *Controller) isManaged(object *unstructured.Unstructured) bool {
	return object.GetNamespace() == c.namespace || slack.IsMirrorName(object.GetName())
}

// existingGroups returns the groups of the existing objects of a policy.
func (c *Controller) existingGroups(ctx context.Context, policy string) (groups []slack.Group, err error) {
	for _, backend := range slack.Backends() {
		var objects []unstructured.Unstructured
		for _, kind := range backend.Kinds {
			list, err := c.list(ctx, kind, client.MatchingLabels{slack.PlaceholderLabel: policy})
			if err != nil {
				return nil, err
			}
			objects = append(objects, list...)
		}
		existing, err := backend.Groups(objects)
		if err != nil {
			return nil, err
		}
		groups = append(groups, existing...)
	}
	return groups, nil
}
