package cache

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	accounting "k8s.io/component-helpers/resource"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// The oracle computes the amounts at each phase of the pod.
func TestNewPodAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		amounts, oracle := resources.NewPod(pod), recountSpecs([]*v1.Pod{pod})
		for _, name := range resourceNames {
			got := amounts.Get(resources.NewResource(name))
			var sum resources.Sum
			sum.Add(got)
			if sum != oracle[name] {
				t.Fatalf("%s: amounts %+v make %+v, want %+v\n%s", name, got, sum, oracle[name], describe(pod))
			}
		}
	})
}

// What the status of a pod says changes its amounts only as in the scheduler's own accounting.
func TestTotalsAgainstSchedulerAccounting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pod := drawPod(t)
		drawList := func(spec v1.ResourceList) v1.ResourceList {
			switch rapid.IntRange(0, 3).Draw(t, "list") {
			case 0:
				return nil
			case 1:
				return amounts("cpu", "2", "memory", "3")
			}
			return spec.DeepCopy()
		}
		for i := range pod.Spec.Containers {
			c := &pod.Spec.Containers[i]
			c.Name = fmt.Sprint("c", i)
			if rapid.IntRange(0, 3).Draw(t, "hasStatus") == 0 {
				continue
			}
			status := v1.ContainerStatus{Name: c.Name, AllocatedResources: drawList(c.Resources.Requests)}
			if rapid.Bool().Draw(t, "hasResources") {
				status.Resources = &v1.ResourceRequirements{Requests: drawList(c.Resources.Requests), Limits: drawList(c.Resources.Limits)}
			}
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		if rapid.IntRange(0, 4).Draw(t, "isInfeasible") == 0 {
			pod.Status.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}}
		}
		options := accounting.PodResourcesOptions{UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true}
		got, requests, limits := resources.NewPod(pod), accounting.PodRequests(pod, options), accounting.PodLimits(pod, options)
		for _, name := range resourceNames {
			r := resources.NewResource(name)
			if amount := got.Get(r); amount.Request != r.Amount(requests[name]) || amount.Limit != r.Amount(limits[name]) {
				t.Fatalf("%s: %+v, want request %v, limit %v", name, amount, requests[name], limits[name])
			}
		}
	})
}
