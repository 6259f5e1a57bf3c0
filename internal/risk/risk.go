// Package risk estimates how much a node is overcommitted: the arithmetic of the
// LowRiskOverCommitment plugin, without Kubernetes.
//
// Two things can go wrong if limits exceed requests. The limits may exceed what the node can
// provide (limit risk), and the pods may use more than they request (load risk, estimated from a
// beta distribution fitted to the measured mean and standard deviation). Both are in [0, 1], for
// each resource separately; the risk of a node is the highest risk of its resources.
//
// The model is from the LowRiskOverCommitment plugin of kubernetes-sigs/scheduler-plugins;
// docs/plugins/lowriskovercommitment.md lists the differences.
package risk

import "math"

// The idle utilization: the fraction of its allocatable amount that a node without any requests may
// use before its load counts as overuse. The operating system, the kubelet and node agents use a few
// percent of the CPU and, on small nodes, up to a quarter of the memory. Without this allowance an
// idle node would look as risky as an overloaded one to a pod with small or no requests.
const (
	idleCPU    = 0.1
	idleMemory = 0.25
)

// The defaults of the Model, and of the plugin LowRiskOverCommitment.
const (
	DefaultWindow      = 5
	DefaultLimitWeight = 0.5
)

// Model holds the parameters that turn limit risk and load risk into one risk.
type Model struct {
	// Window is the number of samples that measured deviations are averaged over, at least 1.
	Window float64
	// LimitWeight is the weight of limit risk, in [0, 1]; load risk has the rest.
	LimitWeight float64
}

// Resource is one resource of one node with the requests and limits of its pods, all in one unit.
type Resource struct {
	// Capacity is the allocatable amount of the node.
	Capacity float64
	// Machine is the capacity of the whole machine. Load is a fraction of it.
	Machine float64
	// Requests and Limits are the sums over the pods on the node. The limit of a pod counts as at
	// least its request.
	Requests, Limits float64
	// Unbounded is set if one of these pods has a container without a limit.
	Unbounded bool
	// PodRequest, PodLimit and PodUnbounded are the same for the pending pod.
	PodRequest, PodLimit float64
	PodUnbounded         bool
	// Recent is the expected use of pods that arrived too late to be included in the measured load.
	Recent float64
	// Idle is the idle utilization: idleCPU or idleMemory.
	Idle float64
}

// NewCPU returns the CPU of a node. A machine has at least the allocatable amount.
func NewCPU(allocatable, machine float64) Resource {
	return Resource{Capacity: allocatable, Machine: max(machine, allocatable), Idle: idleCPU}
}

// NewMemory returns the memory of a node. A machine has at least the allocatable amount.
func NewMemory(allocatable, machine float64) Resource {
	return Resource{Capacity: allocatable, Machine: max(machine, allocatable), Idle: idleMemory}
}

// AddPod adds the request and the limit of a pod on the node to the sums.
func (r *Resource) AddPod(request, limit float64, unbounded bool) {
	r.Requests += request
	r.Limits += max(limit, request)
	r.Unbounded = r.Unbounded || unbounded
}

// Combine returns the weighted mean of limit risk and load risk.
func (m Model) Combine(limitRisk, loadRisk float64) float64 {
	return m.LimitWeight*limitRisk + (1-m.LimitWeight)*loadRisk
}

// LimitRisk returns the fraction of the limits beyond the requests that the node could not provide
// with the pending pod:
//
//	request = requests with the pod, at most the capacity
//	limit   = limits with the pod; at least the capacity if a pod is unbounded
//	excess  = limit - request, allowed = min(limit, capacity) - request
//	risk    = 1 - allowed / excess, 0 if there is no excess
func (r Resource) LimitRisk() float64 {
	request, limit := min(r.Requests+r.PodRequest, r.Capacity), r.Limits+r.PodLimit
	if r.Unbounded || r.PodUnbounded {
		limit = max(limit, r.Capacity)
	}
	excess := limit - request
	if excess <= 0 {
		return 0
	}
	allowed := max(min(limit, r.Capacity)-request, 0)
	return 1 - allowed/excess
}

// LoadRisk returns the probability that the pods on the node use more than they request, given that
// they stay within their limits. Load is a fraction of the whole machine; window is the number of
// samples that its deviation is averaged over, at least 1.
//
// The expected use of recent pods is added to the mean. Otherwise a node would look safer with each
// new pod, because requests count immediately and use does not.
//
// The threshold is the requests of the pods on the node. If they request nothing, it is the request
// of the pending pod, and at least the idle utilization. The bound is the sum of the limits, if all
// pods are bounded and the sum is less than the capacity.
func (r Resource) LoadRisk(load Load, window float64) float64 {
	if r.Recent > 0 && r.Machine > 0 {
		load.Mean = min(load.Mean+r.Recent/r.Machine, 1)
	}
	threshold, bound := r.thresholdAndBound()
	return fitBeta(load.RelativeTo(r.Machine, r.Capacity), window).overuse(threshold, bound)
}

// thresholdAndBound returns the threshold and the bound of LoadRisk, as fractions of the capacity.
func (r Resource) thresholdAndBound() (threshold, bound float64) {
	if r.Capacity <= 0 {
		return 0, 1
	}
	threshold = r.Requests / r.Capacity
	if r.Requests <= 0 {
		threshold = max(r.PodRequest/r.Capacity, r.Idle)
	}
	bound = 1
	if !r.Unbounded && r.Limits > 0 && r.Limits < r.Capacity {
		bound = r.Limits / r.Capacity
	}
	return min(threshold, 1), bound
}

// Score converts the risk of a node into its score: 100 for risk 0, 0 for risk 1, rounded to the
// nearest integer. NaN counts as the highest risk.
func Score(risk float64) int64 {
	if math.IsNaN(risk) {
		return 0
	}
	return int64(math.Round(100 * (1 - min(max(risk, 0), 1))))
}
