package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// CheckNode returns an error if an amount of a node is negative or does not fit in 64 bits: kube-scheduler would compute
// with another amount. The error names the field.
func CheckNode(node *v1.Node) error {
	if err := checkAmounts("status.capacity", node.Status.Capacity); err != nil {
		return err
	}
	return checkAmounts("status.allocatable", node.Status.Allocatable)
}

// CheckPod returns an error as CheckNode does, for the requests, limits and overhead of a pod.
func CheckPod(pod *v1.Pod) error {
	if err := checkAmounts("spec.overhead", pod.Spec.Overhead); err != nil {
		return err
	}
	if pod.Spec.Resources != nil {
		if err := checkRequirements("spec.resources", pod.Spec.Resources); err != nil {
			return err
		}
	}
	if err := checkContainers("spec.initContainers", pod.Spec.InitContainers); err != nil {
		return err
	}
	return checkContainers("spec.containers", pod.Spec.Containers)
}

// checkContainers checks the requests and limits of containers.
func checkContainers(field string, containers []v1.Container) error {
	for i := range containers {
		if err := checkRequirements(fmt.Sprintf("%s[%d].resources", field, i), &containers[i].Resources); err != nil {
			return err
		}
	}
	return nil
}

// checkRequirements checks the requests and limits of a container or of a pod.
func checkRequirements(field string, resources *v1.ResourceRequirements) error {
	if err := checkAmounts(field+".requests", resources.Requests); err != nil {
		return err
	}
	return checkAmounts(field+".limits", resources.Limits)
}

// checkAmounts checks the amounts in a field.
func checkAmounts(field string, amounts v1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		if amount.Sign() < 0 || amount.CmpInt64(math.MaxInt64) > 0 {
			return fmt.Errorf("%s: invalid value %q: must be from 0 to %d",
				child(field, string(name)), amount.String(), int64(math.MaxInt64))
		}
	}
	return nil
}
