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
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
)

// Workload is a set of equal pods that wants placeholders like them: a mirror.
type Workload struct {
	// Kind is Deployment, ReplicaSet, StatefulSet or Job.
	Kind, Namespace, Name string
	// Slack is the value of the annotation: a number of placeholders, or a
	// percentage of Replicas.
	Slack string
	// Replicas are the pods that are wanted of it.
	Replicas int64
	// Template of its pods.
	Template v1.PodTemplateSpec
}

// WorkloadOf returns what an object wants mirrored. ok is false where it wants
// nothing: it is of another kind or not annotated, it has ended, or it only has
// its annotation from a Deployment that it belongs to.
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
	case *batchv1.Job:
		if hasEnded(object) {
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

func hasEnded(job *batchv1.Job) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == v1.ConditionTrue
	})
}

// String names the workload for people.
func (w Workload) String() string { return fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name) }

// compare orders workloads by namespace, kind and name.
func (w Workload) compare(other Workload) int {
	return cmp.Or(strings.Compare(w.Namespace, other.Namespace), strings.Compare(w.Kind, other.Kind), strings.Compare(w.Name, other.Name))
}

// aCount is how the annotation gives a number.
var aCount = regexp.MustCompile(`^[0-9]{1,4}$`)

// Placeholders returns how many the workload wants: a percentage of its replicas
// is rounded up. An error says what is wrong with the annotation.
func (w Workload) Placeholders() (int64, error) {
	if aCount.MatchString(w.Slack) {
		return strconv.ParseInt(w.Slack, 10, 64)
	}
	if strings.HasSuffix(w.Slack, "%") {
		if rate, err := v1alpha1.ParseRate(w.Slack); err == nil {
			return algo.Share(w.Replicas, rate), nil
		}
	}
	return 0, fmt.Errorf("%s: annotation %s: found %q, want a number of placeholders up to 9999 or a percentage of its replicas, such as 2 or 20%%", w, v1alpha1.AnnotationSlack, w.Slack)
}

// Governs returns which of the policies holds the placeholders of a workload:
// the one whose pool the pods are bound to by the most labels, or else the first.
// Policies are sorted by name; it is -1 where there are none.
func Governs(policies []*v1alpha1.ResourceSlack, w Workload) int {
	best, labels := min(0, len(policies)-1), -1
	for i, policy := range policies {
		selector := policy.Spec.Pool.NodeSelector
		bound := true
		for name, value := range selector {
			there, ok := w.Template.Spec.NodeSelector[name]
			bound = bound && ok && there == value
		}
		if bound && len(selector) > labels {
			best, labels = i, len(selector)
		}
	}
	return best
}

// aMirror is what the names of groups of workloads end in.
var aMirror = regexp.MustCompile(`-(deployment|replicaset|statefulset|job)-[0-9a-f]{8}$`)

// IsMirror reports whether a group has the name of one for a workload.
func IsMirror(group string) bool { return aMirror.MatchString(group) }

// groupName returns a name for the placeholders that no other workload's have,
// in any namespace, and that can be a label.
func (w Workload) groupName() string {
	hash := fnv.New32a()
	fmt.Fprintf(hash, "%s/%s/%s", w.Kind, w.Namespace, w.Name)
	name := strings.TrimRight(w.Name[:min(len(w.Name), 40)], "-.")
	return fmt.Sprintf("%s-%s-%08x", strings.ReplaceAll(name, ".", "-"), strings.ToLower(w.Kind), hash.Sum32())
}
