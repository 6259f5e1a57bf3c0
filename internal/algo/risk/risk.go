// Package risk says how much a node risks by taking a pod: the arithmetic of
// the LowRiskOverCommitment plugin, without Kubernetes.
//
// Two things can go wrong where limits exceed requests. The pods may be
// promised more than the node has (limit risk: what the limits say), and they
// may use more than they asked for (load risk: what the measured load says,
// under a beta distribution fitted to its mean and deviation). Both are in
// [0, 1], for each resource by itself; a node is as risky as its riskiest
// resource.
//
// Source of the model: the LowRiskOverCommitment plugin of the Kubernetes
// scheduler plugins, from which it differs as docs/plugins says.
package risk

import "math"

// What a node without any requests may use of its allocatable amount before
// its load counts as overuse. The system, the kubelet and the agents of a
// machine that runs nothing else use a few percent of its CPU and, on small
// machines, up to a quarter of its memory. Without an allowance the idlest node
// looks as risky as an overrun one to a pod that asks for little or nothing.
const (
	IdleCPU    = 0.1
	IdleMemory = 0.25
)

// Resource is one resource of one node and what is asked of it, all in one
// unit.
type Resource struct {
	// Capacity is what the node lets pods have: its allocatable amount.
	Capacity float64
	// Machine is what the whole machine has; load is measured against it.
	Machine float64
	// Requests and Limits are the sums over the pods already on the node, each
	// pod's limit taken at least as high as its request.
	Requests, Limits float64
	// Unbounded: one of these pods has a container without a limit.
	Unbounded bool
	// PodRequest, PodLimit and PodUnbounded are the same for the pending pod.
	PodRequest, PodLimit float64
	PodUnbounded         bool
	// Recent is what pods on the node are expected to use that came too late for
	// the measured load to have it.
	Recent float64
	// Idle is the fraction of the capacity that a node without requests may use:
	// IdleCPU or IdleMemory.
	Idle float64
}

// LimitRisk returns how much of what the limits promise beyond the requests
// the node could not deliver, if it took the pod:
//
//	request = requests with the pod, at most the capacity
//	limit   = limits with the pod; at least the capacity if a pod is unbounded
//	excess  = limit - request, allowed = min(limit, capacity) - request
//	risk    = 1 - allowed / excess, 0 where there is no excess
func (r Resource) LimitRisk() float64 {
	request := min(r.Requests+r.PodRequest, r.Capacity)
	limit := r.Limits + r.PodLimit
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

// LoadRisk returns the probability that the pods on the node use more than
// they requested, given that their limits hold. Load is measured against the
// whole machine; window is the number of samples its deviation was smoothed
// over, at least 1. What recent pods will use moves the mean up: without it a
// node that has just been given pods looks safer with each of them, since their
// requests count at once and their use does not.
//
// The threshold is the requests of the pods on the node; where they request
// nothing it is the request of the pending pod, and no less than the idle
// allowance. The bound is their limits, where all are bounded and together
// under the capacity.
func (r Resource) LoadRisk(load Load, window float64) float64 {
	if r.Recent > 0 && r.Machine > 0 {
		load.Mean = min(load.Mean+r.Recent/r.Machine, 1)
	}
	return Fit(load.OfAllocatable(r.Machine, r.Capacity), window).Overuse(r.claims())
}

// claims returns the threshold and the bound of LoadRisk, as fractions of the
// capacity.
func (r Resource) claims() (threshold, bound float64) {
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

// Combine weighs the two risks: limitWeight of the one and the rest of the
// other, limitWeight in [0, 1].
func Combine(limitRisk, loadRisk, limitWeight float64) float64 {
	return limitWeight*limitRisk + (1-limitWeight)*loadRisk
}

// Score turns the risk of a node into its score, 100 for none and 0 for
// certain, rounded to the nearest integer. What is not a number is taken as
// the highest risk.
func Score(risk float64) int64 {
	if math.IsNaN(risk) {
		return 0
	}
	return int64(math.Round(100 * (1 - min(max(risk, 0), 1))))
}
