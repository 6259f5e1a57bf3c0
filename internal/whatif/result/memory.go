package result

import v1 "k8s.io/api/core/v1"

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
