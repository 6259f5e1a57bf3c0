package noderes

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/resource"
)

// podOptions are those of the scheduler's own accounting: what a container
// was resized to counts as soon as the kubelet has agreed to it.
var podOptions = resource.PodResourcesOptions{
	UseStatusResources: true,
	InPlacePodLevelResourcesVerticalScalingEnabled: true,
}

// Amount is what a pod asks of one resource.
type Amount struct {
	// Request is reserved for the pod, Limit the most it may use, as far as it
	// declares one. Both are the larger of what its containers sum up to and
	// what its init containers need, with overhead.
	Request, Limit int64
	// Unbounded: a container declares no limit, so that the pod may use all the
	// node has, whatever Limit says. So it is of CPU, memory and ephemeral
	// storage only: of huge pages and devices a container gets what it asks for.
	Unbounded bool
}

type named struct {
	name v1.ResourceName
	Amount
}

// Pod is what a pod asks of every resource.
type Pod struct {
	cpu, memory, ephemeralStorage Amount
	// scalars are sorted by name, and few.
	scalars []named
}

// Requests returns what a pod requests of every resource.
func Requests(pod *v1.Pod) v1.ResourceList { return resource.PodRequests(pod, podOptions) }

// NewPod reads the amounts of a pod.
func NewPod(pod *v1.Pod) Pod {
	var p Pod
	requests, limits := Requests(pod), resource.PodLimits(pod, podOptions)
	for name, quantity := range requests {
		r := NewResource(name)
		p.at(r).Request = r.Amount(quantity)
	}
	for name, quantity := range limits {
		r := NewResource(name)
		p.at(r).Limit = r.Amount(quantity)
	}
	for _, r := range []Resource{CPU, Memory, EphemeralStorage} {
		p.at(r).Unbounded = unbounded(pod, r)
	}
	slices.SortFunc(p.scalars, func(a, b named) int { return strings.Compare(string(a.name), string(b.name)) })
	return p
}

// Of returns what the pod asks of one resource.
func (p *Pod) Of(r Resource) Amount {
	switch r.kind {
	case cpu:
		return p.cpu
	case memory:
		return p.memory
	case ephemeralStorage:
		return p.ephemeralStorage
	case scalar:
	}
	for i := range p.scalars {
		if p.scalars[i].name == r.name {
			return p.scalars[i].Amount
		}
	}
	return Amount{}
}

// at returns the place of one resource, made if need be.
func (p *Pod) at(r Resource) *Amount {
	switch r.kind {
	case cpu:
		return &p.cpu
	case memory:
		return &p.memory
	case ephemeralStorage:
		return &p.ephemeralStorage
	case scalar:
	}
	for i := range p.scalars {
		if p.scalars[i].name == r.name {
			return &p.scalars[i].Amount
		}
	}
	p.scalars = append(p.scalars, named{name: r.name})
	return &p.scalars[len(p.scalars)-1].Amount
}

// unbounded reports whether nothing holds the pod's use of the resource:
// neither a limit of the pod nor one of every container. A limit of zero is
// none, as it is to the kubelet.
func unbounded(pod *v1.Pod, r Resource) bool {
	if resource.IsSupportedPodLevelResource(r.name) && pod.Spec.Resources != nil && declares(pod.Spec.Resources.Limits, r.name) {
		return false
	}
	lacksLimit := func(c v1.Container) bool { return !declares(c.Resources.Limits, r.name) }
	return slices.ContainsFunc(pod.Spec.Containers, lacksLimit) || slices.ContainsFunc(pod.Spec.InitContainers, lacksLimit)
}

func declares(limits v1.ResourceList, name v1.ResourceName) bool {
	quantity, ok := limits[name]
	return ok && quantity.Sign() > 0
}
