package slack

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// Backend describes how the placeholders of a policy are held in a cluster.
type Backend struct {
	// Name is the value of spec.backend.
	Name v1alpha1.Backend
	// Virtual reports whether placeholders exist only inside the autoscaler, which must support
	// the objects. Other backends create pods.
	Virtual bool
	// Kinds are the kinds of the objects of a policy in the order in which they are deleted. Virtual placeholders that mirror a
	// workload are in the workload's namespace, all other placeholders in the controller's namespace.
	Kinds []schema.GroupVersionKind
	// UnavailableReason and UnavailableMessage are reported in condition Ready if the API server
	// does not serve Kinds.
	UnavailableReason, UnavailableMessage string

	objects func(policy *v1alpha1.ResourceSlack, plan Plan, namespace string) []any
}

// Backends returns all backends.
func Backends() []*Backend { return []*Backend{capacityBufferBackend, deploymentBackend} }

// BackendOf returns the backend of a policy. An empty or unknown name selects CapacityBuffer.
func BackendOf(policy *v1alpha1.ResourceSlack) *Backend {
	for _, backend := range Backends() {
		if backend.Name == policy.Spec.Backend {
			return backend
		}
	}
	return capacityBufferBackend
}

// Objects returns the objects that hold the placeholders of a plan, in the order in which they
// must be written. Objects are in the given namespace, except that virtual placeholders that
// mirror a workload are in the workload's namespace. Equal plans give equal objects.
func (b *Backend) Objects(policy *v1alpha1.ResourceSlack, plan Plan, namespace string) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	for _, object := range b.objects(policy, plan, namespace) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return nil, fmt.Errorf("backend %s: %w", b.Name, err)
		}
		delete(content, "status")
		out = append(out, &unstructured.Unstructured{Object: content})
	}
	return out, nil
}
