package manifest

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/kubernetes/pkg/apis/core"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
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

// phrases are texts of the validation of Kubernetes in the words of other messages.
var phrases = strings.NewReplacer(
	"not a valid selector operator", "must be In, NotIn, Exists or DoesNotExist, or Gt or Lt of nodes", ", inclusive", "",
	"metadata.taints", "spec.taints", "less than or equal to ", "at most the ", "greater than zero", "at least 1",
	"Limit must be set for non overcommitable resources", "must have the same amount of extended resources as the requests",
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
		problems = podProblems(&obj.Spec, obj, "")
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
	return podProblems(&template.Spec, pod, path)
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
func podProblems(given *v1.PodSpec, pod *v1.Pod, path string) []string {
	var internal core.Pod
	if err := defaults.Convert_v1_Pod_To_core_Pod(pod, &internal, nil); err != nil {
		return []string{err.Error()}
	}
	internal.Namespace = orDefault(internal.Namespace)
	options := validationOptions
	options.ResourceIsPod = path == ""
	problems := problemTexts(path, append(validation.ValidatePodCreate(&internal, options), unmatched(pod.Spec.Affinity)...))
	for i := range given.Containers {
		c, at := &given.Containers[i], fmt.Sprintf("%sspec.containers[%d].resources.", path, i)
		problems = append(problems, memoryProblem(at+"limits", c.Resources.Limits)...)
		problems = append(problems, cpuProblem(at+"requests", c.Resources.Requests)...)
		if c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) != 0 { // not the default
			problems = append(problems, memoryProblem(at+"requests", c.Resources.Requests)...)
		}
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

// leastMemory is less than any container or node has.
const leastMemory = 4096

// memoryProblem returns the problem of an amount of memory that lacks its unit.
func memoryProblem(path string, amounts v1.ResourceList) []string {
	memory := amounts[v1.ResourceMemory]
	if memory.Sign() <= 0 || memory.Value() >= leastMemory || memory.MilliValue()%1000 != 0 { // another warning
		return nil
	}
	return []string{fmt.Sprintf("%s.memory: %s is in bytes; did you mean %[2]sMi or %[2]sGi?", path, memory.String())}
}

// cpuProblem returns the problem of an amount of CPU with a unit of memory.
func cpuProblem(path string, amounts v1.ResourceList) []string {
	cpu := amounts[v1.ResourceCPU]
	if cpu.Format != resource.BinarySI || cpu.Value() < 1024 {
		return nil
	}
	return []string{fmt.Sprintf("%s.cpu: %s are %s cores; did you mean %[2]s of memory, or 500m?", path, cpu.String(),
		format.Plain(float64(cpu.Value())))}
}

// nodeProblems returns the problems of a node.
func nodeProblems(node *v1.Node) []string {
	var internal core.Node
	if err := defaults.Convert_v1_Node_To_core_Node(node, &internal, nil); err != nil {
		return []string{err.Error()}
	}
	problems := problemTexts("", validation.ValidateNode(&internal))
	problems = append(problems, memoryProblem("status.allocatable", node.Status.Allocatable)...)
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, v1.ResourcePods} {
		capacity, isKnown := node.Status.Capacity[name]
		if allocatable := node.Status.Allocatable[name]; isKnown && allocatable.Cmp(capacity) > 0 {
			problems = append(problems, fmt.Sprintf("status.allocatable.%s: invalid value %s: must be at most the capacity, %s",
				name, allocatable.String(), capacity.String()))
		}
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
			texts = append(texts, phrases.Replace(path+problemText(err)))
		}
	}
	return texts
}

// problemText returns an error of validation as "field: invalid value X: must be Y". Values that are no scalars are left out.
func problemText(err *field.Error) string {
	value := err.BadValue
	if v := reflect.ValueOf(value); v.Kind() == reflect.Pointer && !v.IsNil() {
		value = v.Elem().Interface()
	}
	text := ""
	switch v := reflect.ValueOf(value); {
	case err.Type == field.ErrorTypeRequired || !v.IsValid():
	case v.Type() == reflect.TypeFor[resource.Quantity]():
		amount := value.(resource.Quantity)
		text = " " + amount.String()
	case v.Kind() == reflect.String:
		text = fmt.Sprintf(" %q", v.String())
	case v.CanInt(), v.CanUint(), v.CanFloat(), v.Kind() == reflect.Bool:
		text = fmt.Sprintf(" %v", value)
	}
	detail, _, _ := strings.Cut(err.Detail, " (e.g.")
	problem := "invalid value"
	switch err.Type {
	case field.ErrorTypeRequired:
		problem = "required"
		if strings.Contains(detail, "empty") {
			detail = ""
		}
	case field.ErrorTypeNotSupported:
		detail = "must be one of " + strings.ReplaceAll(strings.TrimPrefix(detail, "supported values: "), `"`, "")
	case field.ErrorTypeDuplicate:
		problem, detail = "found twice:", ""
	case field.ErrorTypeForbidden:
		problem = "not allowed"
	case field.ErrorTypeNotFound:
		problem, detail = "found no", ""
	default: // an invalid value
	}
	return strings.TrimSuffix(fmt.Sprintf("%s: %s%s: %s", err.Field, problem, text, detail), ": ")
}
