package noderes

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

func TestPendingIsComputedOncePerCycle(t *testing.T) {
	cache, all := NewCache(), &lister{}
	state := framework.NewCycleState()
	first := cache.Pending(state, podRequesting("a", 100), all)
	if got := first.Get(resources.CPUResource); got != (resources.Amount{Request: 100, Unbounded: true}) || first.InGroup {
		t.Errorf("%+v, in a group: %t", got, first.InGroup)
	}
	if cache.Pending(state, podRequesting("a", 100), all) != first {
		t.Error("computed again in the same cycle")
	}
	if cache.Pending(state.Clone(), podRequesting("a", 100), all) != first {
		t.Error("computed again in a clone of the cycle state")
	}
	if got := cache.Pending(framework.NewCycleState(), podRequesting("b", 200), all).Get(resources.CPUResource).Request; got != 200 {
		t.Errorf("in the next cycle: %d, want 200", got)
	}
}

func TestPendingOfAGroup(t *testing.T) {
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	if !NewCache().Pending(state, podRequesting("a", 100), &lister{}).InGroup {
		t.Error("InGroup is not set")
	}
}

// Pods with the same signature get the same scores, so the signature has all amounts that scores depend on.
func TestSign(t *testing.T) {
	pod := func(requests, limits v1.ResourceList) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: containers(container(requests, limits))}}
	}
	base := pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1"))
	tests := map[string]struct {
		pod  *v1.Pod
		same bool
	}{
		"same amounts in other units": {
			pod(amounts("cpu", "1000m", "memory", "1024Mi"), amounts("cpu", "2000m", "nvidia.com/gpu", "1")), true,
		},
		"another request": {pod(amounts("cpu", "1100m", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1")), false},
		"another limit":   {pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "3", "nvidia.com/gpu", "1")), false},
		"another device":  {pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "amd.com/gpu", "1")), false},
		"a limit of zero": {
			pod(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1", "memory", "0")), true,
		},
		"a container without a limit": {&v1.Pod{Spec: v1.PodSpec{Containers: containers(
			container(amounts("cpu", "1", "memory", "1Gi"), amounts("cpu", "2", "nvidia.com/gpu", "1")), container(nil, nil))}}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(Sign(base), Sign(tc.pod)); (diff == "") != tc.same {
				t.Errorf("the same: %t, want %t\n%s", diff == "", tc.same, diff)
			}
		})
	}
}
