package slack

import (
	"cmp"
	"fmt"
	"hash/fnv"
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

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Workload is a set of equal pods that is mirrored: placeholders with the same requests and
// scheduling constraints are held for it.
type Workload struct {
	// Kind is Deployment, ReplicaSet, StatefulSet or Job.
	Kind, Namespace, Name string
	// Slack is the value of annotation plimsoll.dev/slack: a number of placeholders or a percentage of
	// Replicas.
	Slack string
	// Replicas is the desired number of pods.
	Replicas int64
	// Template is the template of the pods.
	Template v1.PodTemplateSpec
	// NamespaceLabels are the labels of the namespace, by which policies select it. Nil stands for the label
	// kubernetes.io/metadata.name only, which every namespace has.
	NamespaceLabels map[string]string
	// VolumeClaimTemplates are the names of the volume claims that a StatefulSet creates for its pods.
	VolumeClaimTemplates []string
}

// WorkloadOf returns the workload of an object. It returns false if the object is not to be mirrored:
// it has another kind, no annotation, is finished, suspended or being deleted, or has the annotation of the
// Deployment that controls it.
func WorkloadOf(object runtime.Object) (_ Workload, ok bool) {
	w := Workload{}
	var meta *metav1.ObjectMeta
	replicas := new(int32(1))
	switch object := object.(type) {
	case *appsv1.Deployment:
		w.Kind, meta, w.Template, replicas = "Deployment", &object.ObjectMeta, object.Spec.Template, cmp.Or(object.Spec.Replicas, replicas)
	case *appsv1.ReplicaSet:
		w.Kind, meta, w.Template, replicas = "ReplicaSet", &object.ObjectMeta, object.Spec.Template, cmp.Or(object.Spec.Replicas, replicas)
	case *appsv1.StatefulSet:
		w.Kind, meta, w.Template, replicas = "StatefulSet", &object.ObjectMeta, object.Spec.Template, cmp.Or(object.Spec.Replicas, replicas)
		for i := range object.Spec.VolumeClaimTemplates {
			w.VolumeClaimTemplates = append(w.VolumeClaimTemplates, object.Spec.VolumeClaimTemplates[i].Name)
		}
	case *batchv1.Job:
		if isFinished(object) || object.Spec.Suspend != nil && *object.Spec.Suspend {
			return w, false
		}
		w.Kind, meta, w.Template, replicas = "Job", &object.ObjectMeta, object.Spec.Template, cmp.Or(object.Spec.Parallelism, replicas)
	default:
		return w, false
	}
	if w.Slack, ok = meta.Annotations[v1alpha1.AnnotationSlack]; !ok || meta.DeletionTimestamp != nil {
		return w, false
	}
	if owner := metav1.GetControllerOfNoCopy(meta); owner != nil && owner.Kind == "Deployment" {
		return w, false
	}
	w.Namespace, w.Name, w.Replicas = meta.Namespace, meta.Name, int64(max(0, *replicas))
	return w, true
}

// isFinished reports whether a Job is complete or failed.
func isFinished(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
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

// Placeholders returns the number of placeholders that the workload requests. A percentage of its
// replicas is rounded up. It returns an error if the annotation is invalid, or more than 200%, which is
// probably a mistake: such a number of placeholders can be requested as a number.
func (w Workload) Placeholders() (int64, error) {
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
		selector := policy.Spec.Pool.NodeSelector
		included := true
		for name, value := range selector {
			podValue, ok := w.Template.Spec.NodeSelector[name]
			included = included && ok && podValue == value
		}
		if included && len(selector) > most {
			best, most = i, len(selector)
		}
	}
	if best < 0 {
		return min(0, len(policies)-1)
	}
	return best
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

// groupName returns the name of the workload's group of placeholders. It is unique in the cluster and
// a valid label value.
func (w Workload) groupName() string {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s/%s", w.Kind, w.Namespace, w.Name)
	name := strings.TrimRight(w.Name[:min(len(w.Name), 40)], "-.")
	return fmt.Sprintf("%s-%s-%08x", strings.ReplaceAll(name, ".", "-"), strings.ToLower(w.Kind), hash.Sum32())
}
