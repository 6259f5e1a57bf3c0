package facts

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestBounded(t *testing.T) {
	good := v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("1Gi")}
	mixed := v1.ResourceList{v1.ResourceCPU: resource.MustParse("1e2147483647"), v1.ResourceMemory: resource.MustParse("1Gi")}
	memory := v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}
	node := &v1.Node{Status: v1.NodeStatus{Capacity: good, Allocatable: good}}
	if BoundedNode(node) != node {
		t.Error("a good node is copied")
	}
	node.Status.Capacity = mixed
	if got := BoundedNode(node); cmp.Diff(memory, got.Status.Capacity) != "" || len(got.Status.Allocatable) != 2 || len(mixed) != 2 {
		t.Errorf("%v", got.Status)
	}
	pod := func(list v1.ResourceList) *v1.Pod {
		resources := v1.ResourceRequirements{Requests: list, Limits: list}
		status := []v1.ContainerStatus{{Resources: &resources, AllocatedResources: list}}
		containers := []v1.Container{{Resources: resources}}
		return &v1.Pod{
			Spec: v1.PodSpec{Containers: containers, InitContainers: containers, Overhead: list, Resources: &resources},
			Status: v1.PodStatus{
				ContainerStatuses: status, InitContainerStatuses: status, Resources: &resources, AllocatedResources: list,
			},
		}
	}
	if p := pod(good); BoundedPod(p) != p {
		t.Error("a good pod is copied")
	}
	p := pod(mixed)
	if diff := cmp.Diff(pod(memory), BoundedPod(p)); diff != "" {
		t.Error(diff)
	}
	if len(p.Spec.Overhead) != 2 || len(p.Spec.Containers[0].Resources.Requests) != 2 {
		t.Error("the original is changed")
	}
}

func BenchmarkBoundedPod(b *testing.B) {
	list := v1.ResourceList{v1.ResourceCPU: resource.MustParse("500m"), v1.ResourceMemory: resource.MustParse("1Gi")}
	p := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: list, Limits: list}}}}}
	b.ReportAllocs()
	for b.Loop() {
		BoundedPod(p)
	}
}
