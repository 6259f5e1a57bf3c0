package recording

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// The smallest requests that are recommended: 25 millicores and 64 MiB. The containers of a pod have as much beside its sidecars.
const (
	MinMilliCPU = 25
	MinMemory   = 64 << 20
)

// injected are containers that admission adds to pods, and that templates lack.
var injected = []string{"istio-proxy", "linkerd-proxy", "daprd", "vault-agent"}

// OwnContainers returns the containers of a pod without those that admission usually adds, all if there are no others.
func OwnContainers(pod *v1.Pod) (own []*v1.Container) {
	all := make([]*v1.Container, len(pod.Spec.Containers))
	for i := range all {
		if all[i] = &pod.Spec.Containers[i]; !slices.Contains(injected, all[i].Name) {
			own = append(own, all[i])
		}
	}
	if len(own) == 0 {
		return all
	}
	return own
}

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
	changed := RequestsOf(list)
	for i := range in.Pods {
		p := &in.Pods[i]
		if pod := changed(p.Object); pod != p.Object {
			p.Object, p.Requests, p.Resources, p.Shape = pod, PodAmounts(pod), demandOf(pod), 0
		}
	}
	setShapes(in.Pods)
}

// RequestsOf returns a function that returns a copy of a pod with the requests of its workload in a list, or the pod itself.
func RequestsOf(list []WorkloadRequests) func(pod *v1.Pod) *v1.Pod {
	byWorkload := make(map[resources.Workload]*WorkloadRequests, len(list))
	for i := range list {
		r := &list[i]
		byWorkload[resources.Workload{Namespace: r.Namespace, Kind: r.Kind, Name: r.Name}] = r
	}
	return func(pod *v1.Pod) *v1.Pod {
		if r := byWorkload[resources.WorkloadOf(pod)]; r != nil {
			return SetRequests(pod, r.CPU, r.Memory)
		}
		return pod
	}
}

// SetRequests returns a copy of a pod whose containers request an amount of CPU, in millicores, and of memory, in bytes, together; 0 keeps
// their own. They share the amount by what they requested, equally if they requested nothing. Sidecars and containers that admission adds
// keep their requests, which are a part of the amount, but others have as much as is recommended at least. Memory is rounded up to whole
// MiB. Limits are raised to the requests; those of a Guaranteed pod follow them.
func SetRequests(pod *v1.Pod, milliCPU, memory int64) *v1.Pod {
	changed := *pod
	changed.Spec.Containers = make([]v1.Container, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].DeepCopyInto(&changed.Spec.Containers[i])
	}
	changed.Spec.Resources = pod.Spec.Resources.DeepCopy()
	follow := qos.GetPodQOS(pod) == v1.PodQOSGuaranteed
	own := OwnContainers(&changed)
	var sidecars []*v1.Container
	for i := range changed.Spec.Containers {
		if c := &changed.Spec.Containers[i]; !slices.Contains(own, c) {
			sidecars = append(sidecars, c)
		}
	}
	for i := range pod.Spec.InitContainers {
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == v1.ContainerRestartPolicyAlways {
			sidecars = append(sidecars, &pod.Spec.InitContainers[i])
		}
	}
	for _, r := range []struct {
		name            v1.ResourceName
		amount, minimum int64
	}{{v1.ResourceCPU, milliCPU, MinMilliCPU}, {v1.ResourceMemory, memory, MinMemory}} {
		if r.amount <= 0 {
			continue
		}
		kept := sumOf(sidecars, r.name)
		share := max(r.amount-kept, min(r.amount, r.minimum))
		if changed.Spec.Resources != nil && !changed.Spec.Resources.Requests.Name(r.name, resource.DecimalSI).IsZero() {
			setRequest(changed.Spec.Resources, r.name, kept+share, follow)
		}
		shareRequest(own, r.name, share, follow)
	}
	return &changed
}

// sumOf returns what containers request of a resource together.
func sumOf(containers []*v1.Container, name v1.ResourceName) (sum int64) {
	for _, c := range containers {
		sum += amountOf(c.Resources.Requests, name)
	}
	return sum
}

// shareRequest makes containers request an amount of a resource together.
func shareRequest(containers []*v1.Container, name v1.ResourceName, amount int64, follow bool) {
	sum, rest := sumOf(containers, name), amount
	for i, c := range containers {
		share := amount / int64(len(containers))
		if sum > 0 {
			share = int64(float64(amount) * float64(amountOf(c.Resources.Requests, name)) / float64(sum))
		}
		if i == len(containers)-1 {
			share = rest
		}
		rest -= share
		setRequest(&c.Resources, name, share, follow)
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
