package autoscaler

import "github.com/plimsoll-k8s/plimsoll/internal/resources"

// Utilization returns the fraction of a node's allocatable amounts, less its DaemonSet pods, that
// its pods request: the fraction of GPUs for a node with GPUs, otherwise the higher fraction of CPU
// and memory. This is the rule of Cluster Autoscaler, which also counts DaemonSet pods unless
// --ignore-daemonsets-utilization is set.
func Utilization(requested, allocatable resources.Amounts) float64 {
	if allocatable[resources.Extended] > 0 {
		return float64(requested[resources.Extended]) / float64(allocatable[resources.Extended])
	}
	requested[resources.Extended], requested[resources.Pods] = 0, 0
	return requested.MaxFraction(allocatable)
}
