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
