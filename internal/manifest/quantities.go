package manifest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/core/helper"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// CheckNode returns an error if an amount of a node is negative or does not fit in 64 bits: kube-scheduler would compute
// with another amount. The error names the field.
func CheckNode(node *v1.Node) error {
	return cmp.Or(checkAmounts("status.capacity", node.Status.Capacity), checkAmounts("status.allocatable", node.Status.Allocatable))
}

// CheckPod returns an error as CheckNode does, for the requests, limits and overhead of a pod.
func CheckPod(pod *v1.Pod) error {
	err := checkAmounts("spec.overhead", pod.Spec.Overhead)
	if pod.Spec.Resources != nil {
		err = cmp.Or(err, checkRequirements("spec.resources", pod.Spec.Resources))
	}
	for i := range pod.Spec.InitContainers {
		err = cmp.Or(err, checkRequirements(fmt.Sprintf("spec.initContainers[%d].resources", i), &pod.Spec.InitContainers[i].Resources))
	}
	for i := range pod.Spec.Containers {
		err = cmp.Or(err, checkRequirements(fmt.Sprintf("spec.containers[%d].resources", i), &pod.Spec.Containers[i].Resources))
	}
	return err
}

// checkRequirements checks the requests and limits of a container or of a pod. Names that the API server refuses are errors, such as 5 in
// "cpu: 0,5".
func checkRequirements(field string, resources *v1.ResourceRequirements) error {
	for _, amounts := range []v1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if !strings.Contains(string(name), "/") && !helper.IsStandardContainerResourceName(core.ResourceName(name)) {
				return fmt.Errorf("%s: unknown resource %q: must be cpu, memory, ephemeral-storage, hugepages-SIZE, or have a domain "+
					"such as nvidia.com/gpu", field, name)
			}
		}
	}
	return cmp.Or(checkAmounts(field+".requests", resources.Requests), checkAmounts(field+".limits", resources.Limits))
}

// checkAmounts checks the amounts in a field.
func checkAmounts(field string, amounts v1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		amount := amounts[name]
		if amount.Sign() < 0 || amount.CmpInt64(math.MaxInt64) > 0 {
			return fmt.Errorf(
				"%s: invalid value %q: must be at least 0, and below 8Ei",
				resources.ChildPath(field, string(name)),
				amount.String(),
			)
		}
	}
	return nil
}
