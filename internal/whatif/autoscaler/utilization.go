package autoscaler

import "github.com/plimsoll-k8s/plimsoll/internal/resources"

// Utilization returns the fraction of a node's allocatable amounts, less its
// DaemonSet pods, that its pods request: the higher of CPU and memory or, for a node
// with GPUs, that of GPUs. This is the rule of Cluster Autoscaler, which also counts
// DaemonSet pods unless --ignore-daemonsets-utilization is set.
func Utilization(requested, allocatable resources.Amounts) float64 {
	if allocatable[resources.Extended] > 0 {
		return float64(requested[resources.Extended]) / float64(allocatable[resources.Extended])
	}
	requested[resources.Extended], requested[resources.Pods] = 0, 0
	return requested.MaxFraction(allocatable)
}
