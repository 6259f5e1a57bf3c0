package resources

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// podOptions are the options of the scheduler's own accounting: the new size of a resized container
// counts as soon as the kubelet has accepted it.
var podOptions = resource.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// Amount holds the request and the limit of a pod for one resource.
type Amount struct {
	// Request is the amount reserved for the pod. Limit is the sum of the declared limits. Both are
	// the larger of the sum over the containers and the maximum of the init containers, plus overhead.
	Request, Limit int64
	// Unbounded is set if a container declares no limit, so that the pod may use the whole node
	// regardless of Limit. It is only set for CPU, memory and ephemeral storage: a container cannot
	// use more huge pages or devices than it requests.
	Unbounded bool
}

// NamedAmount is the amount of an extended resource.
type NamedAmount struct {
	Name v1.ResourceName
	Amount
}

// numUnboundable is the number of resources that a container without a limit may use without bound, the first of Index.
const numUnboundable = 3

// Pod holds the amounts of a pod for every resource.
type Pod struct {
	common [numUnboundable]Amount
	// Extended are the amounts of the other resources, sorted by name.
	Extended []NamedAmount

	workload WorkloadKey
}

// Workload returns the workload that the pod belongs to.
func (p *Pod) Workload() WorkloadKey { return p.workload }

// Requests returns the requests of a pod for every resource.
func Requests(pod *v1.Pod) v1.ResourceList {
	return resource.PodRequests(pod, podOptions)
}

// NewPod returns the amounts of a pod.
func NewPod(pod *v1.Pod) Pod {
	p := Pod{workload: WorkloadOf(pod).Key()}
	requests, limits := totals(pod)
	for name, quantity := range requests {
		r := NewResource(name)
		p.entry(r).Request = r.Amount(quantity)
	}
	for name, quantity := range limits {
		r := NewResource(name)
		p.entry(r).Limit = r.Amount(quantity)
	}
	for _, r := range []Resource{CPUResource, MemoryResource, EphemeralStorageResource} {
		p.entry(r).Unbounded = isUnbounded(pod, r)
	}
	slices.SortFunc(p.Extended, func(a, b NamedAmount) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return p
}

// totals returns the requests and the limits of a pod. A pending pod with one container has the lists of its container: the accounting of
// the scheduler takes 17 us and 24 allocations for it, in each scheduling cycle.
func totals(pod *v1.Pod) (requests, limits v1.ResourceList) {
	spec := &pod.Spec
	if len(spec.Containers) == 1 && len(spec.InitContainers) == 0 && spec.Overhead == nil && spec.Resources == nil &&
		len(pod.Status.ContainerStatuses) == 0 && !resource.IsPodResizeInfeasible(pod) {
		return spec.Containers[0].Resources.Requests, spec.Containers[0].Resources.Limits
	}
	return resource.PodRequests(pod, podOptions), resource.PodLimits(pod, podOptions)
}

// Get returns the amount of one resource.
func (p *Pod) Get(r Resource) Amount {
	if r.index < numUnboundable {
		return p.common[r.index]
	}
	for i := range p.Extended {
		if p.Extended[i].Name == r.name {
			return p.Extended[i].Amount
		}
	}
	return Amount{}
}

// entry returns a pointer to the amount of one resource, and adds the amount if it is missing.
func (p *Pod) entry(r Resource) *Amount {
	if r.index < numUnboundable {
		return &p.common[r.index]
	}
	for i := range p.Extended {
		if p.Extended[i].Name == r.name {
			return &p.Extended[i].Amount
		}
	}
	p.Extended = append(p.Extended, NamedAmount{Name: r.name})
	return &p.Extended[len(p.Extended)-1].Amount
}

// isUnbounded reports whether neither the pod nor every one of its containers declares a limit for
// the resource. A limit of 0 counts as none, as in the kubelet.
func isUnbounded(pod *v1.Pod, r Resource) bool {
	if resource.IsSupportedPodLevelResource(r.name) && pod.Spec.Resources != nil && hasLimit(pod.Spec.Resources.Limits, r.name) {
		return false
	}
	lacksLimit := func(c v1.Container) bool { return !hasLimit(c.Resources.Limits, r.name) }
	return slices.ContainsFunc(pod.Spec.Containers, lacksLimit) || slices.ContainsFunc(pod.Spec.InitContainers, lacksLimit)
}

func hasLimit(limits v1.ResourceList, name v1.ResourceName) bool {
	quantity, ok := limits[name]
	return ok && quantity.Sign() > 0
}
