package recording

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// container returns a container with requests and limits of CPU in millicores, 0 for none.
func container(name string, request, limit int64) v1.Container {
	c := v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}}
	if request > 0 {
		c.Resources.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity(request, resource.DecimalSI)
	}
	if limit > 0 {
		c.Resources.Limits[v1.ResourceCPU] = *resource.NewMilliQuantity(limit, resource.DecimalSI)
	}
	return c
}

func TestSetRequests(t *testing.T) {
	sidecar := container("proxy", 100, 0)
	sidecar.RestartPolicy = new(v1.ContainerRestartPolicyAlways)
	for name, tc := range map[string]struct {
		pod  v1.PodSpec
		cpu  int64
		want string // name, request and limit of each container
	}{
		// 3:1 of 200.
		"in proportion": {v1.PodSpec{Containers: []v1.Container{container("a", 300, 0), container("b", 100, 0)}}, 200, "a 150m 0, b 50m 0"},
		"equally":       {v1.PodSpec{Containers: []v1.Container{container("a", 0, 0), container("b", 0, 0)}}, 200, "a 100m 0, b 100m 0"},
		// The sidecar keeps 100 of 300.
		"beside a sidecar": {v1.PodSpec{
			Containers: []v1.Container{container("a", 400, 0)}, InitContainers: []v1.Container{sidecar},
		}, 300, "a 200m 0"},
		// 60 - 100 leaves nothing: 25 at least, and of 10 no more than that.
		"beside a sidecar with more": {v1.PodSpec{
			Containers: []v1.Container{container("a", 30, 0)}, InitContainers: []v1.Container{sidecar},
		}, 60, "a 25m 0"},
		"beside a sidecar, below the least": {v1.PodSpec{
			Containers: []v1.Container{container("a", 30, 0)}, InitContainers: []v1.Container{sidecar},
		}, 10, "a 10m 0"},
		"an injected container": {v1.PodSpec{
			Containers: []v1.Container{container("a", 100, 0), container("linkerd-proxy", 50, 0), container("b", 100, 0)},
		}, 250, "a 100m 0, linkerd-proxy 50m 0, b 100m 0"},
		"a gateway":           {v1.PodSpec{Containers: []v1.Container{container("istio-proxy", 100, 0)}}, 250, "istio-proxy 250m 0"},
		"the limit is raised": {v1.PodSpec{Containers: []v1.Container{container("a", 100, 150)}}, 200, "a 200m 200m"},
		"the limit stays":     {v1.PodSpec{Containers: []v1.Container{container("a", 100, 500)}}, 200, "a 200m 500m"},
		"kept":                {v1.PodSpec{Containers: []v1.Container{container("a", 100, 500)}}, 0, "a 100m 500m"},
	} {
		before := &v1.Pod{Spec: tc.pod}
		after, got := SetRequests(before, tc.cpu, 0), ""
		for i := range after.Spec.Containers {
			c := &after.Spec.Containers[i]
			if i > 0 {
				got += ", "
			}
			got += fmt.Sprintf("%s %s %s", c.Name, c.Resources.Requests.Cpu(), c.Resources.Limits.Cpu())
		}
		if got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// The containers of a pod request what was set together, and at most their limits.
func TestSetRequestsInSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 100_000)
		pod := &v1.Pod{}
		for i := range rapid.IntRange(1, 4).Draw(t, "containers") {
			pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprint(i),
				rapid.OneOf(rapid.Just(int64(0)), amount).Draw(t, "request"), rapid.OneOf(rapid.Just(int64(0)), amount).Draw(t, "limit")))
		}
		cpu := amount.Draw(t, "CPU")
		after := SetRequests(pod, cpu, 0)
		if got := resources.CPUAndMemory(resources.Requests(after)).CPU; got != cpu {
			t.Fatalf("%d, want %d", got, cpu)
		}
		for i := range after.Spec.Containers {
			r := &after.Spec.Containers[i].Resources
			if limit, ok := r.Limits[v1.ResourceCPU]; ok && limit.Cmp(*r.Requests.Cpu()) < 0 {
				t.Fatalf("limit %s of request %s", &limit, r.Requests.Cpu())
			}
		}
	})
}
