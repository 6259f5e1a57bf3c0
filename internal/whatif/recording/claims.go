package recording

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// claims has the objects of a recording that pods refer to, by kind, namespace and name.
type claims map[string]bool

// newClaims returns the names of objects, which have their kinds.
func newClaims(objects *manifest.Objects) claims {
	c := claims{}
	for _, object := range objects.Others {
		if named, ok := object.(metav1.Object); ok {
			c[object.GetObjectKind().GroupVersionKind().Kind+" "+resources.Name(named)] = true
		}
	}
	return c
}

// removeMissing removes the volumes and devices of a pod whose claims do not exist, since the scheduler would wait
// for the claims. It reports whether it removed any.
func (c claims) removeMissing(pod *v1.Pod) bool {
	spec, before := &pod.Spec, len(pod.Spec.Volumes)+len(pod.Spec.ResourceClaims)
	isMissing := func(kind, name string) bool { return !c[kind+" "+pod.Namespace+"/"+name] }
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v v1.Volume) bool {
		return v.PersistentVolumeClaim != nil && isMissing("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName) ||
			v.Ephemeral != nil && isMissing("PersistentVolumeClaim", pod.Name+"-"+v.Name)
	})
	spec.ResourceClaims = slices.DeleteFunc(spec.ResourceClaims, func(r v1.PodResourceClaim) bool {
		return r.ResourceClaimName != nil && isMissing("ResourceClaim", *r.ResourceClaimName) ||
			r.ResourceClaimTemplateName != nil && isMissing("ResourceClaimTemplate", *r.ResourceClaimTemplateName)
	})
	return len(spec.Volumes)+len(spec.ResourceClaims) < before
}

// releaseClaims returns the objects, with resource claims that are allocated only if a pod that runs from the start uses
// them.
func releaseClaims(objects []runtime.Object, pods []InputPod) []runtime.Object {
	running := map[types.UID]bool{}
	for i := range pods {
		if object := pods[i].Object; object.Spec.NodeName != "" {
			running[object.UID] = true
		}
	}
	objects = slices.Clone(objects)
	for i, object := range objects {
		claim, ok := object.(*resourcev1.ResourceClaim)
		if !ok {
			continue
		}
		claim = claim.DeepCopy()
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor,
			func(r resourcev1.ResourceClaimConsumerReference) bool { return !running[r.UID] })
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
		objects[i] = claim
	}
	return objects
}

// mapsExtendedResources reports whether a device class provides an extended resource, for which kube-scheduler creates
// resource claims.
func mapsExtendedResources(objects []runtime.Object) bool {
	return slices.ContainsFunc(objects, func(object runtime.Object) bool {
		class, ok := object.(*resourcev1.DeviceClass)
		return ok && class.Spec.ExtendedResourceName != nil
	})
}
