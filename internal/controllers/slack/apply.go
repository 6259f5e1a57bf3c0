package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/setup"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// fieldOwner is the owner of the fields that the controller writes.
const fieldOwner = client.FieldOwner("plimsoll-slack")

// namespaceOf returns the namespace of the objects of a backend, except virtual placeholders that mirror a
// workload. It is empty if the backend is not enabled.
func (c *Controller) namespaceOf(backend *slack.Backend) string {
	if backend.Virtual {
		return c.namespace
	}
	return c.podNamespace
}

// outcome is the result of writing a plan.
type outcome struct {
	// answers are the reports of an autoscaler about the existing buffers of the policy. Buffers that were
	// just written have no answer yet.
	answers []slack.Answer
	// held are the existing objects that remain. Objects that were just written have no status.
	held []unstructured.Unstructured
	// failures are the errors of single objects, and mirrorFailures those of objects that mirror workloads. The objects of other groups are
	// written.
	failures, mirrorFailures []error
	// unavailable reports whether the API server does not serve the kinds of the backend.
	unavailable bool
	// disabled reports whether the backend is not enabled. Nothing is then written or deleted.
	disabled bool
	// ignoresStrategy reports whether the installed version of the buffers has no field for spec.provisioningStrategy.
	ignoresStrategy bool
	// retryAfter is the time to the next attempt if nothing changes: retryPeriod if a failure may end without a change of an object,
	// batchPeriod if objects are left because other objects of their namespace took long. Otherwise it is 0.
	retryAfter time.Duration
}

// apply writes the objects of a plan that are missing or different, and then deletes the objects of the policy that are not in the plan:
// first in the namespace with the objects of the rate, then in the other namespaces. Groups are independent:
// an object that the API server refuses is a failure of the outcome, and the objects of other groups are written. If
// no node is in the pool, which is probably a selector typo, the existing objects of the rate remain; mirrors of
// workloads do not depend on the pool. It returns an error if the API server cannot be reached.
func (c *Controller) apply(ctx context.Context, policy *v1alpha1.ResourceSlack, plan slack.Plan) (outcome, error) {
	backend := slack.BackendOf(policy)
	namespace := c.namespaceOf(backend)
	if namespace == "" {
		return outcome{disabled: true}, nil
	}
	existing, err := c.existing(ctx, policy.Name)
	if err != nil {
		return outcome{}, err
	}
	if plan.NoNodes {
		plan.Groups = slices.DeleteFunc(slices.Clone(plan.Groups), func(g slack.Group) bool { return g.Mirror == nil })
	}
	desired, err := backend.Objects(policy, plan, namespace)
	if err != nil {
		return outcome{}, err
	}
	if !c.hasStrategy() {
		for _, object := range desired {
			removeStrategy(object)
		}
	}
	for _, object := range desired {
		setHash(object)
	}
	written, err := runWriters(ctx, c.newWriters(existing, desired, namespace, plan.NoNodes), namespace)
	written.answers = backend.Answers(written.held)
	written.ignoresStrategy = policy.Spec.ProvisioningStrategy != "" && backend.Virtual && !c.hasStrategy()
	return written, err
}

// hashAnnotation has a hash of all fields that the controller has last written. An object is written if it differs: a field that is no
// longer desired is then removed.
const hashAnnotation = "plimsoll.dev/placeholder-hash"

// setHash sets the annotation of a desired object of a policy. The PriorityClass belongs to no policy and gets no
// hash: the chart may have created it, and the controller then leaves it as it is.
func setHash(object *unstructured.Unstructured) {
	if object.GetNamespace() == "" {
		return
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations")
	hash := fnv.New64a()
	_ = json.NewEncoder(hash).Encode(object.Object)
	object.SetAnnotations(map[string]string{hashAnnotation: fmt.Sprintf("%016x", hash.Sum64())})
}

// existing returns the objects of a policy in all enabled backends, in the order in which they are deleted.
func (c *Controller) existing(ctx context.Context, policy string) (objects []unstructured.Unstructured, err error) {
	for _, backend := range slack.Backends() {
		if c.namespaceOf(backend) == "" {
			continue
		}
		for _, kind := range backend.Kinds {
			list, err := c.list(ctx, backend, kind, client.MatchingLabels{slack.PlaceholderLabel: policy})
			if err != nil {
				return nil, fmt.Errorf("listing objects of kind %s: %w", kind.Kind, err)
			}
			objects = append(objects, list...)
		}
	}
	return objects, nil
}

// errUnmanaged is returned if an object with the name of a desired object was not created by the
// controller.
var errUnmanaged = errors.New("is not managed by Plimsoll")

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

// list returns the objects of a backend and a kind that the controller manages, with labels, in all namespaces
// where they can be. It returns none if the API server does not serve the kind.
func (c *Controller) list(
	ctx context.Context, backend *slack.Backend, kind schema.GroupVersionKind, labels client.ListOption,
) ([]unstructured.Unstructured, error) {
	// Unstructured lists are read from the API server rather than the cache.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	options := []client.ListOption{labels}
	if !backend.Virtual {
		options = append(options, client.InNamespace(c.podNamespace))
	}
	err := c.client.List(ctx, list, options...)
	if resources.IsNotServed(err) {
		return nil, nil
	}
	return slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !c.isManaged(&o) }), err
}

// isManaged reports whether a labeled object can be an object of the controller: it is in a namespace of the
// controller or has the name of a group that mirrors a workload.
func (c *Controller) isManaged(object *unstructured.Unstructured) bool {
	return object.GetNamespace() == c.namespace || object.GetNamespace() == c.podNamespace || slack.IsMirrorName(object.GetName())
}

// deleteObjects deletes the objects of a deleted policy. The result states when to continue. Objects of a policy that is deleted while
// no controller runs are deleted by the garbage collector: the policy is their owner.
func (c *Controller) deleteObjects(ctx context.Context, policy string) (result reconcile.Result, err error) {
	if len(policy) > v1alpha1.MaxNameLength {
		return result, nil // the policy was invalid and never had objects
	}
	object := &unstructured.Unstructured{} // read from the API server rather than the cache
	object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	if gone, err := setup.IsGone(ctx, c.client, client.ObjectKey{Name: policy}, object); err != nil || !gone {
		return result, err
	}
	existing, err := c.existing(ctx, policy)
	if err != nil {
		return result, err
	}
	deleted, err := runWriters(ctx, c.newWriters(existing, nil, c.namespace, false), c.namespace)
	if err == nil {
		err = errors.Join(slices.Concat(deleted.failures, deleted.mirrorFailures)...)
	}
	if err != nil {
		return result, err
	}
	return reconcile.Result{RequeueAfter: deleted.retryAfter}, nil
}
