package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// fieldOwner owns the fields that the controller writes.
const fieldOwner = client.FieldOwner("plimsoll-slack")

// kinds of the objects that backends want, in the order in which they are
// removed: what holds placeholders before what describes them.
var kinds = []schema.GroupVersionKind{
	slack.CapacityBufferVersion.WithKind("CapacityBuffer"),
	v1.SchemeGroupVersion.WithKind("PodTemplate"),
	appsv1.SchemeGroupVersion.WithKind("Deployment"),
}

// apply writes what a plan wants and is not there, templates first, and then
// removes what it does not want any more. Where the pool has no nodes, which may
// be a slip of the hand, what is held for the rate stays as it is; workloads do
// not depend on the pool.
func (c *Controller) apply(ctx context.Context, t *tracked, plan slack.Plan) error {
	policy := t.Policy()
	mirrors := slices.DeleteFunc(slices.Clone(plan.Groups), func(g slack.Group) bool { return g.Mirror == nil })
	waiting := t.empty && len(mirrors) < len(plan.Groups)
	if waiting {
		plan.Groups = mirrors
	}
	wanted, err := c.objects(policy, plan)
	if err != nil {
		return err
	}
	for _, object := range wanted {
		if err := c.applyOne(ctx, object); err != nil {
			return fmt.Errorf("applying %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	if waiting {
		return nil
	}
	return c.prune(ctx, policy.Name, wanted)
}

// objects returns what a plan wants of the policy's backend.
func (c *Controller) objects(policy *v1alpha1.ResourceSlack, plan slack.Plan) ([]*unstructured.Unstructured, error) {
	var typed []any
	var buffers []*unstructured.Unstructured
	if policy.Spec.Backend == v1alpha1.BackendDeployment {
		if policy.Spec.PriorityClassName == "" && len(plan.Groups) > 0 {
			typed = append(typed, slack.PriorityClass())
		}
		for _, deployment := range slack.Deployments(policy, plan, c.namespace) {
			typed = append(typed, deployment)
		}
	} else {
		templates, b := slack.Objects(policy, plan, c.namespace)
		for _, template := range templates {
			typed = append(typed, template)
		}
		buffers = b
	}
	var out []*unstructured.Unstructured
	for _, object := range typed {
		u, err := unstructuredOf(object)
		if err != nil {
			return nil, err
		}
		out = append(out, u)
	}
	return append(out, buffers...), nil
}

// unstructuredOf returns an object with the fields that are set.
func unstructuredOf(object any) (*unstructured.Unstructured, error) {
	raw, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(raw); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(u.Object, "status")
	prunedOfNil(u.Object)
	return u, nil
}

// prunedOfNil removes fields that are null, which an apply would claim.
func prunedOfNil(object map[string]any) {
	for name, value := range object {
		switch value := value.(type) {
		case nil:
			delete(object, name)
		case map[string]any:
			prunedOfNil(value)
		case []any:
			for _, item := range value {
				if m, ok := item.(map[string]any); ok {
					prunedOfNil(m)
				}
			}
		}
	}
}

// applyOne writes an object unless all its fields are there as wanted.
func (c *Controller) applyOne(ctx context.Context, wanted *unstructured.Unstructured) error {
	there := &unstructured.Unstructured{}
	there.SetGroupVersionKind(wanted.GroupVersionKind())
	err := c.client.Get(ctx, client.ObjectKeyFromObject(wanted), there)
	switch {
	case err == nil && contains(there.Object, wanted.Object):
		return nil
	case err == nil && wanted.GetNamespace() != "" && there.GetLabels()[slack.PlaceholderLabel] == "":
		return &foreignError{there.GetKind(), there.GetNamespace(), there.GetName()}
	case err != nil && !apierrors.IsNotFound(err):
		return err
	}
	c.metrics.wrote(wanted.GetKind(), "apply")
	return c.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(wanted), fieldOwner, client.ForceOwnership)
}

// foreignError is that somebody else has an object of the name that one of ours
// would have.
type foreignError struct{ kind, namespace, name string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s %s/%s is not of Plimsoll's making (it has no label %s) and is left alone: rename or remove it", e.kind, e.namespace, e.name, slack.PlaceholderLabel)
}

func isForeign(err error) bool {
	_, ok := errors.AsType[*foreignError](err)
	return ok
}

// contains reports whether all fields of wanted are in there with the same
// values.
func contains(there, wanted any) bool {
	switch wanted := wanted.(type) {
	case map[string]any:
		object, ok := there.(map[string]any)
		if !ok {
			return false
		}
		for name, value := range wanted {
			if !contains(object[name], value) {
				return false
			}
		}
		return true
	case []any:
		list, ok := there.([]any)
		if !ok || len(list) != len(wanted) {
			return false
		}
		for i := range wanted {
			if !contains(list[i], wanted[i]) {
				return false
			}
		}
		return true
	}
	return reflect.DeepEqual(there, wanted)
}

// prune removes the objects of a policy that are not wanted. Nothing is removed
// that could not be listed.
func (c *Controller) prune(ctx context.Context, policy string, wanted []*unstructured.Unstructured) error {
	for _, kind := range kinds {
		list, err := c.list(ctx, kind, policy)
		if meta.IsNoMatchError(err) {
			continue // there cannot be any
		}
		if err != nil {
			return err
		}
		for i := range list {
			object := &list[i]
			if slices.ContainsFunc(wanted, func(w *unstructured.Unstructured) bool {
				return w.GetKind() == object.GetKind() && w.GetNamespace() == object.GetNamespace() && w.GetName() == object.GetName()
			}) {
				continue
			}
			c.metrics.wrote(object.GetKind(), "delete")
			if err := c.client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("deleting %s %s: %w", object.GetKind(), object.GetName(), err)
			}
		}
	}
	return nil
}

// list returns the objects of a kind that a policy has, in all namespaces: those
// for workloads are beside them.
func (c *Controller) list(ctx context.Context, kind schema.GroupVersionKind, policy string) ([]unstructured.Unstructured, error) {
	list := listOf(kind)
	err := c.client.List(ctx, list, append(c.within(kind), client.MatchingLabels{slack.PlaceholderLabel: policy})...)
	return slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !c.isOurs(&o) }), err
}

// isOurs reports whether an object that is labelled as ours can be: in the
// controller's namespace, or, for a workload in its namespace, by its name.
func (c *Controller) isOurs(object *unstructured.Unstructured) bool {
	return object.GetNamespace() == c.namespace || slack.IsMirror(object.GetName())
}

// within returns where objects of a kind can be ours: deployments are in the
// controller's namespace only, also those for workloads.
func (c *Controller) within(kind schema.GroupVersionKind) []client.ListOption {
	if kind.Kind == "Deployment" {
		return []client.ListOption{client.InNamespace(c.namespace)}
	}
	return nil
}

// listOf returns an empty list of a kind. Such lists are read from the API
// server, and not from the cache.
func listOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// held returns the groups that the policy's buffers and templates stand for.
func (c *Controller) held(ctx context.Context, policy string) ([]slack.Group, error) {
	buffers, err := c.list(ctx, kinds[0], policy)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.SortFunc(buffers, func(a, b unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	var groups []slack.Group
	for i := range buffers {
		var template v1.PodTemplate
		err := c.client.Get(ctx, client.ObjectKeyFromObject(&buffers[i]), &template)
		if apierrors.IsNotFound(err) {
			continue // half of a group: made anew
		}
		if err != nil {
			return nil, err
		}
		replicas, _, err := unstructured.NestedInt64(buffers[i].Object, "spec", "replicas")
		if err != nil {
			return nil, err
		}
		if len(template.Template.Spec.Containers) == 0 {
			continue // none of ours
		}
		groups = append(groups, slack.Group{Name: buffers[i].GetName(), Requests: template.Template.Spec.Containers[0].Resources.Requests, Count: replicas})
	}
	return groups, nil
}
