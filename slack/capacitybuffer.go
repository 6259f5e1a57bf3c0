package slack

import (
	"fmt"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// CapacityBufferVersion is the API of autoscalers that hold placeholders.
var CapacityBufferVersion = schema.GroupVersion{Group: "autoscaling.x-k8s.io", Version: "v1beta1"}

// CapacityBufferKind is the kind of the objects that tell an autoscaler to hold placeholders.
var CapacityBufferKind = CapacityBufferVersion.WithKind("CapacityBuffer")

// StrategyField is the field of the spec of a CapacityBuffer with its provisioning strategy. Not all versions of
// the API have it.
const StrategyField = "provisioningStrategy"

// capacityBufferBackend holds placeholders inside the autoscaler. Each group is a CapacityBuffer
// and the PodTemplate that it refers to.
var capacityBufferBackend = &Backend{
	Name:    v1alpha1.BackendCapacityBuffer,
	Virtual: true,
	Kinds: []schema.GroupVersionKind{
		CapacityBufferKind,
		v1.SchemeGroupVersion.WithKind("PodTemplate"),
	},
	UnavailableReason: "CapacityBufferMissing",
	UnavailableMessage: fmt.Sprintf("the API server does not serve %s of %s: enable capacity buffers in the autoscaler, or set backend: %s",
		CapacityBufferKind.Kind, CapacityBufferVersion, v1alpha1.BackendDeployment),
	objects: func(policy *v1alpha1.ResourceSlack, plan Plan, namespace string) (out []any) {
		for _, group := range plan.Groups {
			template := &v1.PodTemplate{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "PodTemplate"},
				ObjectMeta: objectMeta(policy, group, group.namespaceOr(namespace)),
				Template:   podTemplate(policy, group),
			}
			buffer := &capacityBuffer{ObjectMeta: template.ObjectMeta}
			buffer.APIVersion, buffer.Kind = CapacityBufferKind.ToAPIVersionAndKind()
			buffer.Spec.PodTemplateRef.Name = group.Name
			buffer.Spec.Replicas = min(group.Count, math.MaxInt32)
			buffer.Spec.ProvisioningStrategy = policy.Spec.ProvisioningStrategy
			out = append(out, template, buffer)
		}
		return out
	},
}

// capacityBuffer has the fields of a CapacityBuffer that are read or written.
type capacityBuffer struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodTemplateRef v1.LocalObjectReference `json:"podTemplateRef"`
		// Replicas is honored by all autoscalers; they differ in the strategies that they support.
		Replicas             int64  `json:"replicas"`
		ProvisioningStrategy string `json:"provisioningStrategy,omitempty"`
	} `json:"spec"`
	Status struct {
		Replicas   *int64             `json:"replicas"`
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// HeldGroups returns the groups of placeholders that existing buffers and Deployments hold, sorted by name. A buffer without
// its template is skipped: it is written again.
func HeldGroups(objects []unstructured.Unstructured) ([]Group, error) {
	requests := map[string]v1.ResourceList{}
	for i := range objects {
		content := objects[i].Object
		switch objects[i].GetKind() {
		case "Deployment":
			content, _ = content["spec"].(map[string]any)
		case "PodTemplate":
		default:
			continue
		}
		var template v1.PodTemplate
		if resources.FromUnstructured(content, &template) != nil {
			continue // another client changed it: it is written again
		}
		if containers := template.Template.Spec.Containers; len(containers) > 0 {
			requests[resources.Name(&objects[i])] = containers[0].Resources.Requests
		}
	}
	var groups []Group
	for i := range objects {
		holder := &objects[i]
		list, hasTemplate := requests[resources.Name(holder)]
		if holder.GetKind() == "PodTemplate" || !hasTemplate {
			continue
		}
		replicas, _, err := unstructured.NestedInt64(holder.Object, "spec", "replicas")
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", holder.GetKind(), resources.Name(holder), err)
		}
		groups = append(groups, Group{Name: holder.GetName(), Requests: list, Count: replicas})
	}
	slices.SortFunc(groups, func(a, b Group) int { return strings.Compare(a.Name, b.Name) })
	return groups, nil
}
