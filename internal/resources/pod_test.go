package resources

import (
	"math"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/plimsoll-k8s/plimsoll/test/support/clustertest"
)

// amounts returns a resource list from pairs of name and quantity.
var amounts = clustertest.Amounts

// container returns a container with requests and limits.
func container(requests, limits v1.ResourceList) v1.Container {
	return v1.Container{Name: "main", Resources: v1.ResourceRequirements{Requests: requests, Limits: limits}}
}

// sidecar returns a restartable init container.
func sidecar(c v1.Container) v1.Container {
	always := v1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

func containers(c ...v1.Container) []v1.Container { return c }

func TestNewPod(t *testing.T) {
	for name, tc := range map[string]struct {
		spec v1.PodSpec
		// want has the amounts to compare; other resources are ignored.
		want map[v1.ResourceName]Amount
	}{
		// 500m + 250m = 750m, limits 1 + 2 = 3; memory 1 Gi + 2 Gi, one of two with a limit
		"the sum of the containers": {
			v1.PodSpec{Containers: containers(container(amounts("cpu", "500m", "memory", "1Gi"), amounts("cpu", "1", "memory", "4Gi")),
				container(amounts("cpu", "250m", "memory", "2Gi"), amounts("cpu", "2")))},
			map[v1.ResourceName]Amount{
				"cpu":               {Request: 750, Limit: 3000},
				"memory":            {Request: 3 << 30, Limit: 4 << 30, Unbounded: true},
				"ephemeral-storage": {Unbounded: true},
			},
		},
		// the larger of 100m + 200m and 1; limits the larger of 1 + 1 and 3
		"an init container with larger amounts": {
			v1.PodSpec{
				InitContainers: containers(container(amounts("cpu", "1"), amounts("cpu", "3"))),
				Containers: containers(container(amounts("cpu", "100m"), amounts("cpu", "1")),
					container(amounts("cpu", "200m"), amounts("cpu", "1"))),
			},
			map[v1.ResourceName]Amount{"cpu": {Request: 1000, Limit: 3000}},
		},
		// init containers run sequentially: max(400m, 300m), not 700m
		"init containers with smaller amounts": {
			v1.PodSpec{
				InitContainers: containers(container(amounts("cpu", "400m"), amounts("cpu", "400m")),
					container(amounts("cpu", "300m"), amounts("cpu", "300m"))),
				Containers: containers(container(amounts("cpu", "500m"), amounts("cpu", "500m"))),
			},
			map[v1.ResourceName]Amount{"cpu": {Request: 500, Limit: 500}},
		},
		// a sidecar runs with the containers: 200m + 500m = 700m, limits 1 + 1 = 2
		"a sidecar": {
			v1.PodSpec{
				InitContainers: containers(sidecar(container(amounts("cpu", "200m"), amounts("cpu", "1")))),
				Containers:     containers(container(amounts("cpu", "500m"), amounts("cpu", "1"))),
			},
			map[v1.ResourceName]Amount{"cpu": {Request: 700, Limit: 2000}},
		},
		// the init container runs with the sidecar before it, 200m + 900m, but not
		// with the one after it: max(1100m, 200m + 300m + 500m) = 1100m;
		// limits max(1 + 2, 1 + 1 + 1) = 3
		"an init container between two sidecars": {
			v1.PodSpec{
				InitContainers: containers(
					sidecar(container(amounts("cpu", "200m"), amounts("cpu", "1"))), container(amounts("cpu", "900m"), amounts("cpu", "2")),
					sidecar(container(amounts("cpu", "300m"), amounts("cpu", "1"))),
				),
				Containers: containers(container(amounts("cpu", "500m"), amounts("cpu", "1"))),
			},
			map[v1.ResourceName]Amount{"cpu": {Request: 1100, Limit: 3000}},
		},
		// cpu 500m + 100m, limit 1 + 100m; no limit of memory to add overhead to
		"overhead": {
			v1.PodSpec{
				Overhead:   amounts("cpu", "100m", "memory", "64Mi"),
				Containers: containers(container(amounts("cpu", "500m", "memory", "1Gi"), amounts("cpu", "1"))),
			},
			map[v1.ResourceName]Amount{
				"cpu":    {Request: 600, Limit: 1100},
				"memory": {Request: 1<<30 + 64<<20, Unbounded: true},
			},
		},
		// the pod-level limit bounds cpu and memory; ephemeral storage has no pod-level limit
		"pod-level limits": {
			v1.PodSpec{
				Resources: &v1.ResourceRequirements{
					Requests: amounts("cpu", "1"), Limits: amounts("cpu", "2", "memory", "1Gi", "ephemeral-storage", "1Gi"),
				},
				Containers: containers(container(amounts("cpu", "500m"), nil), container(nil, nil)),
			},
			map[v1.ResourceName]Amount{
				"cpu":               {Request: 1000, Limit: 2000},
				"memory":            {Limit: 1 << 30},
				"ephemeral-storage": {Unbounded: true},
			},
		},
		// the pod-level limit overrides the sum of 4 over the containers
		"a pod-level limit below those of the containers": {
			v1.PodSpec{
				Resources:  &v1.ResourceRequirements{Limits: amounts("cpu", "1")},
				Containers: containers(container(nil, amounts("cpu", "2")), container(nil, amounts("cpu", "2"))),
			},
			map[v1.ResourceName]Amount{"cpu": {Limit: 1000}},
		},
		"an init container without a limit": {
			v1.PodSpec{
				InitContainers: containers(container(nil, nil)),
				Containers:     containers(container(nil, amounts("cpu", "1", "memory", "1Gi", "ephemeral-storage", "1Gi"))),
			},
			map[v1.ResourceName]Amount{
				"cpu":               {Limit: 1000, Unbounded: true},
				"memory":            {Limit: 1 << 30, Unbounded: true},
				"ephemeral-storage": {Limit: 1 << 30, Unbounded: true},
			},
		},
		// 2 + 1 devices; 64 Mi of huge pages in one container of two
		"devices and huge pages": {
			v1.PodSpec{Containers: containers(
				container(amounts("nvidia.com/gpu", "2", "hugepages-2Mi", "64Mi"), amounts("nvidia.com/gpu", "2", "hugepages-2Mi", "64Mi")),
				container(amounts("nvidia.com/gpu", "1"), amounts("nvidia.com/gpu", "1")), container(nil, nil),
			)},
			map[v1.ResourceName]Amount{"nvidia.com/gpu": {Request: 3, Limit: 3}, "hugepages-2Mi": {Request: 64 << 20, Limit: 64 << 20}},
		},
		// 8 x 10^18 + 8 x 10^18 bytes do not fit
		"a sum that saturates": {
			v1.PodSpec{Containers: containers(container(amounts("memory", "8E", "cpu", "8E"), amounts("memory", "8E", "cpu", "8E")),
				container(amounts("memory", "8E", "cpu", "8E"), amounts("memory", "8E", "cpu", "8E")))},
			map[v1.ResourceName]Amount{
				"memory": {Request: math.MaxInt64, Limit: math.MaxInt64},
				"cpu":    {Request: math.MaxInt64, Limit: math.MaxInt64},
			},
		},
		"negative amounts": {
			v1.PodSpec{Containers: containers(container(
				amounts("cpu", "-1", "memory", "-1Gi", "nvidia.com/gpu", "-1"), amounts("cpu", "-2", "memory", "-1Gi"),
			))},
			map[v1.ResourceName]Amount{"cpu": {Unbounded: true}, "memory": {Unbounded: true}, "nvidia.com/gpu": {}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := NewPod(&v1.Pod{Spec: tc.spec})
			for name, want := range tc.want {
				if got := pod.Get(NewResource(name)); got != want {
					t.Errorf("%s: %+v, want %+v", name, got, want)
				}
			}
		})
	}
}

func TestNewPodDuringResize(t *testing.T) {
	status := func(allocated, limits string) v1.PodStatus {
		return v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{
			Name: "main", AllocatedResources: amounts("cpu", allocated),
			Resources: &v1.ResourceRequirements{Requests: amounts("cpu", allocated), Limits: amounts("cpu", limits)},
		}}}
	}
	infeasible := status("1", "2")
	infeasible.Conditions = []v1.PodCondition{{Type: v1.PodResizePending, Reason: v1.PodReasonInfeasible}}
	for name, tc := range map[string]struct {
		request, limit string
		status         v1.PodStatus
		want           Amount
	}{
		// the kubelet has allocated 2 and 4, the spec has 1 and 2: the larger counts
		"down, not yet accepted": {"1", "2", status("2", "4"), Amount{Request: 2000, Limit: 4000}},
		// the spec has 3 and 4, the kubelet has allocated 1 and 2: the larger counts
		"up, not yet accepted": {"3", "4", status("1", "2"), Amount{Request: 3000, Limit: 4000}},
		// infeasible: the allocated amount counts
		"up, infeasible": {"30", "40", infeasible, Amount{Request: 1000, Limit: 2000}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := v1.PodSpec{Containers: containers(container(amounts("cpu", tc.request), amounts("cpu", tc.limit)))}
			pod := NewPod(&v1.Pod{Spec: spec, Status: tc.status})
			if got := pod.Get(CPUResource); got != tc.want {
				t.Errorf("cpu: %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestAmount(t *testing.T) {
	for name, tc := range map[string]struct {
		resource v1.ResourceName
		quantity string
		want     int64
	}{
		"cores":              {"cpu", "2", 2000},
		"millicores":         {"cpu", "1500m", 1500},
		"nanocores round up": {"cpu", "1n", 1},
		"kibibytes":          {"memory", "3Ki", 3072},
		"half a byte":        {"memory", "500m", 1},
		"nothing":            {"cpu", "0", 0},
		"negative cpu":       {"cpu", "-1", 0},
		"negative memory":    {"memory", "-1Gi", 0},
		// 9223372036854775 cores are 9223372036854775000 millicores, the largest number that fits
		"largest cpu":   {"cpu", "9223372036854775", 9223372036854775000},
		"one core more": {"cpu", "9223372036854776", math.MaxInt64},
		"9E of cpu":     {"cpu", "9E", math.MaxInt64},
		"8E of memory":  {"memory", "8E", 8e18},
		// 2^63 bytes do not fit; the parser of quantities already saturates
		"8Ei of memory": {"memory", "8Ei", math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := NewResource(tc.resource).Amount(resource.MustParse(tc.quantity)); got != tc.want {
				t.Errorf("%s of %s: %d, want %d", tc.quantity, tc.resource, got, tc.want)
			}
		})
	}
}
