package result

import (
	"cmp"
	"slices"
)

// DefaultSaturation is the fraction of its allocatable CPU above which a node is saturated. On real nodes, the share of throttled periods
// follows the share of time above it (docs/whatif-model.md).
const DefaultSaturation = 0.95

// Totals accumulates the steps of a run. The zero value is ready to use. Its size
// grows with nodes and pods, not with time.
type Totals struct {
	// Saturation replaces DefaultSaturation unless it is 0.
	Saturation float64

	nodes       []nodeTotals
	cpu, memory loads
	waits       Waits

	// outcome has the sums and peaks so far: times of overload in seconds, throttled CPU in millicore-seconds.
	outcome Outcome

	usedNow           int // nodes with pods in the current step
	elapsed, usedTime float64
}

// nodeTotals accumulates the limit ratios of a node over the time it had pods.
type nodeTotals struct {
	seconds               float64
	cpuRatio, memoryRatio float64 // ratio x seconds
}

// AddStep adds a step of a node with a number of pods. Nodes are numbered from 0.
func (t *Totals) AddStep(number int, node Capacity, pods int, seconds float64, step Step) {
	if number >= len(t.nodes) {
		t.nodes = append(t.nodes, make([]nodeTotals, number+1-len(t.nodes))...)
	}
	t.cpu.add(Ratio(step.CPUDemand, node.CPU))
	t.memory.add(Ratio(step.MemoryDemand, node.Memory))
	if pods == 0 {
		return
	}
	t.usedNow++
	n, o := &t.nodes[number], &t.outcome
	cpu, memory := Ratio(step.CPULimits, node.CPU), Ratio(step.MemoryLimits, node.Memory)
	n.seconds += seconds
	n.cpuRatio += cpu * seconds
	n.memoryRatio += memory * seconds
	o.CPULimitRatioPeak, o.MemoryLimitRatioPeak = max(o.CPULimitRatioPeak, cpu), max(o.MemoryLimitRatioPeak, memory)
	o.ThrottledCoreSeconds += step.ThrottledByNode * seconds
	o.LimitedCoreSeconds += step.ThrottledByLimit * seconds
	if step.Overloaded() {
		o.OverloadMinutes += seconds
	}
	if step.cpuOverloaded() {
		o.CPUOverloadMinutes += seconds
	}
	if step.CPUDemand > cmp.Or(t.Saturation, DefaultSaturation)*node.CPU {
		o.CPUSaturationMinutes += seconds
	}
	if step.memoryOverrun() {
		o.MemoryOverloadMinutes += seconds
		o.MemoryOverruns++
		o.Victims += step.Victims
	}
}

// Ratio returns amount/capacity, 0 without capacity.
func Ratio(amount, capacity float64) float64 {
	if capacity <= 0 {
		return 0
	}
	return amount / capacity
}

// EndStep ends a step, after AddStep was called for all nodes.
func (t *Totals) EndStep(seconds float64) {
	t.elapsed += seconds
	t.usedTime += float64(t.usedNow) * seconds
	t.outcome.NodesUsedPeak = max(t.outcome.NodesUsedPeak, t.usedNow)
	t.usedNow = 0
}

// AddScheduled adds a pod that was pending for the given time and then scheduled.
func (t *Totals) AddScheduled(pendingSeconds int64) {
	if t.waits == nil {
		t.waits = Waits{}
	}
	t.waits[pendingSeconds]++
}

// AddUnschedulable adds a pod that was pending until its end or the end of the run.
func (t *Totals) AddUnschedulable(pendingSeconds int64) {
	t.outcome.Unschedulable++
	t.AddScheduled(pendingSeconds)
}

// AddEviction adds a pod that lost its node and has to be scheduled again.
func (t *Totals) AddEviction() { t.outcome.Churn++ }

// Distribution summarizes values.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	Max  float64 `json:"max"`
}

// Outcome has the sums and distributions of a run.
type Outcome struct {
	// Unschedulable counts the pods without a node at the end.
	Unschedulable int `json:"unschedulable"`
	// OverloadMinutes is the time that nodes were short of CPU, of memory, or of
	// either, summed over nodes.
	OverloadMinutes       float64 `json:"overloadMinutes"`
	CPUOverloadMinutes    float64 `json:"cpuOverloadMinutes"`
	MemoryOverloadMinutes float64 `json:"memoryOverloadMinutes"`
	// CPUSaturationMinutes is the time that pods used or demanded more than a fraction of the CPU of nodes, summed over nodes.
	CPUSaturationMinutes float64 `json:"cpuSaturationMinutes"`
	// ThrottledCoreSeconds is the CPU that pods demanded within their limits and did not get;
	// LimitedCoreSeconds is the CPU that they demanded above their limits.
	ThrottledCoreSeconds float64 `json:"throttledCoreSeconds"`
	LimitedCoreSeconds   float64 `json:"limitedCoreSeconds"`
	// MemoryOverruns counts the steps in which a node ran out of memory, Victims the
	// pods that were killed in them.
	MemoryOverruns int `json:"memoryOverruns"`
	Victims        int `json:"victims"`
	// CPULoad and MemoryLoad are the distributions, over all nodes and steps, of what pods demand within their limits, as fractions of
	// allocatable. Quantiles are exact to 0.001.
	CPULoad    Distribution `json:"cpuLoad"`
	MemoryLoad Distribution `json:"memoryLoad"`
	// NodesUsed is the number of nodes with pods, averaged over time.
	NodesUsed     float64 `json:"nodesUsed"`
	NodesUsedPeak int     `json:"nodesUsedPeak"`
	// Churn counts the pods that lost their node and had to be scheduled again.
	Churn int `json:"churn"`
	// CPULimitRatio and MemoryLimitRatio are limits over allocatable: the mean of each node over
	// the time it had pods, and the distribution of the means over nodes. A pod without a limit
	// counts with its request. The peaks are the highest ratios of any node at any time.
	CPULimitRatio        Distribution `json:"cpuLimitRatio"`
	MemoryLimitRatio     Distribution `json:"memoryLimitRatio"`
	CPULimitRatioPeak    float64      `json:"cpuLimitRatioPeak"`
	MemoryLimitRatioPeak float64      `json:"memoryLimitRatioPeak"`
	// PendingSeconds is how long pods were pending, including unschedulable pods.
	PendingSeconds Distribution `json:"pendingSeconds"`
	// Waits counts these pods by the seconds that they were pending.
	Waits Waits `json:"waits,omitempty"`
}

// Result returns the outcome of the steps so far.
func (t *Totals) Result() Outcome {
	result := t.outcome
	for _, seconds := range []*float64{
		&result.OverloadMinutes, &result.CPUOverloadMinutes, &result.MemoryOverloadMinutes, &result.CPUSaturationMinutes,
	} {
		*seconds /= 60
	}
	result.ThrottledCoreSeconds /= 1000
	result.LimitedCoreSeconds /= 1000
	result.CPULoad, result.MemoryLoad = t.cpu.distribution(), t.memory.distribution()
	result.Waits, result.PendingSeconds = t.waits, t.waits.distribution()
	if t.elapsed > 0 {
		result.NodesUsed = t.usedTime / t.elapsed
	}
	var cpu, memory []float64
	for i := range t.nodes {
		if n := &t.nodes[i]; n.seconds > 0 {
			cpu, memory = append(cpu, n.cpuRatio/n.seconds), append(memory, n.memoryRatio/n.seconds)
		}
	}
	result.CPULimitRatio, result.MemoryLimitRatio = describe(cpu), describe(memory)
	return result
}

// describe returns the distribution of values, which it sorts; all zero if there
// are none. Quantiles are interpolated linearly (type 7 of Hyndman and Fan).
func describe(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	slices.Sort(values)
	var sum float64
	for _, v := range values {
		sum += v
	}
	return Distribution{
		Mean: sum / float64(len(values)),
		P50:  quantile(values, 0.5),
		P95:  quantile(values, 0.95),
		Max:  values[len(values)-1],
	}
}

// quantile returns the p-quantile of one or more sorted values.
func quantile(sorted []float64, p float64) float64 {
	position := p * float64(len(sorted)-1)
	i := min(max(int(position), 0), len(sorted)-1)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	return sorted[i] + (position-float64(i))*(sorted[i+1]-sorted[i])
}
