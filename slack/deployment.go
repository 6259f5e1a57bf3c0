package slack

import (
	"cmp"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
)

// groupLabel selects the pods of one group of placeholders. Its value is the group's name.
const groupLabel = "plimsoll.dev/placeholder-group"

// podGroupLabel is the label of pods with the name of their PodGroup of the coscheduling plugin.
const podGroupLabel = "scheduling.x-k8s.io/pod-group"

// PriorityClassName is the name of the PriorityClass that the controller creates for policies
// with backend Deployment that name none.
const PriorityClassName = "plimsoll-placeholder"

// The right to create Deployments reaches every Secret and service account of the namespace. It is therefore
// granted in a namespace for placeholders only, which is named when the backend is enabled.
//
// +kubebuilder:rbac:groups=apps,namespace=plimsoll-placeholders,resources=deployments,verbs=create;patch;delete
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,resourceNames=plimsoll-placeholder,verbs=get;create;patch

// deploymentBackend runs placeholders as pods that any other pod preempts, for autoscalers without
// capacity buffers.
//
// There is a Deployment for each group of a plan, all in the given namespace.
// Placeholders that mirror a workload are not in the workload's namespace, where Services would
// send them requests. Affinity terms about the workload's namespace therefore name both
// namespaces; topology spread constraints count placeholders only. The priority is not the
// workload's.
var deploymentBackend = &Backend{
	Name:  v1alpha1.BackendDeployment,
	Kinds: []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("Deployment")},
	objects: func(policy *v1alpha1.ResourceSlack, plan Plan, namespace string) (out []any) {
		if policy.Spec.PriorityClassName == "" && len(plan.Groups) > 0 {
			out = append(out, PriorityClass())
		}
		for _, group := range plan.Groups {
			pod := podTemplate(policy, group)
			if group.Mirror != nil {
				addNamespace(pod.Spec.Affinity, group.Mirror.Namespace, namespace)
				delete(pod.Labels, podGroupLabel) // the coscheduling plugin refuses pods whose PodGroup does not exist
			}
			pod.Labels[groupLabel] = group.Name
			pod.Spec.PriorityClassName = cmp.Or(policy.Spec.PriorityClassName, PriorityClassName)
			out = append(out, &appsv1.Deployment{
				TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"}, ObjectMeta: objectMeta(policy, group, namespace),
				Spec: appsv1.DeploymentSpec{
					Replicas: new(int32(min(group.Count, math.MaxInt32))),
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{groupLabel: group.Name}},
					Template: pod,
					// A placeholder stops after its replacement runs. A surge of one adds at most one node.
					Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
						MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
					}},
				},
			})
		}
		return out
	},
}

// PriorityClass returns the PriorityClass PriorityClassName. Its pods can be preempted by all other pods
// and preempt none. -10 is the lowest priority for which Cluster Autoscaler adds nodes.
func PriorityClass() *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{
		TypeMeta:         metav1.TypeMeta{APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass"},
		ObjectMeta:       metav1.ObjectMeta{Name: PriorityClassName},
		Value:            -10,
		Description:      "Placeholders of resource slack: any other pod preempts them.",
		PreemptionPolicy: new(v1.PreemptNever),
	}
}

// addNamespace adds a namespace to the pod affinity terms that include the workload's namespace.
func addNamespace(affinity *v1.Affinity, workload, added string) {
	extend := func(term *v1.PodAffinityTerm) {
		if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
			term.Namespaces = []string{workload}
		}
		if slices.Contains(term.Namespaces, workload) && !slices.Contains(term.Namespaces, added) {
			term.Namespaces = append(term.Namespaces, added)
		}
	}
	var kinds []v1.PodAffinity
	if affinity != nil && affinity.PodAffinity != nil {
		kinds = append(kinds, *affinity.PodAffinity)
	}
	if affinity != nil && affinity.PodAntiAffinity != nil {
		kinds = append(kinds, v1.PodAffinity(*affinity.PodAntiAffinity))
	}
	for _, kind := range kinds {
		for i := range kind.RequiredDuringSchedulingIgnoredDuringExecution {
			extend(&kind.RequiredDuringSchedulingIgnoredDuringExecution[i])
		}
		for i := range kind.PreferredDuringSchedulingIgnoredDuringExecution {
			extend(&kind.PreferredDuringSchedulingIgnoredDuringExecution[i].PodAffinityTerm)
		}
	}
}
