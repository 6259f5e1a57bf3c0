package slack

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Workload is a set of equal pods that is mirrored: placeholders have the same requests and scheduling constraints.
type Workload struct {
	// Kind is Deployment, ReplicaSet, StatefulSet or Job.
	Kind, Namespace, Name string
	// Slack is the value of annotation plimsoll.dev/slack: a number of placeholders or a percentage of Replicas.
	Slack string
	// Replicas is the desired number of pods, and Template their template.
	Replicas int64
	Template v1.PodTemplateSpec
	// NamespaceLabels are the labels of the namespace, by which policies select it. Nil stands for the label
	// kubernetes.io/metadata.name only, which every namespace has.
	NamespaceLabels map[string]string
	// VolumeClaimTemplates are the names of the volume claims that a StatefulSet creates for its pods.
	VolumeClaimTemplates []string
}

// WorkloadsOf returns the workloads of objects, see WorkloadOf.
func WorkloadsOf(objects []runtime.Object) (all []Workload) {
	for _, object := range objects {
		if w, ok := WorkloadOf(object); ok {
			all = append(all, w)
		}
	}
	return all
}

// WorkloadOf returns the workload of an object. It returns false if the object is not to be mirrored: it has another kind, no
// annotation, is finished, suspended or being deleted, or has the annotation of the Deployment that controls it.
func WorkloadOf(object runtime.Object) (w Workload, ok bool) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return w, false
	}
	if w.Slack, ok = meta.GetAnnotations()[v1alpha1.AnnotationSlack]; !ok || meta.GetDeletionTimestamp() != nil {
		return w, false
	}
	if owner := metav1.GetControllerOfNoCopy(meta); owner != nil && owner.Kind == "Deployment" {
		return w, false
	}
	w.Namespace, w.Name = meta.GetNamespace(), meta.GetName()
	switch object := object.(type) {
	case *appsv1.Deployment:
		w.setPods("Deployment", numberOf(object.Spec.Replicas), object.Spec.Template)
	case *appsv1.ReplicaSet:
		w.setPods("ReplicaSet", numberOf(object.Spec.Replicas), object.Spec.Template)
	case *appsv1.StatefulSet:
		w.setPods("StatefulSet", numberOf(object.Spec.Replicas), object.Spec.Template)
		for i := range object.Spec.VolumeClaimTemplates {
			w.VolumeClaimTemplates = append(w.VolumeClaimTemplates, object.Spec.VolumeClaimTemplates[i].Name)
		}
	case *batchv1.Job:
		w.setPods("Job", podsOfJob(&object.Spec), object.Spec.Template)
		return w, !isFinished(object.Status.Conditions) && !ptr.Deref(object.Spec.Suspend, false)
	}
	return w, w.Kind != ""
}

// setPods sets the kind and the pods of a workload.
func (w *Workload) setPods(kind string, replicas int64, template v1.PodTemplateSpec) {
	w.Kind, w.Replicas, w.Template = kind, replicas, template
}

// numberOf returns a number of pods; the default is 1.
func numberOf(n *int32) int64 { return int64(max(0, ptr.Deref(n, 1))) }

// podsOfJob returns the number of pods of a Job that run at the same time.
func podsOfJob(spec *batchv1.JobSpec) int64 {
	return min(numberOf(spec.Parallelism), int64(ptr.Deref(spec.Completions, math.MaxInt32)))
}

// isFinished reports whether the conditions of a Job state that it is complete or failed.
func isFinished(conditions []batchv1.JobCondition) bool {
	return slices.ContainsFunc(conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue
	})
}

// String returns the workload in the form "Deployment namespace/name".
func (w Workload) String() string { return fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name) }

// compare orders workloads by namespace, kind and name.
func (w Workload) compare(other Workload) int {
	return cmp.Or(strings.Compare(w.Namespace, other.Namespace), strings.Compare(w.Kind, other.Kind), strings.Compare(w.Name, other.Name))
}

// countPattern matches an annotation with a number of placeholders.
var countPattern = regexp.MustCompile(`^[0-9]{1,4}$`)

// Placeholders returns the number of placeholders that the workload requests. A percentage of its replicas is rounded up. It returns
// an error if the annotation is invalid, or more than 200%, which is probably a mistake: so many can be requested as a number.
func (w Workload) Placeholders() (int64, error) {
	if countPattern.MatchString(w.Slack) {
		return strconv.ParseInt(w.Slack, 10, 64)
	}
	if strings.HasSuffix(w.Slack, "%") {
		if rate, err := v1alpha1.ParseRate(w.Slack); err == nil && rate <= v1alpha1.MaxRate {
			return resources.MulDivUp(w.Replicas, rate, resources.Millionth), nil
		}
	}
	return 0, fmt.Errorf("%s: annotation %s: invalid value %q: must be a number of placeholders up to 9999 "+
		"or a percentage of the replicas up to 200%%, such as 2 or 20%%", w, v1alpha1.AnnotationSlack, w.Slack)
}

// GoverningPolicy returns the index of the policy that holds the placeholders of a workload, -1 if there
// are no policies. Policies must be sorted by name. Policies that select the workload's namespace are
// candidates. It returns the candidate with the most labels in its node selector, if the node selector of
// the pods includes them all, otherwise the first candidate. Without candidates, it returns the first
// policy, which reports the workload.
func GoverningPolicy(policies []*v1alpha1.ResourceSlack, w Workload) int {
	best, most := -1, -1
	for i, policy := range policies {
		if !w.isSelected(namespaceSelectorOf(policy)) {
			continue
		}
		if best < 0 {
			best = i
		}
		selector := policy.Spec.Pool.NodeSelector
		if includes(w.Template.Spec.NodeSelector, selector) && len(selector) > most {
			best, most = i, len(selector)
		}
	}
	return max(best, min(0, len(policies)-1))
}

// namespaceSelectorOf returns the selector of the namespaces whose workloads a policy mirrors. An invalid
// selector selects none.
func namespaceSelectorOf(policy *v1alpha1.ResourceSlack) labels.Selector {
	selector, err := metav1.LabelSelectorAsSelector(policy.Spec.Mirrors.NamespaceSelector)
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// isSelected reports whether a selector selects the namespace of the workload.
func (w *Workload) isSelected(selector labels.Selector) bool {
	set := labels.Set(w.NamespaceLabels)
	if set == nil {
		set = labels.Set{v1.LabelMetadataName: w.Namespace}
	}
	return selector.Matches(set)
}

// mirrorName matches the names of groups that mirror workloads.
var mirrorName = regexp.MustCompile(`-(deployment|replicaset|statefulset|job)-[0-9a-f]{8}$`)

// IsMirrorName reports whether a name belongs to a group that mirrors a workload.
func IsMirrorName(group string) bool { return mirrorName.MatchString(group) }

// groupName returns the name of the placeholders. It is unique in the cluster and a valid label value of at most 63 characters.
func (w Workload) groupName() string {
	hash, name, kind := fnv.New32a(), w.Name, strings.ToLower(w.Kind)
	fmt.Fprintf(hash, "%s/%s/%s", w.Kind, w.Namespace, w.Name)
	name = strings.TrimRight(name[:min(len(name), 40, 53-len(kind))], "-.")
	return fmt.Sprintf("%s-%s-%08x", strings.ReplaceAll(name, ".", "-"), kind, hash.Sum32())
}
