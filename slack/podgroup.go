package slack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Labels of pods with the name of their PodGroup of the coscheduling plugin, JobSet or LeaderWorkerSet.
const (
	PodGroupLabel        = "scheduling.x-k8s.io/pod-group"
	JobSetLabel          = "jobset.sigs.k8s.io/jobset-name"
	LeaderWorkerSetLabel = "leaderworkerset.sigs.k8s.io/name"
)

// PodGroup identifies a PodGroup.
type PodGroup struct{ APIGroup, Namespace, Name string }

// podGroupOf returns the PodGroup of a pod. It is empty if the pod is nil or has none.
func podGroupOf(pod *v1.Pod) PodGroup {
	if pod == nil {
		return PodGroup{}
	}
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return PodGroup{podGroupKind.Group, pod.Namespace, *group.PodGroupName}
	}
	if name := pod.Labels[PodGroupLabel]; name != "" {
		return PodGroup{coschedulingKind.Group, pod.Namespace, name}
	}
	return PodGroup{}
}

// Members are the pods of PodGroups, by name.
type Members map[PodGroup]map[string]*member

// member is a pod of a PodGroup. Shape and owners are set when they are needed first.
type member struct {
	pod *v1.Pod
	// shape is the name of the shape, owners are the workloads that may have created the pod.
	shape  string
	owners []string
}

// MembersOf returns the pods that have a PodGroup. It does not compute the shape of a pod again that is the same object in previous,
// which may be nil.
func MembersOf(pods []*v1.Pod, previous Members) Members {
	members := Members{}
	for _, pod := range pods {
		members.Replace(nil, pod)
		group := podGroupOf(pod)
		if known := previous[group][pod.Name]; known != nil && known.pod == pod {
			members[group][pod.Name] = known
		}
	}
	return members
}

// Replace replaces a pod by its next version: before is nil for a new pod, after for a deleted pod. It returns the PodGroups of both
// if the mirrors of a PodGroup may change: if the PodGroups differ, or only one of the versions is mirrored.
func (m Members) Replace(before, after *v1.Pod) []PodGroup {
	from, to := podGroupOf(before), podGroupOf(after)
	if from == to && from == (PodGroup{}) {
		return nil
	}
	if before != nil {
		if delete(m[from], before.Name); len(m[from]) == 0 {
			delete(m, from)
		}
	}
	if to != (PodGroup{}) {
		if m[to] == nil {
			m[to] = map[string]*member{}
		}
		m[to][after.Name] = &member{pod: after}
	}
	if from == to && isMirrored(before) == isMirrored(after) {
		return nil
	}
	return []PodGroup{from, to}
}

// isMirrored reports whether a member is neither finished nor being deleted.
func isMirrored(pod *v1.Pod) bool { return isCounted(pod) && pod.DeletionTimestamp == nil }

// read sets the shape and the owners of the member. Pods with equal mirrors have the same shape. Labels are compared if the mirror's
// affinity or topology spread constraints have their key.
func (m *member) read() {
	if m.shape != "" {
		return
	}
	shape := Shape{Template: v1.PodTemplateSpec{Spec: m.pod.Spec}}
	group := Group{Requests: resources.RequestsOfTemplate(&shape.Template.Spec), Mirror: &Workload{Shapes: []Shape{shape}}}
	mirror := mirrorTemplate(&v1alpha1.ResourceSlack{}, group)
	selectors, _ := json.Marshal([]any{mirror.Spec.Affinity, mirror.Spec.TopologySpreadConstraints})
	for key, value := range m.pod.Labels {
		if bytes.Contains(selectors, strconv.AppendQuote(nil, key)) {
			mirror.Labels[key] = value
		}
	}
	hash := fnv.New32a()
	_ = json.NewEncoder(hash).Encode([]any{podGroupOf(m.pod).APIGroup, mirror})
	m.shape = fmt.Sprintf("%08x", hash.Sum32())
	m.owners = ownersOf(m.pod)
}

// ownersOf returns the workloads that may have created a pod or a PodGroup, in the form of Workload.String: its controller, and the
// Deployment, JobSet and LeaderWorkerSet that creates controllers of pods.
func ownersOf(object metav1.Object) (owners []string) {
	labels := object.GetLabels()
	add := func(kind, name string) {
		owners = append(owners, Workload{Kind: kind, Namespace: object.GetNamespace(), Name: name}.String())
	}
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		add(owner.Kind, owner.Name)
		if owner.Kind == "ReplicaSet" {
			add("Deployment", resources.WithoutHash(owner.Name, labels["pod-template-hash"]))
		}
	}
	add(jobSetKind.Kind, labels[JobSetLabel])
	add(leaderWorkerSetKind.Kind, labels[LeaderWorkerSetLabel])
	return owners
}

// WorkloadsOf returns the workloads of objects, see WorkloadOf, with the members of PodGroups. It does not return a PodGroup if a workload
// with the annotation may have created it or one of its pods.
func WorkloadsOf(objects []runtime.Object, members Members) (all []Workload) {
	annotated := sets.Set[string]{}
	var groups []Workload
	for _, object := range objects {
		w, ok := WorkloadOf(object)
		switch {
		case w.podGroup != nil:
			groups = append(groups, w)
		case w.Kind != "":
			annotated.Insert(w.String())
			if ok {
				all = append(all, w)
			}
		}
	}
	for i := range groups {
		if w := &groups[i]; !annotated.HasAny(ownersOf(w.podGroup)...) && w.setMembers(members, annotated) {
			all = append(all, *w)
		}
	}
	return all
}

// setMembers sets the shapes of a PodGroup: its pods that are neither finished nor being deleted. It returns false if all of its pods
// are, or if a workload in annotated may have created one of them.
func (w *Workload) setMembers(members Members, annotated sets.Set[string]) bool {
	pods := members[PodGroup{w.podGroup.GroupVersionKind().Group, w.Namespace, w.Name}]
	shapes := map[string]*Shape{}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		m := pods[name]
		if !isMirrored(m.pod) {
			continue
		}
		if m.read(); annotated.HasAny(m.owners...) {
			return false
		}
		shape := shapes[m.shape]
		if shape == nil {
			shape = &Shape{Name: m.shape, Template: v1.PodTemplateSpec{Spec: m.pod.Spec}}
			shape.Template.Labels = maps.Clone(m.pod.Labels)
			shapes[m.shape] = shape
		}
		shape.Pods++
		// Labels such as the index of a pod differ.
		maps.DeleteFunc(shape.Template.Labels, func(key, value string) bool {
			other, ok := m.pod.Labels[key]
			return !ok || other != value
		})
	}
	var group struct {
		Spec struct {
			MinMember        int32                                      `json:"minMember"`
			SchedulingPolicy schedulingv1beta1.PodGroupSchedulingPolicy `json:"schedulingPolicy"`
		} `json:"spec"`
	}
	w.invalid = runtime.DefaultUnstructuredConverter.FromUnstructured(w.podGroup.Object, &group)
	for _, name := range slices.Sorted(maps.Keys(shapes)) {
		w.addShape(name, shapes[name].Pods, shapes[name].Template)
	}
	minimum, field := group.Spec.MinMember, "minMember"
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		minimum, field = gang.MinCount, "minCount"
	}
	if found := w.pods(); w.invalid == nil && found < int64(minimum) {
		w.invalid = fmt.Errorf("found %s: must be at least %d, its %s", format.Of(found, "pod"), minimum, field)
	}
	return len(pods) == 0 || len(shapes) > 0
}
