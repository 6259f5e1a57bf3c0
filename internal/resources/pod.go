package resources

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/resource"
	"k8s.io/utils/ptr"
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
	// requests, limits and unbounded are the fields of the Amount of the first resources of Index.
	requests, limits [numUnboundable]int64
	unbounded        [numUnboundable]bool
	// Extended are the amounts of the other resources, sorted by name.
	Extended []NamedAmount

	workload WorkloadKey
}

// Workload returns the workload that the pod belongs to.
func (p *Pod) Workload() WorkloadKey { return p.workload }

// Requests returns the requests of a pod for every resource.
func Requests(pod *v1.Pod) v1.ResourceList {
	if only := onlyContainer(pod); only != nil && only.Requests != nil && isDeterminedBySpec(pod) {
		return maps.Clone(only.Requests) // PodRequests builds several maps
	}
	return resource.PodRequests(pod, podOptions)
}

// AssumedRequests returns the requests of a pod for CPU, in millicores, and memory, with kube-scheduler's defaults for containers without.
func AssumedRequests(pod *v1.Pod) (cpu, memory int64) {
	requests := v1.ResourceList(nil)
	if only := onlyContainer(pod); only != nil && isDeterminedBySpec(pod) && len(only.Requests) >= len(assumed) {
		requests = only.Requests
	}
	for name := range assumed {
		if _, found := requests[name]; !found {
			options := podOptions
			options.NonMissingContainerRequests = assumed
			requests = resource.PodRequests(pod, options)
			break
		}
	}
	return CPUResource.Amount(requests[v1.ResourceCPU]), MemoryResource.Amount(requests[v1.ResourceMemory])
}

// assumed are the requests that kube-scheduler assumes for containers without requests (pkg/scheduler/util.GetNonzeroRequests).
var assumed = v1.ResourceList{
	v1.ResourceCPU:    *apiresource.NewMilliQuantity(100, apiresource.DecimalSI),
	v1.ResourceMemory: *apiresource.NewQuantity(200<<20, apiresource.BinarySI),
}

// RequestsOfTemplate returns the requests of a pod that is created from a template. A limit without a request counts as the request, a
// limit of the pod only if no container requests the resource: the API server sets these defaults for pods, not for templates.
func RequestsOfTemplate(spec *v1.PodSpec) v1.ResourceList {
	pod := &v1.Pod{Spec: *spec.DeepCopy()}
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			defaultRequests(&containers[i].Resources, nil)
		}
	}
	if pod.Spec.Resources != nil {
		requests := resource.AggregateContainerRequests(pod, podOptions)
		maps.DeleteFunc(requests, func(name v1.ResourceName, _ apiresource.Quantity) bool {
			return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix) // are not overcommitted: the limit is the request
		})
		defaultRequests(pod.Spec.Resources, requests)
	}
	return resource.PodRequests(pod, podOptions)
}

// defaultRequests sets missing requests to the requests of containers, and to the limits if these are missing, too.
func defaultRequests(requirements *v1.ResourceRequirements, containers v1.ResourceList) {
	requests := v1.ResourceList{}
	maps.Copy(requests, requirements.Limits)
	maps.Copy(requests, containers)
	maps.Copy(requests, requirements.Requests)
	requirements.Requests = requests
}

// NewPod returns the amounts of a pod.
func NewPod(pod *v1.Pod) Pod {
	p := Pod{workload: WorkloadOf(pod).Key()}
	requests, limits := totals(pod)
	for i, r := range []Resource{CPUResource, MemoryResource, EphemeralStorageResource} {
		p.requests[i], p.limits[i], p.unbounded[i] = r.Amount(requests[r.name]), r.Amount(limits[r.name]), isUnbounded(pod, r)
	}
	for name, quantity := range requests {
		if r := NewResource(name); r.index >= numUnboundable {
			p.extended(r).Request = r.Amount(quantity)
		}
	}
	for name, quantity := range limits {
		if r := NewResource(name); r.index >= numUnboundable {
			p.extended(r).Limit = r.Amount(quantity)
		}
	}
	slices.SortFunc(p.Extended, func(a, b NamedAmount) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return p
}

// totals returns the requests and the limits of a pod. It returns the lists of the container of a pod that has only
// one: the scheduler's own accounting builds a dozen maps, for each pod that is pending or changes.
func totals(pod *v1.Pod) (requests, limits v1.ResourceList) {
	if only := onlyContainer(pod); only != nil && isDeterminedBySpec(pod) {
		return only.Requests, only.Limits
	}
	return resource.PodRequests(pod, podOptions), resource.PodLimits(pod, podOptions)
}

// onlyContainer returns the resources of the container of a pod that has no other resources, nil if it has.
func onlyContainer(pod *v1.Pod) *v1.ResourceRequirements {
	spec := &pod.Spec
	if len(spec.Containers) != 1 || len(spec.InitContainers) > 0 || spec.Overhead != nil || spec.Resources != nil {
		return nil
	}
	return &spec.Containers[0].Resources
}

// isDeterminedBySpec reports whether the spec of a pod alone determines its resources, which is true unless the
// pod is being resized.
func isDeterminedBySpec(pod *v1.Pod) bool {
	status := &pod.Status
	if status.Resources != nil || status.AllocatedResources != nil || len(status.InitContainerStatuses) > 0 ||
		resource.IsPodResizeInfeasible(pod) {
		return false
	}
	for i := range status.ContainerStatuses {
		s := &status.ContainerStatuses[i]
		if s.Resources == nil && s.AllocatedResources == nil {
			continue
		}
		c := slices.IndexFunc(pod.Spec.Containers, func(c v1.Container) bool { return c.Name == s.Name })
		if c < 0 || !repeats(s, &pod.Spec.Containers[c].Resources) {
			return false
		}
	}
	return true
}

// repeats reports whether the resources in the status of a container are equal to its spec, or missing.
func repeats(status *v1.ContainerStatus, spec *v1.ResourceRequirements) bool {
	same := func(list, of v1.ResourceList) bool {
		return list == nil || maps.EqualFunc(list, of, apiresource.Quantity.Equal)
	}
	return same(status.AllocatedResources, spec.Requests) &&
		(status.Resources == nil || same(status.Resources.Requests, spec.Requests) && same(status.Resources.Limits, spec.Limits))
}

// Get returns the amount of one resource.
func (p *Pod) Get(r Resource) Amount {
	if r.index < numUnboundable {
		return Amount{p.requests[r.index], p.limits[r.index], p.unbounded[r.index]}
	}
	for i := range p.Extended {
		if p.Extended[i].Name == r.name {
			return p.Extended[i].Amount
		}
	}
	return Amount{}
}

// extended returns a pointer to the amount of one of the other resources, and adds the amount if it is missing.
func (p *Pod) extended(r Resource) *Amount {
	for i := range p.Extended {
		if p.Extended[i].Name == r.name {
			return &p.Extended[i].Amount
		}
	}
	p.Extended = append(p.Extended, NamedAmount{Name: r.name})
	return &p.Extended[len(p.Extended)-1].Amount
}

// RunningContainers returns the containers of a pod that run at the same time: without init containers that are no sidecars.
func RunningContainers(spec *v1.PodSpec) []v1.Container {
	running := slices.Clip(spec.Containers) // append copies it
	for _, c := range spec.InitContainers {
		if ptr.Deref(c.RestartPolicy, "") == v1.ContainerRestartPolicyAlways {
			running = append(running, c)
		}
	}
	return running
}

// HostPorts returns the ports of the node that the running containers of a pod use. Containers on the network of the host use their
// ports.
func HostPorts(spec *v1.PodSpec) (out []v1.ContainerPort) {
	for _, container := range RunningContainers(spec) {
		for _, port := range container.Ports {
			if spec.HostNetwork && port.HostPort == 0 {
				port.HostPort = port.ContainerPort
			}
			if port.HostPort > 0 {
				out = append(out, v1.ContainerPort{
					ContainerPort: port.ContainerPort,
					HostPort:      port.HostPort,
					HostIP:        port.HostIP,
					Protocol:      cmp.Or(port.Protocol, v1.ProtocolTCP),
				})
			}
		}
	}
	return out
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

// Arrival is the time at which a pod was bound to its node, in microseconds since 1970.
type Arrival int64

const (
	// notBound is the arrival of a pod that the scheduler has assumed and not yet bound.
	notBound Arrival = math.MaxInt64
	// unknownArrival is the arrival of a pod that was never pending, such as a pod of a hand-written manifest.
	unknownArrival Arrival = math.MinInt64
)

// ArrivalOf returns the arrival of a pod.
func ArrivalOf(pod *v1.Pod) Arrival {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == v1.PodScheduled && c.Status == v1.ConditionTrue {
			if c.LastTransitionTime.IsZero() {
				return unknownArrival
			}
			return Arrival(c.LastTransitionTime.UnixMicro())
		}
	}
	switch {
	case pod.Status.StartTime != nil:
		return Arrival(pod.Status.StartTime.UnixMicro())
	case !pod.CreationTimestamp.IsZero() && (pod.Status.Phase == v1.PodPending || pod.Status.Phase == ""):
		return notBound
	}
	return unknownArrival
}

// MissingFraction returns the fraction of a window, given by its end and its length, during which the
// pod was not yet on its node, in [0, 1].
func (a Arrival) MissingFraction(end time.Time, window time.Duration) float64 {
	switch {
	case a == unknownArrival:
		return 0
	case a == notBound, a >= Arrival(end.Truncate(time.Second).UnixMicro()): // API times are whole seconds
		return 1
	case window <= 0:
		return 0
	}
	return min(max(1-end.Sub(time.UnixMicro(int64(a))).Seconds()/window.Seconds(), 0), 1)
}
