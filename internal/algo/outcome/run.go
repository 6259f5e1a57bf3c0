package outcome

import "slices"

// Run adds up what came of a whole run. The zero value is an empty run. Its
// memory grows with nodes and pods, not with time.
type Run struct {
	nodes   []history
	pending []float64

	cpuOverload, memoryOverload, overload   float64 // seconds, over nodes
	throttledByNode, throttledByLimit       float64 // millicore-seconds
	overruns, victims, unschedulable, moved int

	busy              int // nodes with pods in this step
	elapsed, busyTime float64
	mostBusy          int
}

// history is what a node was promised, over the time it had pods.
type history struct {
	seconds               float64
	cpuRatio, memoryRatio float64 // times seconds
	cpuPeak, memoryPeak   float64
}

// Node takes in a step of some seconds on a node. Nodes have numbers from 0; pods
// is how many the node has.
func (r *Run) Node(number int, node Node, pods int, seconds float64, step Step) {
	if number >= len(r.nodes) {
		r.nodes = append(r.nodes, make([]history, number+1-len(r.nodes))...)
	}
	if pods == 0 {
		return
	}
	r.busy++
	h := &r.nodes[number]
	cpu, memory := ratio(step.CPULimits, node.CPU), ratio(step.MemoryLimits, node.Memory)
	h.seconds += seconds
	h.cpuRatio += cpu * seconds
	h.memoryRatio += memory * seconds
	h.cpuPeak, h.memoryPeak = max(h.cpuPeak, cpu), max(h.memoryPeak, memory)
	r.throttledByNode += step.ThrottledByNode * seconds
	r.throttledByLimit += step.ThrottledByLimit * seconds
	if step.Overloaded() {
		r.overload += seconds
	}
	if step.CPUOverloaded() {
		r.cpuOverload += seconds
	}
	if step.MemoryOverrun() {
		r.memoryOverload += seconds
		r.overruns++
		r.victims += step.Victims
	}
}

// ratio of what is promised to what there is, 0 where there is nothing.
func ratio(promised, there float64) float64 {
	if there <= 0 {
		return 0
	}
	return promised / there
}

// EndStep ends a step of some seconds, after all its nodes.
func (r *Run) EndStep(seconds float64) {
	r.elapsed += seconds
	r.busyTime += float64(r.busy) * seconds
	r.mostBusy = max(r.mostBusy, r.busy)
	r.busy = 0
}

// Scheduled takes in a pod that found a node after so many seconds.
func (r *Run) Scheduled(afterSeconds float64) { r.pending = append(r.pending, afterSeconds) }

// Unschedulable takes in a pod that found no node until it went or the run ended,
// and how long it had waited.
func (r *Run) Unschedulable(afterSeconds float64) {
	r.unschedulable++
	r.pending = append(r.pending, afterSeconds)
}

// Moved takes in a pod that had a node and had to find another: it was killed,
// evicted, or its node went.
func (r *Run) Moved() { r.moved++ }

// Distribution is what many values look like.
type Distribution struct {
	Mean, P50, P95, Max float64
}

// Result is what came of a run.
type Result struct {
	// CPULimitRatio and MemoryLimitRatio are limits over what nodes have for pods:
	// of each node the mean over the time it had pods, and of these the
	// distribution over nodes. A pod without a limit counts with its request. The
	// peaks are the highest of any node at any time.
	CPULimitRatio, MemoryLimitRatio         Distribution
	CPULimitRatioPeak, MemoryLimitRatioPeak float64
	// OverloadMinutes is for how long nodes were short of CPU, of memory, or of
	// either, summed over nodes.
	OverloadMinutes, CPUOverloadMinutes, MemoryOverloadMinutes float64
	// ThrottledCoreSeconds is CPU that pods wanted within their limits and did not
	// get; LimitedCoreSeconds what they wanted over their limits.
	ThrottledCoreSeconds, LimitedCoreSeconds float64
	// MemoryOverruns is how often a node was out of memory in a step, Victims how
	// many pods that killed.
	MemoryOverruns, Victims int
	// Unschedulable is how many pods never found a node.
	Unschedulable int
	// NodesUsed is how many nodes had pods, the mean over time; and the most.
	NodesUsed     float64
	NodesUsedPeak int
	// PendingSeconds is how long pods waited for a node, those that found none too.
	PendingSeconds Distribution
	// Churn is how many pods had a node and had to find another.
	Churn int
}

// Result returns what came of the run so far.
func (r *Run) Result() Result {
	result := Result{
		OverloadMinutes:       r.overload / 60,
		CPUOverloadMinutes:    r.cpuOverload / 60,
		MemoryOverloadMinutes: r.memoryOverload / 60,
		ThrottledCoreSeconds:  r.throttledByNode / 1000,
		LimitedCoreSeconds:    r.throttledByLimit / 1000,
		MemoryOverruns:        r.overruns,
		Victims:               r.victims,
		Unschedulable:         r.unschedulable,
		NodesUsedPeak:         r.mostBusy,
		PendingSeconds:        Describe(slices.Clone(r.pending)),
		Churn:                 r.moved,
	}
	if r.elapsed > 0 {
		result.NodesUsed = r.busyTime / r.elapsed
	}
	var cpu, memory []float64
	for i := range r.nodes {
		h := &r.nodes[i]
		if h.seconds > 0 {
			cpu, memory = append(cpu, h.cpuRatio/h.seconds), append(memory, h.memoryRatio/h.seconds)
		}
		result.CPULimitRatioPeak = max(result.CPULimitRatioPeak, h.cpuPeak)
		result.MemoryLimitRatioPeak = max(result.MemoryLimitRatioPeak, h.memoryPeak)
	}
	result.CPULimitRatio, result.MemoryLimitRatio = Describe(cpu), Describe(memory)
	return result
}

// Describe returns the distribution of values, which it sorts; all zero if there
// are none. Between two values a quantile is on the line between them (type 7 of
// Hyndman and Fan).
func Describe(values []float64) Distribution {
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
		P50:  Quantile(values, 0.5),
		P95:  Quantile(values, 0.95),
		Max:  values[len(values)-1],
	}
}

// Quantile returns the p-quantile of at least one value in rising order.
func Quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := min(max(int(at), 0), len(sorted)-1)
	if i == len(sorted)-1 {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
