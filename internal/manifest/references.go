package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/plimsoll-k8s/plimsoll/internal/format"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// References has the objects that pods and their claims refer to.
type References struct {
	objects map[string]runtime.Object // by type, namespace and name
	// devices are the pools of devices by driver and name.
	devices map[string]bool
}

// NewReferences returns the references among objects.
func NewReferences(objects []runtime.Object) References {
	r := References{map[string]runtime.Object{}, map[string]bool{}}
	for _, object := range objects {
		if named, ok := object.(metav1.Object); ok {
			r.objects[fmt.Sprintf("%T %s", object, resources.Name(named))] = object
		}
		if slice, ok := object.(*resourcev1.ResourceSlice); ok {
			r.devices[slice.Spec.Driver+"/"+slice.Spec.Pool.Name] = true
		}
	}
	return r
}

// find returns the object of a type with a name, nil if there is none. The namespace of objects without namespaces is "".
func find[O runtime.Object](r References, namespace, name string) (object O, found bool) {
	object, found = r.objects[fmt.Sprintf("%T %s/%s", object, namespace, name)].(O)
	return object, found
}

// RemoveMissing removes the volumes and devices of a pod whose claims are missing, or objects that the claims need: the scheduler would
// wait for them. It reports whether it removed any.
func (r References) RemoveMissing(pod *v1.Pod) bool {
	spec, before := &pod.Spec, len(pod.Spec.Volumes)+len(pod.Spec.ResourceClaims)
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v v1.Volume) bool { return !r.hasVolume(pod, &v) })
	spec.ResourceClaims = slices.DeleteFunc(spec.ResourceClaims, func(c v1.PodResourceClaim) bool { return !r.hasDevices(pod, &c) })
	return len(spec.Volumes)+len(spec.ResourceClaims) < before
}

// hasAll reports whether RemoveMissing would not remove any volume or device of a pod.
func (r References) hasAll(pod *v1.Pod) bool { return !r.RemoveMissing(pod.DeepCopy()) }

// hasVolume reports whether a volume needs no claim, or its claim exists with its PersistentVolume, or with its StorageClass if it is
// not bound.
func (r References) hasVolume(pod *v1.Pod, volume *v1.Volume) bool {
	name := pod.Name + "-" + volume.Name
	switch {
	case volume.PersistentVolumeClaim != nil:
		name = volume.PersistentVolumeClaim.ClaimName
	case volume.Ephemeral == nil:
		return true
	}
	claim, found := find[*v1.PersistentVolumeClaim](r, pod.Namespace, name)
	if !found {
		return false
	}
	class := storagehelpers.GetPersistentVolumeClaimClass(claim)
	switch {
	case claim.Spec.VolumeName != "":
		_, found = find[*v1.PersistentVolume](r, "", claim.Spec.VolumeName)
	case class != "":
		_, found = find[*storagev1.StorageClass](r, "", class)
	}
	return found
}

// hasDevices reports whether the claim of a reference, or the template of a claim that is not created, exists with its device classes, and
// whether there are ResourceSlices with its devices.
func (r References) hasDevices(pod *v1.Pod, reference *v1.PodResourceClaim) bool {
	name, _, err := resourceclaim.Name(pod, reference)
	if err == nil && name == nil {
		return true // it needs no claim
	}
	if claim, found := find[*resourcev1.ResourceClaim](r, pod.Namespace, ptr.Deref(name, "")); found {
		isMissing := func(d resourcev1.DeviceRequestAllocationResult) bool { return !r.devices[d.Driver+"/"+d.Pool] }
		allocation := ptr.Deref(claim.Status.Allocation, resourcev1.AllocationResult{})
		return r.hasClasses(&claim.Spec) && !slices.ContainsFunc(allocation.Devices.Results, isMissing)
	}
	template, found := find[*resourcev1.ResourceClaimTemplate](r, pod.Namespace, ptr.Deref(reference.ResourceClaimTemplateName, ""))
	return found && r.hasClasses(&template.Spec.Spec)
}

// hasClasses reports whether the device classes of a claim exist, and any ResourceSlices.
func (r References) hasClasses(claim *resourcev1.ResourceClaimSpec) bool {
	hasClass := func(name string) bool {
		_, found := find[*resourcev1.DeviceClass](r, "", name)
		return found
	}
	return len(r.devices) > 0 && !slices.ContainsFunc(claim.Devices.Requests, func(request resourcev1.DeviceRequest) bool {
		if request.Exactly != nil {
			return !hasClass(request.Exactly.DeviceClassName)
		}
		return !slices.ContainsFunc(request.FirstAvailable, func(s resourcev1.DeviceSubRequest) bool { return hasClass(s.DeviceClassName) })
	})
}

// removeMissing removes the volumes and devices of running pods whose claims are missing, as their claims exist in the cluster. It adds
// sentences about these pods, and about pending pods with such claims, to Missing.
func (o *Objects) removeMissing() {
	r, running, pending := NewReferences(o.Others), 0, 0
	for _, pod := range o.Running {
		if r.RemoveMissing(pod) {
			running++
		}
	}
	for _, pod := range o.Pending {
		if !r.hasAll(pod) {
			pending++
		}
	}
	add := func(pods, of int, where, outcome string) {
		if pods > 0 {
			o.Missing = append(
				o.Missing,
				fmt.Sprintf("%s %s node %s claims that the input lacks, or whose volumes or classes it lacks: %s. "+
					"plimsoll snapshot writes them.", format.Part(pods, of, "pod"), where, format.Form(pods, "uses", "use"), outcome),
			)
		}
	}
	add(running, len(o.Running), "with a", "scheduled without them")
	add(pending, len(o.Pending), "without a", "not scheduled")
}

// setDefaultClass sets the class of claims that have none and are not bound to the default class, as the API server does: the newest of
// several.
func (o *Objects) setDefaultClass() {
	var class *storagev1.StorageClass
	for _, object := range o.Others {
		c, ok := object.(*storagev1.StorageClass)
		if ok && c.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" && (class == nil || cmp.Or(
			c.CreationTimestamp.Compare(class.CreationTimestamp.Time), strings.Compare(class.Name, c.Name)) > 0) {
			class = c
		}
	}
	for _, object := range o.Others {
		claim, ok := object.(*v1.PersistentVolumeClaim)
		if ok && class != nil && claim.Spec.VolumeName == "" && !storagehelpers.PersistentVolumeClaimHasClass(claim) {
			claim.Spec.StorageClassName = &class.Name
		}
	}
}

// addUnread adds sentences about pods that are scheduled without regard to objects that the input lacks to Missing: the Namespaces that
// their terms of affinity select, and the CSINodes that have the numbers of volumes of their drivers.
func (o *Objects) addUnread() {
	r, selecting, attached, hasNamespaces, hasCSINodes := NewReferences(o.Others), 0, 0, false, false
	for _, object := range o.Others {
		switch object.(type) {
		case *v1.Namespace:
			hasNamespaces = true
		case *storagev1.CSINode:
			hasCSINodes = true
		}
	}
	pods := slices.Concat(o.Running, o.Pending)
	for _, pod := range pods {
		if selectsNamespaces(pod.Spec.Affinity) {
			selecting++
		}
		if slices.ContainsFunc(pod.Spec.Volumes, func(v v1.Volume) bool { return r.isAttached(pod, &v) }) {
			attached++
		}
	}
	add := func(has bool, count int, what, outcome string) {
		if count > 0 && !has {
			o.Missing = append(o.Missing, fmt.Sprintf("%s %s %s that the input lacks: %s. plimsoll snapshot writes them.",
				format.Part(count, len(pods), "pod"), format.Form(count, "needs", "need"), what, outcome))
		}
	}
	add(hasNamespaces, selecting, "the Namespaces of an affinity to pods", "it selects none")
	add(hasCSINodes, attached, "the CSINodes of volumes", "the limits of volumes on a node are ignored")
}

// selectsNamespaces reports whether affinity to pods, which may be nil, requires or prefers pods of Namespaces with certain labels.
func selectsNamespaces(affinity *v1.Affinity) bool {
	terms := slices.Concat(fwk.GetPodAffinityTerms(affinity), fwk.GetPodAntiAffinityTerms(affinity))
	var preferred []v1.WeightedPodAffinityTerm
	if affinity != nil && affinity.PodAffinity != nil {
		preferred = affinity.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	}
	if affinity != nil && affinity.PodAntiAffinity != nil {
		preferred = slices.Concat(preferred, affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	for i := range preferred {
		terms = append(terms, preferred[i].PodAffinityTerm)
	}
	return slices.ContainsFunc(terms, func(t v1.PodAffinityTerm) bool {
		return t.NamespaceSelector != nil && len(t.NamespaceSelector.MatchLabels)+len(t.NamespaceSelector.MatchExpressions) > 0
	})
}

// isAttached reports whether a volume of a pod is bound to a volume of a CSI driver.
func (r References) isAttached(pod *v1.Pod, volume *v1.Volume) bool {
	if volume.PersistentVolumeClaim == nil {
		return false
	}
	claim, found := find[*v1.PersistentVolumeClaim](r, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
	if !found {
		return false
	}
	bound, found := find[*v1.PersistentVolume](r, "", claim.Spec.VolumeName)
	return found && bound.Spec.CSI != nil
}

// addUnused adds a sentence about workloads without pods to Missing: pods are not created from their templates.
func (o *Objects) addUnused() {
	owners := map[string]bool{}
	addOwner := func(object metav1.Object) {
		if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
			owners[owner.Kind+" "+object.GetNamespace()+"/"+owner.Name] = true
		}
	}
	for _, pod := range slices.Concat(o.Running, o.Pending) {
		addOwner(pod)
		owners["Deployment "+pod.Namespace+"/"+resources.WorkloadOf(pod).Name] = true
	}
	for _, workload := range o.Workloads {
		if set, ok := workload.(*appsv1.ReplicaSet); ok && owners["ReplicaSet "+resources.Name(set)] {
			addOwner(set)
		}
	}
	var unused Ignored
	for _, workload := range o.Workloads {
		kind := workload.GetObjectKind().GroupVersionKind().GroupKind()
		if expectsPods(workload) && !owners[kind.Kind+" "+resources.Name(workload.(metav1.Object))] {
			unused.Add(kind)
		}
	}
	if len(unused.counts) > 0 {
		o.Missing = append(o.Missing, "No pods are created from the templates of workloads without pods in the input: "+unused.list()+".")
	}
}

// expectsPods reports whether a controller creates pods from the template of a workload.
func expectsPods(workload runtime.Object) bool {
	switch w := workload.(type) {
	case *appsv1.Deployment:
		return ptr.Deref(w.Spec.Replicas, 1) > 0
	case *appsv1.StatefulSet:
		return ptr.Deref(w.Spec.Replicas, 1) > 0
	case *appsv1.ReplicaSet:
		return ptr.Deref(w.Spec.Replicas, 1) > 0 && metav1.GetControllerOfNoCopy(w) == nil
	case *batchv1.Job:
		return w.Status.StartTime == nil && !ptr.Deref(w.Spec.Suspend, false)
	}
	return false
}

// setPriorities sets the priority of pods as the API server does: that of their class, or of the global default.
func (r *clusterReader) setPriorities() {
	classes := map[string]*schedulingv1.PriorityClass{ // these exist in every cluster
		"system-cluster-critical": {Value: 2_000_000_000}, "system-node-critical": {Value: 2_000_001_000},
	}
	var global *schedulingv1.PriorityClass
	for _, object := range r.objects.Others {
		if class, ok := object.(*schedulingv1.PriorityClass); ok {
			classes[class.Name] = class
			if class.GlobalDefault {
				global = class
			}
		}
	}
	missing := map[string]int{}
	for _, pod := range slices.Concat(r.objects.Running, r.objects.Pending) {
		class, name := global, pod.Spec.PriorityClassName
		if pod.Spec.Priority != nil {
			continue
		}
		if name != "" {
			if class = classes[name]; class == nil {
				missing[name]++
			}
		}
		if class != nil {
			pod.Spec.Priority, pod.Spec.PreemptionPolicy = &class.Value, cmp.Or(pod.Spec.PreemptionPolicy, class.PreemptionPolicy)
		}
	}
	names := slices.Sorted(maps.Keys(classes))
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		r.warn("spec.priorityClassName of %s: found no PriorityClass %q in the input: the priority is taken as 0%s",
			format.Of(missing[name], "pod"), name, format.Suggestion(name, names))
	}
}
