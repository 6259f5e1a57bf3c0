package slack

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// GangResources are the resources of workloads with groups of several pods. The API server may serve them later or never.
var GangResources = []schema.GroupVersionResource{
	{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
	{Group: "leaderworkerset.x-k8s.io", Version: "v1", Resource: "leaderworkersets"},
	{Group: "scheduling.k8s.io", Version: "v1beta1", Resource: "podgroups"},
	{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}, // of the coscheduling plugin
}

var (
	jobSetKind          = GangResources[0].GroupVersion().WithKind("JobSet")
	leaderWorkerSetKind = GangResources[1].GroupVersion().WithKind("LeaderWorkerSet")
	podGroupKind        = GangResources[2].GroupVersion().WithKind("PodGroup")
	coschedulingKind    = GangResources[3].GroupVersion().WithKind("PodGroup")
)

// jobSetCompleted is the type of the condition of a JobSet that is complete.
const jobSetCompleted = "Completed"

// jobSet has the fields of a JobSet that are read.
type jobSet struct {
	Spec struct {
		Suspend        *bool `json:"suspend"`
		ReplicatedJobs []struct {
			Name     string                  `json:"name"`
			Replicas *int32                  `json:"replicas"`
			Template batchv1.JobTemplateSpec `json:"template"`
		} `json:"replicatedJobs"`
	} `json:"spec"`
	Status struct {
		Conditions []batchv1.JobCondition `json:"conditions"`
	} `json:"status"`
}

// leaderWorkerSet has the fields of a LeaderWorkerSet that are read.
type leaderWorkerSet struct {
	Spec struct {
		Replicas             *int32 `json:"replicas"`
		LeaderWorkerTemplate struct {
			LeaderTemplate       *v1.PodTemplateSpec        `json:"leaderTemplate"`
			WorkerTemplate       v1.PodTemplateSpec         `json:"workerTemplate"`
			Size                 *int32                     `json:"size"`
			VolumeClaimTemplates []v1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
		} `json:"leaderWorkerTemplate"`
	} `json:"spec"`
}

// setGroups sets the kind and the groups of a JobSet, which is one group, or a LeaderWorkerSet, and the kind of a PodGroup. It returns
// false for other kinds and for a JobSet that is finished or suspended. An object that cannot be read is an invalid workload.
func (w *Workload) setGroups(object *unstructured.Unstructured) bool {
	w.Kind = object.GetKind()
	switch object.GroupVersionKind() {
	case jobSetKind:
		var set jobSet
		w.invalid = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set)
		if ptr.Deref(set.Spec.Suspend, false) || isFinished(set.Status.Conditions) {
			return false
		}
		w.Replicas = 1
		for _, job := range set.Spec.ReplicatedJobs {
			pods := resources.Multiply(numberOf(job.Replicas), podsOfJob(&job.Template.Spec))
			w.addShape(job.Name, pods, job.Template.Spec.Template)
		}
	case leaderWorkerSetKind:
		var set leaderWorkerSet
		w.invalid = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &set)
		t, leaders := &set.Spec.LeaderWorkerTemplate, int64(0)
		w.Replicas = numberOf(set.Spec.Replicas)
		w.setClaims(t.VolumeClaimTemplates)
		if t.LeaderTemplate != nil {
			leaders = 1
			w.addShape("leader", leaders, *t.LeaderTemplate)
		}
		w.addShape("workers", numberOf(t.Size)-leaders, t.WorkerTemplate)
	case podGroupKind, coschedulingKind:
		w.Replicas, w.podGroup = 1, object
	default:
		return false
	}
	return true
}

// addShape adds pods to the group of the workload. Unlike the pod templates of built-in kinds, the templates of other kinds may
// not have been validated.
func (w *Workload) addShape(name string, pods int64, template v1.PodTemplateSpec) {
	if pods <= 0 || w.invalid != nil {
		return
	}
	if reasons := validation.IsDNS1123Label(name); len(reasons) > 0 {
		w.invalid = field.Invalid(field.NewPath("spec", "replicatedJobs", "name"), name, reasons[0])
	}
	for resource, quantity := range resources.RequestsOfTemplate(&template.Spec) {
		if quantity.Sign() < 0 {
			w.invalid = fmt.Errorf("%s: requests of the pods: found %s of %s: must be at least 0", name, quantity.String(), resource)
		}
	}
	w.Shapes = append(w.Shapes, Shape{name, pods, template})
}
