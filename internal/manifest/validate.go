package manifest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	policydefaults "k8s.io/kubernetes/pkg/apis/policy/v1"
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
	"k8s.io/kubernetes/pkg/apis/storage"
	storagedefaults "k8s.io/kubernetes/pkg/apis/storage/v1"
	storagevalidation "k8s.io/kubernetes/pkg/apis/storage/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// validationOptions accept what any supported version of Kubernetes accepts.
var validationOptions = validation.PodValidationOptions{
	AllowInvalidPodDeletionCost: true, AllowNonLocalProjectedTokenPath: true, AllowRelaxedEnvironmentVariableValidation: true,
	PodLevelResourcesEnabled: true, InPlacePodLevelResourcesVerticalScalingEnabled: true, AllowSidecarResizePolicy: true,
	InPlacePodVerticalScalingMemoryBackedVolumesEnabled: true, AllowMatchLabelKeysInPodTopologySpread: true,
	OldPodViolatesMatchLabelKeysValidation: true, OldPodViolatesLegacyMatchLabelKeysValidation: true, AllowEnvFilesValidation: true,
	AllowContainerRestartPolicyRules: true, AllowExistingRestartContainerForNonSidecarInitContainer: true,
	AllowUserNamespacesWithVolumeDevices: true, AllowTaintTolerationComparisonOperators: true,
	AllowUserNamespacesHostNetworkSupport: true, AllowRestartAllContainers: true, AllowEmptyImageVolumeReference: true,
	AllowSysAdminWhenPrivilegeEscalationFalse: true, AllowNamespacedSysctlsForHostNetAndHostIPC: true,
}

// lacking matches the fields that manifests often lack, and that only the API server and admission plugins set or require.
var lacking = regexp.MustCompile(
	`\.image$|^status\.conditions|\.reason$|\.volumeMounts\[\d+\]\.name$|\.ephemeralContainers|serviceAccount|nodeSwapStatus|declaredFeatures`,
)

// maxValidated bounds the time of validation. Nobody writes more objects by hand, and an API server has validated others.
const maxValidated = 20_000

// validate adds warnings about the fields of an object that the API server would refuse.
func (r *clusterReader) validate(where string, head *header, obj object) {
	if len(r.seen) > maxValidated {
		return
	}
	var problems []string
	switch obj := obj.(type) {
	case *v1.Node:
		problems = nodeProblems(obj)
	case *v1.Pod:
		problems = podProblems(obj, "")
	case *policyv1.PodDisruptionBudget:
		var internal policy.PodDisruptionBudget
		_ = policydefaults.Convert_v1_PodDisruptionBudget_To_policy_PodDisruptionBudget(obj, &internal, nil) // of equal fields
		options := policyvalidation.PodDisruptionBudgetValidationOptions{AllowInvalidLabelValueInSelector: true}
		problems = problemTexts("", policyvalidation.ValidatePodDisruptionBudget(&internal, options))
	case *storagev1.StorageClass:
		var internal storage.StorageClass
		_ = storagedefaults.Convert_v1_StorageClass_To_storage_StorageClass(obj, &internal, nil) // of equal fields
		problems = problemTexts("", storagevalidation.ValidateStorageClass(&internal))
	default:
		if template, given := templateOf(obj); template != nil {
			problems = TemplateProblems(template, "spec.template.")
			selector, err := metav1.LabelSelectorAsSelector(given)
			if err == nil && given != nil && !selector.Matches(labels.Set(template.Labels)) {
				problems = append(
					problems,
					fmt.Sprintf("spec.template.metadata.labels: must have the labels of the selector, %s", selector),
				)
			}
		}
	}
	for _, problem := range problems {
		r.warn("%s: %s: %s", where, head, problem)
	}
}

// TemplateProblems returns what the API server would refuse in a template of pods. path is the place of the template, such as
// "spec.template.", empty for the object itself.
func TemplateProblems(template *v1.PodTemplateSpec, path string) []string {
	pod := &v1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	SetPodDefaults(pod)
	return podProblems(pod, path)
}

// templateOf returns the template and the selector of the pods of a workload, nil for other objects and for selectors that an API server
// sets.
func templateOf(obj object) (*v1.PodTemplateSpec, *metav1.LabelSelector) {
	switch obj := obj.(type) {
	case *appsv1.Deployment:
		return &obj.Spec.Template, obj.Spec.Selector
	case *appsv1.ReplicaSet:
		return &obj.Spec.Template, obj.Spec.Selector
	case *appsv1.StatefulSet:
		return &obj.Spec.Template, obj.Spec.Selector
	case *appsv1.DaemonSet:
		return &obj.Spec.Template, obj.Spec.Selector
	case *batchv1.Job:
		return &obj.Spec.Template, nil
	}
	return nil, nil
}

// podProblems returns the problems of a pod that has its defaults. path is the place of a template.
func podProblems(pod *v1.Pod, path string) []string {
	var internal core.Pod
	if err := defaults.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return []string{err.Error()}
	}
	internal.Namespace = orDefault(internal.Namespace)
	options := validationOptions
	options.ResourceIsPod = path == ""
	problems := problemTexts(path, append(validation.ValidatePodCreate(&internal, options), unmatched(pod.Spec.Affinity)...))
	for _, warning := range podutil.GetWarningsForPod(context.Background(), &internal, nil) {
		problems = append(problems, path+warning)
	}
	return problems
}

// unmatched returns the errors of a node affinity that an API server accepts, and kube-scheduler matches with no node, such as Gt 64Gi.
func unmatched(affinity *v1.Affinity) (errs field.ErrorList) {
	if affinity == nil || affinity.NodeAffinity == nil {
		return nil
	}
	collect := func(_ any, err error) {
		if all, ok := errors.AsType[utilerrors.Aggregate](err); ok {
			for _, problem := range utilerrors.Flatten(all).Errors() {
				if problem, ok := errors.AsType[*field.Error](problem); ok {
					errs = append(errs, problem)
				}
			}
		}
	}
	path := field.NewPath("spec", "affinity", "nodeAffinity")
	if required := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		collect(nodeaffinity.NewNodeSelector(required, field.WithPath(path.Child("requiredDuringSchedulingIgnoredDuringExecution"))))
	}
	collect(nodeaffinity.NewPreferredSchedulingTerms(affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution,
		field.WithPath(path.Child("preferredDuringSchedulingIgnoredDuringExecution"))))
	return errs
}

// nodeProblems returns the problems of a node.
func nodeProblems(node *v1.Node) []string {
	var internal core.Node
	if err := defaults.Convert_v1_Node_To_core_Node(node, &internal, nil); err != nil {
		return []string{err.Error()}
	}
	problems := problemTexts("", validation.ValidateNode(&internal))
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods} {
		capacity, isKnown := node.Status.Capacity[name]
		if allocatable := node.Status.Allocatable[name]; isKnown && allocatable.Cmp(capacity) > 0 {
			problems = append(problems, fmt.Sprintf("status.allocatable.%s: invalid value %s: must be at most the capacity, %s",
				name, allocatable.String(), capacity.String()))
		}
	}
	if memory, given := node.Status.Allocatable[v1.ResourceMemory]; given && memory.Value() < 1<<20 {
		problems = append(problems, fmt.Sprintf("status.allocatable.memory: found %s: must be at least 1Mi, such as 32Gi", memory.String()))
	}
	return problems
}

// problemTexts returns errors of validation as texts, one for each field, without those about fields that manifests lack.
func problemTexts(path string, errs field.ErrorList) (texts []string) {
	for i, err := range errs {
		isName := strings.HasPrefix(err.Field, "metadata") && err.Type == field.ErrorTypeRequired
		isKnown := slices.ContainsFunc(errs[:i], func(e *field.Error) bool {
			return e.Field == err.Field || strings.HasPrefix(err.Field, e.Field+"[")
		})
		if !isName && !isKnown && !lacking.MatchString(err.Field) {
			texts = append(texts, path+err.Error())
		}
	}
	return texts
}

// CheckNames returns an error if the name, the namespace or a label of an object is none of Kubernetes. It removes owners whose kind or
// name is none: API servers accept them, although no object can have it.
func CheckNames(object metav1.Object) error {
	object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return len(apivalidation.NameIsDNSSubdomain(owner.Name, false))+len(utilvalidation.IsDNS1035Label(strings.ToLower(owner.Kind))) > 0
	}))
	meta := metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: object.GetName(), Labels: object.GetLabels()}
	path, isNamespaced := field.NewPath("metadata"), meta.Namespace != ""
	for _, err := range apivalidation.ValidateObjectMeta(&meta, isNamespaced, apivalidation.NameIsDNSSubdomain, path) {
		return fmt.Errorf("%.300s", err.Error())
	}
	return nil
}

// CheckNode returns an error if an amount of a node is negative or does not fit in 64 bits: kube-scheduler would compute
// with another amount. The error names the field.
func CheckNode(node *v1.Node) error {
	return cmp.Or(checkAmounts("status.capacity", node.Status.Capacity), checkAmounts("status.allocatable", node.Status.Allocatable))
}

// CheckPod returns an error as CheckNode does, for the requests, limits and overhead of a pod.
func CheckPod(pod *v1.Pod) error {
	err := checkAmounts("spec.overhead", pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		err = cmp.Or(err, checkRequirements("spec.resources", pod.Spec.Resources))
	}
	for i := range pod.Spec.InitContainers {
		err = cmp.Or(err, checkRequirements(fmt.Sprintf("spec.initContainers[%d].resources", i), &pod.Spec.InitContainers[i].Resources))
	}
	for i := range pod.Spec.Containers {
		err = cmp.Or(err, checkRequirements(fmt.Sprintf("spec.containers[%d].resources", i), &pod.Spec.Containers[i].Resources))
	}
	return err
}

// checkRequirements checks the requests and limits of a container or of a pod. Names that the API server refuses are errors, such as 5 in
// "cpu: 0,5".
func checkRequirements(field string, resources *v1.ResourceRequirements) error {
	for _, amounts := range []v1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if !strings.Contains(string(name), "/") && !helper.IsStandardContainerResourceName(core.ResourceName(name)) {
				return fmt.Errorf("%s: unknown resource %q: must be cpu, memory, ephemeral-storage, hugepages-SIZE, or have a domain "+
					"such as nvidia.com/gpu", field, name)
			}
		}
	}
	return cmp.Or(checkAmounts(field+".requests", resources.Requests), checkAmounts(field+".limits", resources.Limits))
}

// checkAmounts checks the amounts in a field.
func checkAmounts(field string, amounts v1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		if amount.Sign() < 0 || amount.CmpInt64(math.MaxInt64) > 0 {
			return fmt.Errorf(
				"%s: invalid value %q: must be at least 0, and below 8Ei",
				resources.ChildPath(field, string(name)),
				amount.String(),
			)
		}
	}
	return nil
}
