// Package outcome says what comes of what pods want: which CPU time they get on
// their node, and which of them the node kills when its memory is out; and it
// adds this up over a run.
//
// CPU. A pod wants CPU and gets at most its limit. Where pods together want more
// than the node has for pods, it is divided by weight, work-conserving. The
// weight is the request, as the kubelet sets cpu.shares and the runtime cpu.weight
// from it; a pod without a request has that of two shares, 2/1024 of a core. What
// a pod wants and does not get is throttled: by its own limit or by the node.
//
// Memory. A pod uses at most its limit. Where pods together use more than the
// node has for pods, the kernel kills until it fits, the worst by its badness
// first: memory used plus oom_score_adj thousandths of the machine, the
// adjustment of the kubelet. This stands for all that happens when memory is
// out.
//
// What the model leaves out: the kubelet's eviction, which acts on a threshold
// before the kernel does and ranks by use over request and priority; the cgroups
// of QoS classes above those of pods (the children of one compete with each other
// first, and all best-effort pods together have two shares); CPU that the system
// uses; CFS periods (a pod can be throttled within a period though it used less on
// average); pods of several containers, reckoned as one.
//
// Amounts are floating point: CPU in millicores, memory in bytes, time in
// seconds. Bytes are exact up to 2^53.
package outcome

import "math"

// Pod is a pod on a node and what it wants at a step. Amounts are at least 0 and
// finite.
type Pod struct {
	CPURequest, MemoryRequest float64
	// CPULimit and MemoryLimit, 0 for none.
	CPULimit, MemoryLimit float64
	// CPU and Memory are what the pod would use if nothing held it.
	CPU, Memory float64
	// Class orders the pods when memory is out.
	Class Class
}

// Node is what a node has for its pods, and the memory of the whole machine,
// which the kubelet and the kernel rank by.
type Node struct {
	CPU, Memory   float64
	MachineMemory float64
}

// Step is what came of a step on one node.
type Step struct {
	// CPUWanted is what the pods want within their limits, CPUGot what they get.
	CPUWanted, CPUGot float64
	// ThrottledByLimit is what pods want over their own limits.
	ThrottledByLimit float64
	// ThrottledByNode is what pods want within their limits and do not get.
	ThrottledByNode float64
	// MemoryWanted is what the pods use within their limits, MemoryKept what is
	// left of it when it fits.
	MemoryWanted, MemoryKept float64
	// CPULimits and MemoryLimits are the sums of limits; a pod without one counts
	// with its request.
	CPULimits, MemoryLimits float64
	// Victims is how many pods were killed.
	Victims int
}

// Overloaded reports whether the pods wanted more than the node has, of CPU or of
// memory. The time of overload is the sum of the steps for which it is so, over
// nodes: two nodes overloaded for one minute are two minutes.
func (s Step) Overloaded() bool { return s.CPUOverloaded() || s.MemoryOverrun() }

// CPUOverloaded reports whether the node held back CPU.
func (s Step) CPUOverloaded() bool { return s.ThrottledByNode > 0 }

// MemoryOverrun reports whether the node was out of memory.
func (s Step) MemoryOverrun() bool { return s.Victims > 0 }

// leastWeight is the weight of a pod that requests no CPU, in millicores: two
// shares of 1024.
const leastWeight = 2 * 1000.0 / 1024

// Evaluator works out steps. It keeps room to work in, belongs to one goroutine,
// and does not allocate once it has seen the fullest node.
type Evaluator struct {
	want, weight, got, bad []float64
	rest                   []int32
	victims                []int
}

// Step returns what comes of a step on a node, and the indexes of the pods that
// are killed, in the order in which they are; equally bad ones in the order of
// the pods. The slices that it returns hold until the next call.
//
// got has what each pod gets of CPU. Those that are killed get theirs in this
// step too.
func (e *Evaluator) Step(node Node, pods []Pod) (step Step, got []float64, victims []int) {
	e.reserve(len(pods))
	for i := range pods {
		pod := &pods[i]
		want := pod.CPU
		if pod.CPULimit > 0 && want > pod.CPULimit {
			want = pod.CPULimit
			step.ThrottledByLimit += pod.CPU - want
		}
		e.want[i], e.weight[i] = want, max(pod.CPURequest, leastWeight)
		step.CPUWanted += want
		step.MemoryWanted += memoryOf(pod)
		step.CPULimits += max(pod.CPULimit, pod.CPURequest)
		step.MemoryLimits += max(pod.MemoryLimit, pod.MemoryRequest)
	}
	share(node.CPU, e.want, e.weight, e.got, e.rest)
	for i := range pods {
		step.CPUGot += e.got[i]
		step.ThrottledByNode += e.want[i] - e.got[i]
	}
	step.MemoryKept = step.MemoryWanted
	if step.MemoryWanted > node.Memory {
		e.kill(node, pods, &step)
	}
	return step, e.got, e.victims
}

// reserve makes room for so many pods.
func (e *Evaluator) reserve(n int) {
	if cap(e.want) < n {
		room := n + n/4
		e.want, e.weight, e.got, e.bad = make([]float64, room), make([]float64, room), make([]float64, room), make([]float64, room)
		e.rest, e.victims = make([]int32, room), make([]int, 0, room)
	}
	e.want, e.weight, e.got, e.bad = e.want[:n], e.weight[:n], e.got[:n], e.bad[:n]
	e.rest, e.victims = e.rest[:n], e.victims[:0]
}

// memoryOf returns what a pod uses within its limit.
func memoryOf(pod *Pod) float64 {
	if pod.MemoryLimit > 0 {
		return min(pod.Memory, pod.MemoryLimit)
	}
	return pod.Memory
}

// kill takes the worst pod that uses anything, until the rest fits.
func (e *Evaluator) kill(node Node, pods []Pod, step *Step) {
	for i := range pods {
		e.bad[i] = math.Inf(-1)
		if memoryOf(&pods[i]) > 0 {
			e.bad[i] = badness(&pods[i], node.MachineMemory)
		}
	}
	for step.MemoryKept > node.Memory {
		worst := 0
		for i := range e.bad {
			if e.bad[i] > e.bad[worst] {
				worst = i
			}
		}
		if math.IsInf(e.bad[worst], -1) {
			step.MemoryKept = 0 // all are gone, and rounding left something
			break
		}
		step.MemoryKept -= memoryOf(&pods[worst])
		e.bad[worst] = math.Inf(-1)
		e.victims = append(e.victims, worst)
	}
	step.Victims = len(e.victims)
}
