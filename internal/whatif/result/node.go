package result

import (
	"math"
	"slices"

	v1 "k8s.io/api/core/v1"
)

// Demand has the requests, the limits and the demand of a pod in one step. Amounts are
// finite and at least 0.
type Demand struct {
	CPURequest, MemoryRequest float64
	// CPULimit and MemoryLimit are 0 if there is no limit.
	CPULimit, MemoryLimit float64
	// CPU and Memory are the demand, not bounded by the limits.
	CPU, Memory float64
	// Class determines the order in which pods are killed.
	Class v1.PodQOSClass
}

// Capacity has the allocatable amounts of a node, and the memory of the machine, by
// which the kubelet and the kernel rank pods.
type Capacity struct {
	CPU, Memory   float64
	MachineMemory float64
}

// Step is the result of one step on one node.
type Step struct {
	// CPUDemand is the CPU that the pods demand within their limits, CPUGranted the CPU that they get.
	CPUDemand, CPUGranted float64
	// ThrottledByLimit is the demand above the pods' own limits.
	ThrottledByLimit float64
	// ThrottledByNode is the demand within the limits that is not granted.
	ThrottledByNode float64
	// MemoryDemand is the memory that the pods use within their limits, MemoryKept the remaining
	// memory after pods were killed.
	MemoryDemand, MemoryKept float64
	// CPULimits and MemoryLimits are the sums of limits; a pod without a limit counts
	// with its request.
	CPULimits, MemoryLimits float64
	// Victims is the number of killed pods.
	Victims int
}

// Overloaded reports whether the pods demanded more than the node has, of CPU or
// of memory. Time of overload is summed over nodes: two nodes that are overloaded
// for one minute are two minutes.
func (s Step) Overloaded() bool { return s.cpuOverloaded() || s.memoryOverrun() }

// cpuOverloaded reports whether the node throttled pods.
func (s Step) cpuOverloaded() bool { return s.ThrottledByNode > 0 }

// memoryOverrun reports whether the node was out of memory.
func (s Step) memoryOverrun() bool { return s.Victims > 0 }

// minWeight is the weight of a pod without a CPU request, in millicores: two
// shares of 1024.
const minWeight = 2 * 1000.0 / 1024

// Evaluator computes steps. It reuses its buffers, must be used by one goroutine
// only, and does not allocate once it has seen the node with the most pods.
type Evaluator struct {
	demand, weight, granted, badness []float64
	rest                             []int32
	victims                          []int
}

// Step returns the result of a step on a node, the CPU granted to each pod, and
// the indexes of the killed pods in the order in which they are killed; of pods
// with equal badness the first is killed first. Pods that are killed get their CPU
// in this step. The slices are valid until the next call.
func (e *Evaluator) Step(node Capacity, pods []Demand) (step Step, granted []float64, victims []int) {
	e.resize(len(pods))
	for i := range pods {
		pod := &pods[i]
		demand := pod.cpuUse()
		step.ThrottledByLimit += pod.CPU - demand
		e.demand[i], e.weight[i] = demand, max(pod.CPURequest, minWeight)
		step.CPUDemand += demand
		step.MemoryDemand += pod.MemoryUse()
		step.CPULimits += max(pod.CPULimit, pod.CPURequest)
		step.MemoryLimits += max(pod.MemoryLimit, pod.MemoryRequest)
	}
	outcomeShare(node.CPU, e.demand, e.weight, e.granted, e.rest)
	for i := range pods {
		step.CPUGranted += e.granted[i]
		step.ThrottledByNode += e.demand[i] - e.granted[i]
	}
	step.MemoryKept = step.MemoryDemand
	if step.MemoryDemand > node.Memory {
		e.kill(node, pods, &step)
	}
	return step, e.granted, e.victims
}

// resize sets the length of the buffers to a number of pods.
func (e *Evaluator) resize(n int) {
	for _, buffer := range []*[]float64{&e.demand, &e.weight, &e.granted, &e.badness} {
		*buffer = slices.Grow((*buffer)[:0], n)[:n]
	}
	e.rest, e.victims = slices.Grow(e.rest[:0], n)[:n], slices.Grow(e.victims[:0], n)
}

// MemoryUse returns the memory that a pod uses within its limit.
func (p *Demand) MemoryUse() float64 { return within(p.Memory, p.MemoryLimit) }

// cpuUse returns the CPU that a pod demands within its limit.
func (p *Demand) cpuUse() float64 { return within(p.CPU, p.CPULimit) }

// within returns a demand within a limit, which is 0 if there is none.
func within(demand, limit float64) float64 {
	if limit > 0 {
		return min(demand, limit)
	}
	return demand
}

// kill removes the pod with the highest badness until the rest fits.
func (e *Evaluator) kill(node Capacity, pods []Demand, step *Step) {
	for i := range pods {
		e.badness[i] = math.Inf(-1)
		if pods[i].MemoryUse() > 0 {
			e.badness[i] = badness(&pods[i], node.MachineMemory)
		}
	}
	for step.MemoryKept > node.Memory {
		worst := 0
		for i := range e.badness {
			if e.badness[i] > e.badness[worst] {
				worst = i
			}
		}
		if math.IsInf(e.badness[worst], -1) {
			step.MemoryKept = 0 // No pod is left: the remainder is rounding.
			break
		}
		step.MemoryKept -= pods[worst].MemoryUse()
		e.badness[worst] = math.Inf(-1)
		e.victims = append(e.victims, worst)
	}
	step.Victims = len(e.victims)
}

// Values of oom_score_adj that the kubelet sets (pkg/kubelet/qos/policy.go), in thousandths of the
// machine's memory. The values of burstable pods are strictly between the other two values.
const (
	guaranteedAdjustment = -997
	bestEffortAdjustment = 1000
	minBurstable         = 3
	maxBurstable         = 999
)

// oomScoreAdjustment returns the oom_score_adj that the kubelet sets for a pod with
// one container:
//
//	BestEffort 1000, Guaranteed -997,
//	Burstable  1000 - 1000 request / machine, rounded up, within [3, 999]
//
// The kubelet divides whole bytes and rounds the quotient down.
func oomScoreAdjustment(class v1.PodQOSClass, memoryRequest, machine float64) int {
	switch class {
	case v1.PodQOSGuaranteed:
		return guaranteedAdjustment
	case v1.PodQOSBestEffort:
		return bestEffortAdjustment
	default: // burstable
	}
	if machine <= 0 {
		return minBurstable
	}
	thousandths := min(1000*(memoryRequest/machine), 1000)
	return min(max(bestEffortAdjustment-int(thousandths), minBurstable), maxBurstable)
}

// badness returns the kernel's rank of a pod when memory is out (mm/oom_kill.c), in
// bytes: the memory that it uses and its adjustment.
func badness(pod *Demand, machine float64) float64 {
	return pod.MemoryUse() + float64(oomScoreAdjustment(pod.Class, pod.MemoryRequest, machine))/1000*machine
}

// outcomeShare divides the CPU of a node among pods by weight, as the kernel's fair scheduler does
// (water-filling, weighted max-min fairness): in proportion to the weights, no pod gets more than
// its demand, and CPU that a pod does not use is divided among the other pods. It stores the CPU of
// each pod in granted, and returns the level: the CPU per weight of a pod that does not get its
// demand, 0 if every pod does. rest is a buffer as long as demand.
//
// Each round grants the demand of the pods whose demand is at most their share of
// the remaining CPU. This can only raise the level, so that earlier rounds remain
// correct; a round that grants nothing is the last. There are few rounds for any mix
// of pods, and never more than pods.
func outcomeShare(capacity float64, demand, weight, granted []float64, rest []int32) float64 {
	var total, weights float64
	rest = rest[:0]
	for i := range demand {
		total += demand[i]
		granted[i] = demand[i]
		weights += weight[i]
		rest = append(rest, int32(i))
	}
	if total <= capacity {
		return 0
	}
	left := max(capacity, 0)
	for {
		level := left / weights
		kept := rest[:0]
		for _, i := range rest {
			if demand[i] <= level*weight[i] {
				left -= demand[i]
			} else {
				kept = append(kept, i)
			}
		}
		if len(kept) == len(rest) {
			for _, i := range rest {
				granted[i] = level * weight[i]
			}
			return level
		}
		// Weights are summed again, as differences lose digits. A sum below 0 is due to rounding.
		rest, left, weights = kept, max(left, 0), 0
		for _, i := range rest {
			weights += weight[i]
		}
		if len(rest) == 0 {
			return level // The demand exceeded the capacity only by rounding.
		}
	}
}
