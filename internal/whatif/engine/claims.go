package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// firstVersion is the resource version of all claims at the start. The scheduler compares versions as numbers.
const firstVersion = "1"

// versioned returns the objects, with copies of resource claims that have a resource version.
func versioned(objects []runtime.Object) []runtime.Object {
	objects = slices.Clone(objects)
	for i, object := range objects {
		if claim, ok := object.(*resourcev1.ResourceClaim); ok {
			claim = claim.DeepCopy()
			claim.ResourceVersion = firstVersion
			objects[i] = claim
		}
	}
	return objects
}

// waitForDevices waits until the caches of the scheduler have the claims and slices among the objects: they are filled by
// handlers of informers.
func (e *Engine) waitForDevices(ctx context.Context, objects []runtime.Object) error {
	claims, slices, hasRules := 0, 0, false
	for _, object := range objects {
		switch object.(type) {
		case *resourcev1.ResourceClaim:
			claims++
		case *resourcev1.ResourceSlice:
			slices++
		case *resourcev1.DeviceTaintRule:
			hasRules = true
		}
	}
	if claims+slices == 0 {
		return nil
	}
	if hasRules { // the taints are in the slices once they are handled
		if err := e.scheduler.WaitForHandlersSync(ctx); err != nil {
			return err
		}
	}
	manager := e.deviceManager()
	const interval = time.Millisecond
	return wait.PollUntilContextCancel(ctx, interval, true, func(context.Context) (bool, error) {
		knownClaims, err := manager.ResourceClaims().List()
		if err != nil {
			return false, err
		}
		knownSlices, err := manager.ResourceSlices().ListWithDeviceTaintRules()
		return len(knownClaims) == claims && len(knownSlices) == slices, err
	})
}

// deviceManager returns the device manager that all profiles share.
func (e *Engine) deviceManager() fwk.SharedDRAManager {
	for _, profile := range e.scheduler.Profiles {
		return profile.SharedDRAManager()
	}
	return nil // A scheduler has at least one profile.
}

// allocateClaims allocates the resource claims of a pod that was scheduled on a node, given the state of its scheduling
// cycle. kube-scheduler does this when it reserves and binds.
func (e *Engine) allocateClaims(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, node string,
) error {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	if status := profile.RunReservePluginsReserve(ctx, state, pod, node); !status.IsSuccess() {
		return fmt.Errorf("reserving devices: %w", status.AsError())
	}
	tracker := profile.SharedDRAManager().ResourceClaims()
	return e.updateClaims(pod, func(claim *resourcev1.ResourceClaim) {
		if allocation := tracker.GetPendingAllocation(claim.UID); allocation != nil {
			claim.Status.Allocation = allocation
		}
		claim.Status.ReservedFor = append(claim.Status.ReservedFor,
			resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: pod.Name, UID: pod.UID})
	})
}

// releaseClaims releases the resource claims of a pod that leaves its node. Claims that no other pod uses are deallocated, as
// the controller of resource claims does.
func (e *Engine) releaseClaims(pod *v1.Pod) error {
	return e.updateClaims(pod, func(claim *resourcev1.ResourceClaim) {
		claim.Status.ReservedFor = slices.DeleteFunc(claim.Status.ReservedFor,
			func(r resourcev1.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
		if len(claim.Status.ReservedFor) == 0 {
			claim.Status.Allocation = nil
		}
	})
}

// updateClaims changes the claims of a pod in the scheduler's cache.
func (e *Engine) updateClaims(pod *v1.Pod, change func(*resourcev1.ResourceClaim)) error {
	if len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	tracker := e.deviceManager().ResourceClaims()
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		if err != nil || name == nil {
			continue // A pod with a node may have no claims.
		}
		claim, err := tracker.Get(pod.Namespace, *name)
		if err != nil {
			continue
		}
		claim = claim.DeepCopy()
		version, err := strconv.ParseInt(claim.ResourceVersion, 10, 64)
		if err != nil {
			return fmt.Errorf("resource claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		claim.ResourceVersion = strconv.FormatInt(version+1, 10)
		change(claim)
		if err := tracker.AssumeClaimAfterAPICall(claim); err != nil {
			return fmt.Errorf("resource claim %s/%s: %w", claim.Namespace, claim.Name, err)
		}
		tracker.MaybeRemoveClaimPendingAllocation(claim.UID, true)
	}
	return nil
}
