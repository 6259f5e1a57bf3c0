package outcome

// Class is the Kubernetes QoS class of a pod.
type Class uint8

// The classes, in the order in which memory is taken from them.
const (
	// BestEffort pods request and limit nothing.
	BestEffort Class = iota
	// Burstable pods are neither of the others.
	Burstable
	// Guaranteed pods request CPU and memory, and limit both at the request.
	Guaranteed
)

// ClassOf returns the class of a pod of one container; a limit of 0 is none.
func ClassOf(cpuRequest, cpuLimit, memoryRequest, memoryLimit float64) Class {
	switch {
	case cpuRequest == 0 && cpuLimit == 0 && memoryRequest == 0 && memoryLimit == 0:
		return BestEffort
	case cpuRequest > 0 && cpuRequest == cpuLimit && memoryRequest > 0 && memoryRequest == memoryLimit:
		return Guaranteed
	}
	return Burstable
}

// Scores that the kubelet sets (pkg/kubelet/qos/policy.go), in thousandths of
// the memory of the machine.
const (
	guaranteedAdjustment = -997
	bestEffortAdjustment = 1000
	// burstable pods are between the two, and never at either.
	leastBurstable, mostBurstable = 3, 999
)

// OOMScoreAdjustment returns the oom_score_adj that the kubelet gives to a pod of
// one container on a machine of so much memory:
//
//	BestEffort 1000, Guaranteed -997,
//	Burstable  1000 - 1000 request / machine, rounded up, within [3, 999]
//
// The kubelet divides whole bytes and rounds the quotient down.
func OOMScoreAdjustment(class Class, memoryRequest, machine float64) int {
	switch class {
	case Guaranteed:
		return guaranteedAdjustment
	case BestEffort:
		return bestEffortAdjustment
	default: // Burstable
	}
	if machine <= 0 {
		return leastBurstable
	}
	part := min(1000*(memoryRequest/machine), 1000)
	return min(max(bestEffortAdjustment-int(part), leastBurstable), mostBurstable)
}

// badness is what the kernel ranks by when memory is out (mm/oom_kill.c): what a
// process holds and its adjustment, in bytes here.
func badness(pod *Pod, machine float64) float64 {
	return memoryOf(pod) + float64(OOMScoreAdjustment(pod.Class, pod.MemoryRequest, machine))/1000*machine
}
