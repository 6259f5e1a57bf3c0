package result

// Class is the QoS class of a pod.
type Class uint8

// The QoS classes, in the order in which pods are killed.
const (
	// BestEffort pods have no requests and no limits.
	BestEffort Class = iota
	// Burstable pods are in neither of the other classes.
	Burstable
	// Guaranteed pods have requests for CPU and memory, and limits equal to them.
	Guaranteed
)

// ClassOf returns the class of a pod with one container; a limit of 0 is no limit.
func ClassOf(cpuRequest, cpuLimit, memoryRequest, memoryLimit float64) Class {
	switch {
	case cpuRequest == 0 && cpuLimit == 0 && memoryRequest == 0 && memoryLimit == 0:
		return BestEffort
	case cpuRequest > 0 && cpuRequest == cpuLimit && memoryRequest > 0 && memoryRequest == memoryLimit:
		return Guaranteed
	}
	return Burstable
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
func oomScoreAdjustment(class Class, memoryRequest, machine float64) int {
	switch class {
	case Guaranteed:
		return guaranteedAdjustment
	case BestEffort:
		return bestEffortAdjustment
	default: // Burstable
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
