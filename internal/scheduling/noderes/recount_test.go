package noderes

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

const gpu, hugePages v1.ResourceName = "nvidia.com/gpu", "hugepages-2Mi"

// resourceNames are those that drawn pods ask for.
var resourceNames = []v1.ResourceName{"cpu", "memory", "ephemeral-storage", gpu, hugePages}

// podsDrawn makes the names of drawn pods differ.
var podsDrawn int

// drawPod draws any pod, small amounts in their base units.
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
		if rapid.Bool().Draw(t, "stays") {
			always := v1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		spec.InitContainers = append(spec.InitContainers, c)
	}
	if rapid.Bool().Draw(t, "hasOverhead") {
		spec.Overhead = v1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("2")}
	}
	if rapid.Bool().Draw(t, "hasPodLimit") {
		spec.Resources = &v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("7"), "ephemeral-storage": resource.MustParse("3")}}
	}
	podsDrawn++
	name := fmt.Sprint("pod-", podsDrawn)
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: spec}
}

// recountSpecs is the dumb second implementation: the sums over pods, straight from
// their specs, for small amounts. It knows nothing of Kubernetes' own helpers.
func recountSpecs(pods []*v1.Pod) map[v1.ResourceName]Sum {
	sums := map[v1.ResourceName]Sum{}
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
			if mayUseAnything(pod, name) {
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

// need returns the most that a pod needs at any moment: while each of its init
// containers runs, beside the sidecars started before it, and then while all
// of its containers do. What the pod itself declares comes before all that.
func need(pod *v1.Pod, name v1.ResourceName, list func(v1.ResourceRequirements) v1.ResourceList) int64 {
	if pod.Spec.Resources != nil && (name == v1.ResourceCPU || name == v1.ResourceMemory || strings.HasPrefix(string(name), "hugepages-")) {
		if n, has := amountOf(list(*pod.Spec.Resources), name); has {
			return n
		}
	}
	most, sidecars := int64(0), int64(0)
	for _, c := range pod.Spec.InitContainers {
		n, _ := amountOf(list(c.Resources), name)
		most = max(most, sidecars+n)
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			sidecars += n
		}
	}
	all := sidecars
	for _, c := range pod.Spec.Containers {
		n, _ := amountOf(list(c.Resources), name)
		all += n
	}
	return max(most, all)
}

func mayUseAnything(pod *v1.Pod, name v1.ResourceName) bool {
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
	for _, some := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for _, c := range some {
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

// describe prints what a pod asks for, for a failed test.
func describe(pod *v1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: overhead %s, pod %s", pod.Name, printed(pod.Spec.Overhead), requirements(pod.Spec.Resources))
	for _, c := range pod.Spec.InitContainers {
		fmt.Fprintf(&b, "\n  init (stays: %t) %s", c.RestartPolicy != nil, requirements(&c.Resources))
	}
	for _, c := range pod.Spec.Containers {
		fmt.Fprintf(&b, "\n  %s", requirements(&c.Resources))
	}
	return b.String()
}

func requirements(r *v1.ResourceRequirements) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("requests %s limits %s", printed(r.Requests), printed(r.Limits))
}

func printed(list v1.ResourceList) string {
	var parts []string
	for _, name := range resourceNames {
		if quantity, has := list[name]; has {
			parts = append(parts, string(name)+"="+quantity.String())
		}
	}
	return "{" + strings.Join(parts, " ") + "}"
}
