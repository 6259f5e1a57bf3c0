package recording

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/manifest"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// claims are the persistent volume claims, the resource claims and the resource claim templates, by namespace and name.
type claims struct{ volumes, devices, templates map[string]bool }

// claimNames returns the claims among objects.
func claimNames(objects *manifest.Objects) claims {
	c := claims{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, object := range objects.Others {
		switch object := object.(type) {
		case *v1.PersistentVolumeClaim:
			c.volumes[resources.Name(object)] = true
		case *resourcev1.ResourceClaim:
			c.devices[resources.Name(object)] = true
		case *resourcev1.ResourceClaimTemplate:
			c.templates[resources.Name(object)] = true
		}
	}
	return c
}

// removeMissing removes the volumes and devices of a pod whose claims do not exist, since the scheduler would wait
// for the claims. It reports whether it removed any.
func (c claims) removeMissing(pod *v1.Pod) bool {
	spec, before := &pod.Spec, len(pod.Spec.Volumes)+len(pod.Spec.ResourceClaims)
	spec.Volumes = slices.DeleteFunc(spec.Volumes, func(v v1.Volume) bool {
		switch {
		case v.PersistentVolumeClaim != nil:
			return !c.volumes[pod.Namespace+"/"+v.PersistentVolumeClaim.ClaimName]
		case v.Ephemeral != nil:
			return !c.volumes[pod.Namespace+"/"+pod.Name+"-"+v.Name]
		}
		return false
	})
	spec.ResourceClaims = slices.DeleteFunc(spec.ResourceClaims, func(r v1.PodResourceClaim) bool {
		if r.ResourceClaimName != nil {
			return !c.devices[pod.Namespace+"/"+*r.ResourceClaimName]
		}
		return r.ResourceClaimTemplateName != nil && !c.templates[pod.Namespace+"/"+*r.ResourceClaimTemplateName]
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
