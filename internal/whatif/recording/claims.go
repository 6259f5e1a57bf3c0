package recording

import (
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

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
