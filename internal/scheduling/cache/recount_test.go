package cache

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

const gpu, hugePages v1.ResourceName = "nvidia.com/gpu", "hugepages-2Mi"

// resourceNames are the resources of drawn pods.
var resourceNames = []v1.ResourceName{"cpu", "memory", "ephemeral-storage", gpu, hugePages}

// podsDrawn makes the names of drawn pods unique.
var podsDrawn int

// drawPod draws a pod with small amounts in base units.
func drawPod(t *rapid.T) *v1.Pod {
	drawContainer := func(t *rapid.T) v1.Container {
		c := v1.Container{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{}, Limits: v1.ResourceList{}}}
		for _, name := range resourceNames {
			for _, list := range []v1.ResourceList{c.Resources.Requests, c.Resources.Limits} {
				if n := rapid.Int64Range(-2, 5).Draw(t, string(name)); n >= 0 {
					list[name] = *resource.NewQuantity(n, resource.DecimalSI)
				}
			}
		}
		return c
	}
	spec := v1.PodSpec{Containers: rapid.SliceOfN(rapid.Custom(drawContainer), 1, 3).Draw(t, "containers")}
	for range rapid.IntRange(0, 3).Draw(t, "initContainers") {
		c := drawContainer(t)
		if rapid.Bool().Draw(t, "isSidecar") {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	if rapid.Bool().Draw(t, "hasOverhead") {
		spec.Overhead = v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2")}
	}
	if rapid.Bool().Draw(t, "hasPodLimit") {
		spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{
			"cpu": resource.MustParse("7"), "ephemeral-storage": resource.MustParse("3"),
		}}
	}
	podsDrawn++
	name := fmt.Sprint("pod-", podsDrawn)
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: spec}
}

// recountSpecs is the oracle: a simple second implementation of the sums over pods, for small amounts,
// without the helpers of Kubernetes.
func recountSpecs(pods []*v1.Pod) map[v1.ResourceName]resources.Sum {
	sums := map[v1.ResourceName]resources.Sum{}
	for _, pod := range pods {
		for _, name := range resourceNames {
			sum := sums[name]
			request := need(pod, name, func(r v1.ResourceRequirements) v1.ResourceList { return r.Requests })
			limit := need(pod, name, func(r v1.ResourceRequirements) v1.ResourceList { return r.Limits })
			if o, has := amountOf(pod.Spec.Overhead, name); has {
				request += o
				if limit > 0 {
					limit += o
				}
			}
			sum.Request += request
			sum.FlooredLimit += max(limit, request)
			if lacksLimit(pod, name) {
				sum.PartialLimit += limit
				sum.Unbounded++
			} else {
				sum.Limit += limit
			}
			sums[name] = sum
		}
	}
	return sums
}

// need returns the largest amount of a pod in any phase: while each init container runs with the
// sidecars started before it, and while all containers run. A pod-level amount overrides it.
func need(pod *v1.Pod, name v1.ResourceName, list func(v1.ResourceRequirements) v1.ResourceList) int64 {
	if pod.Spec.Resources != nil && (name == v1.ResourceCPU || name == v1.ResourceMemory || strings.HasPrefix(string(name), "hugepages-")) {
		if n, has := amountOf(list(*pod.Spec.Resources), name); has {
			return n
		}
	}
	largest, sidecars := int64(0), int64(0)
	for _, c := range pod.Spec.InitContainers {
		n, _ := amountOf(list(c.Resources), name)
		largest = max(largest, sidecars+n)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			sidecars += n
		}
	}
	all := sidecars
	for _, c := range pod.Spec.Containers {
		n, _ := amountOf(list(c.Resources), name)
		all += n
	}
	return max(largest, all)
}

func lacksLimit(pod *v1.Pod, name v1.ResourceName) bool {
	switch name {
	case v1.ResourceCPU, v1.ResourceMemory:
		if pod.Spec.Resources != nil {
			if n, _ := amountOf(pod.Spec.Resources.Limits, name); n > 0 {
				return false
			}
		}
	case v1.ResourceEphemeralStorage:
	default:
		return false
	}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range containers {
			if n, _ := amountOf(c.Resources.Limits, name); n <= 0 {
				return true
			}
		}
	}
	return false
}

func amountOf(list v1.ResourceList, name v1.ResourceName) (int64, bool) {
	quantity, has := list[name]
	if name == v1.ResourceCPU {
		return quantity.MilliValue(), has
	}
	return quantity.Value(), has
}

// describe returns the name and the spec of a pod, for test failures.
func describe(pod *v1.Pod) string {
	spec, _ := yaml.Marshal(pod.Spec)
	return fmt.Sprintf("%s: %s", pod.Name, spec)
}
