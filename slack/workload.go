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
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Workload is a set of equal groups of pods that is mirrored: placeholders with the same requests and
// scheduling constraints are held for whole groups.
type Workload struct {
	// Kind is Deployment, ReplicaSet, StatefulSet, Job, JobSet, LeaderWorkerSet or PodGroup.
	Kind, Namespace, Name string
	// Slack is the value of annotation plimsoll.dev/slack: a number of groups or a percentage of Replicas.
	Slack string
	// Replicas is the desired number of groups.
	Replicas int64
	// Shapes are the pods of one group. A group of a Deployment, ReplicaSet, StatefulSet or Job is one pod.
	Shapes []Shape
	// NamespaceLabels are the labels of the namespace, by which policies select it. Nil stands for the label
	// kubernetes.io/metadata.name only, which every namespace has.
	NamespaceLabels map[string]string
	// VolumeClaimTemplates are the names of the volume claims that a StatefulSet creates for its pods.
	VolumeClaimTemplates []string

	// podGroup is nil for other kinds than PodGroup.
	podGroup *unstructured.Unstructured
	// invalid is the error of a workload that cannot be mirrored.
	invalid error
}

// Shape is a number of equal pods of a group.
type Shape struct {
	// Name is a DNS label that is unique in the group, such as "leader". The only shape of a group may have none.
	Name string
	// Pods is the number of pods in one group, at least 1.
	Pods int64
	// Template is the template of the pods.
	Template v1.PodTemplateSpec
}

// pods returns the number of pods in one group.
func (w *Workload) pods() (sum int64) {
	for i := range w.Shapes {
		sum = resources.Add(sum, w.Shapes[i].Pods)
	}
	return sum
}

// WorkloadOf returns the workload of an object, of a PodGroup without its pods, see WorkloadsOf. It returns false if the object is
// not to be mirrored: it has another kind, no annotation, is finished, suspended or being deleted, or has the annotation of the
// object that controls it, such as a Deployment.
func WorkloadOf(object runtime.Object) (w Workload, ok bool) {
	meta, ok := object.(metav1.Object)
	if !ok {
		return w, false
	}
	if w.Slack, ok = meta.GetAnnotations()[v1alpha1.AnnotationSlack]; !ok || meta.GetDeletionTimestamp() != nil {
		return w, false
	}
	if owner := metav1.GetControllerOfNoCopy(meta); owner != nil && (owner.Kind == "Deployment" || owner.Kind == leaderWorkerSetKind.Kind) {
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
		w.setClaims(object.Spec.VolumeClaimTemplates)
	case *batchv1.Job:
		w.setPods("Job", podsOfJob(&object.Spec), object.Spec.Template)
		return w, !isFinished(object.Status.Conditions) && !ptr.Deref(object.Spec.Suspend, false)
	case *unstructured.Unstructured:
		return w, w.setGroups(object)
	}
	return w, w.Kind != ""
}

// setPods sets the kind and the pods of a workload with groups of one pod.
func (w *Workload) setPods(kind string, replicas int64, template v1.PodTemplateSpec) {
	w.Kind, w.Replicas, w.Shapes = kind, replicas, []Shape{{Pods: 1, Template: template}}
}

// setClaims sets the names of the volume claims that are created for the pods.
func (w *Workload) setClaims(claims []v1.PersistentVolumeClaim) {
	for i := range claims {
		w.VolumeClaimTemplates = append(w.VolumeClaimTemplates, claims[i].Name)
	}
}

// numberOf returns a number of pods, jobs or groups; the default is 1.
func numberOf(n *int32) int64 { return int64(max(0, ptr.Deref(n, 1))) }

// podsOfJob returns the number of pods of a Job that run at the same time.
func podsOfJob(spec *batchv1.JobSpec) int64 {
	return min(numberOf(spec.Parallelism), int64(ptr.Deref(spec.Completions, math.MaxInt32)))
}

// isFinished reports whether the conditions of a Job or JobSet state that it is complete or failed.
func isFinished(conditions []batchv1.JobCondition) bool {
	return slices.ContainsFunc(conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == jobSetCompleted || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue
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

// Groups returns the number of groups for which the workload requests placeholders. A percentage of its
// replicas is rounded up. It returns an error if the workload or its annotation is invalid, or more than 200%, which is
// probably a mistake: such a number of groups can be requested as a number.
func (w Workload) Groups() (int64, error) {
	if w.invalid != nil {
		return 0, fmt.Errorf("%s: %w", w, w.invalid)
	}
	if countPattern.MatchString(w.Slack) {
		return strconv.ParseInt(w.Slack, 10, 64)
	}
	if strings.HasSuffix(w.Slack, "%") {
		if rate, err := v1alpha1.ParseRate(w.Slack); err == nil && rate <= v1alpha1.HighRate {
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
		selector, included := policy.Spec.Pool.NodeSelector, true
		for j := range w.Shapes {
			included = included && includes(w.Shapes[j].Template.Spec.NodeSelector, selector)
		}
		if included && len(selector) > most {
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
var mirrorName = regexp.MustCompile(`-(deployment|replicaset|statefulset|job|jobset|leaderworkerset|podgroup)-[0-9a-f]{8}$`)

// IsMirrorName reports whether a name belongs to a group that mirrors a workload.
func IsMirrorName(group string) bool { return mirrorName.MatchString(group) }

// groupName returns the name of the placeholders of a shape, by its index. It is unique in the cluster and a valid label
// value of at most 63 characters.
func (w Workload) groupName(shape int) string {
	hash, name, kind := fnv.New32a(), w.Name, strings.ToLower(w.Kind)
	fmt.Fprintf(hash, "%s/%s/%s", w.Kind, w.Namespace, w.Name)
	if w.Shapes[shape].Name != "" {
		name += "-" + w.Shapes[shape].Name
		hash.Write([]byte("/" + w.Shapes[shape].Name))
	}
	name = strings.TrimRight(name[:min(len(name), 40, 53-len(kind))], "-.")
	return fmt.Sprintf("%s-%s-%08x", strings.ReplaceAll(name, ".", "-"), kind, hash.Sum32())
}
