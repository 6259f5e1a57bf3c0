package recording

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// WorkloadRequests are requests that the pods of a workload get in place of their own.
type WorkloadRequests struct {
	Namespace string `json:"namespace"`
	Kind      string `json:"kind"`
	Name      string `json:"name"`
	// CPU in millicores and Memory in bytes are the requests of a pod, 0 to keep its own.
	CPU    int64 `json:"milliCPU,omitempty"`
	Memory int64 `json:"memory,omitempty"`
}

// SetRequests changes the requests of the pods of workloads. Generated usage remains a multiple of the original requests.
func (in *Input) SetRequests(list []WorkloadRequests) {
	if len(list) == 0 {
		return
	}
	byWorkload := make(map[resources.Workload]*WorkloadRequests, len(list))
	for i := range list {
		r := &list[i]
		byWorkload[resources.Workload{Namespace: r.Namespace, Kind: r.Kind, Name: r.Name}] = r
	}
	for i := range in.Pods {
		p := &in.Pods[i]
		if r := byWorkload[resources.WorkloadOf(p.Object)]; r != nil {
			p.Object = SetRequests(p.Object, r.CPU, r.Memory)
			p.Requests, p.Resources, p.Shape = PodAmounts(p.Object), demandOf(p.Object), 0
		}
	}
	setShapes(in.Pods)
}

// SetRequests returns a copy of a pod whose containers request an amount of CPU, in millicores, and of memory, in bytes, together; 0 keeps
// their own. They share the amount by what they requested, equally if they requested nothing. Sidecars keep their requests, which are
// a part of the amount. Memory is rounded up to whole MiB. Limits are raised to the requests; those of a Guaranteed pod follow them.
func SetRequests(pod *v1.Pod, milliCPU, memory int64) *v1.Pod {
	changed := *pod
	changed.Spec.Containers = make([]v1.Container, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].DeepCopyInto(&changed.Spec.Containers[i])
	}
	changed.Spec.Resources = pod.Spec.Resources.DeepCopy()
	follow := qos.GetPodQOS(pod) == v1.PodQOSGuaranteed
	for name, amount := range map[v1.ResourceName]int64{v1.ResourceCPU: milliCPU, v1.ResourceMemory: memory} {
		if amount <= 0 {
			continue
		}
		if changed.Spec.Resources != nil && !changed.Spec.Resources.Requests.Name(name, resource.DecimalSI).IsZero() {
			setRequest(changed.Spec.Resources, name, amount, follow)
		}
		for _, sidecar := range resources.RunningContainers(&pod.Spec)[len(pod.Spec.Containers):] {
			amount -= amountOf(sidecar.Resources.Requests, name)
		}
		shareRequest(changed.Spec.Containers, name, max(amount, 1), follow)
	}
	return &changed
}

// shareRequest makes containers request an amount of a resource together.
func shareRequest(containers []v1.Container, name v1.ResourceName, amount int64, follow bool) {
	var sum int64
	for i := range containers {
		sum += amountOf(containers[i].Resources.Requests, name)
	}
	rest := amount
	for i := range containers {
		share := amount / int64(len(containers))
		if sum > 0 {
			share = int64(float64(amount) * float64(amountOf(containers[i].Resources.Requests, name)) / float64(sum))
		}
		if i == len(containers)-1 {
			share = rest
		}
		rest -= share
		setRequest(&containers[i].Resources, name, share, follow)
	}
}

// setRequest sets a request, and a limit if it is below or follows.
func setRequest(r *v1.ResourceRequirements, name v1.ResourceName, amount int64, follow bool) {
	if r.Requests == nil {
		r.Requests = v1.ResourceList{}
	}
	quantity := resource.NewQuantity(resources.Multiply(resources.DivUp(amount, 1<<20), 1<<20), resource.BinarySI)
	if name == v1.ResourceCPU {
		quantity = resource.NewMilliQuantity(amount, resource.DecimalSI)
	}
	r.Requests[name] = *quantity
	if limit, ok := r.Limits[name]; ok && (follow || limit.Cmp(*quantity) < 0) {
		r.Limits[name] = *quantity
	}
}

// amountOf returns millicores of CPU or bytes of memory in a list.
func amountOf(list v1.ResourceList, name v1.ResourceName) int64 {
	amounts := resources.CPUAndMemory(list)
	if name == v1.ResourceCPU {
		return amounts.CPU
	}
	return amounts.Memory
}
