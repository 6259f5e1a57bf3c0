// Package autoscale models the decisions of a cluster autoscaler: how many nodes of
// which group pending pods need, and which nodes are not needed. It computes with
// amounts, groups and times; a Probe decides the other scheduling constraints.
package autoscaler

// Resources, as indexes of Amounts.
const (
	// CPU in millicores.
	CPU = iota
	// Memory in bytes.
	Memory
	// GPU in thousandths of a device.
	GPU
	// Slots is the number of pods.
	Slots
	resources // number of resources
)

// Amounts has an amount of each resource. Free amounts are negative if a node is
// overcommitted.
type Amounts [resources]int64

// Plus returns the sum.
func (a Amounts) Plus(b Amounts) Amounts {
	for r := range a {
		a[r] += b[r]
	}
	return a
}

// Minus returns the difference.
func (a Amounts) Minus(b Amounts) Amounts {
	for r := range a {
		a[r] -= b[r]
	}
	return a
}

// FitIn reports whether each amount above 0 is free. As in the scheduler, a resource
// that is not requested may be overcommitted.
func (a Amounts) FitIn(free Amounts) bool {
	for r := range a {
		if a[r] > 0 && a[r] > free[r] {
			return false
		}
	}
	return true
}

// max returns the maximum of each resource.
func (a Amounts) max(b Amounts) Amounts {
	for r := range a {
		a[r] = max(a[r], b[r])
	}
	return a
}

// maxFraction returns the maximum of amount/total over the resources with a total.
func (a Amounts) maxFraction(total Amounts) float64 {
	var largest float64
	for r := range a {
		if total[r] > 0 {
			largest = max(largest, float64(a[r])/float64(total[r]))
		}
	}
	return largest
}

// Utilization returns the fraction of a node's allocatable amounts, less its
// DaemonSet pods, that its pods request: the higher of CPU and memory or, for a node
// with GPUs, that of GPUs. This is the rule of Cluster Autoscaler, which also counts
// DaemonSet pods unless --ignore-daemonsets-utilization is set.
func Utilization(requested, allocatable Amounts) float64 {
	if allocatable[GPU] > 0 {
		return float64(requested[GPU]) / float64(allocatable[GPU])
	}
	requested[GPU], requested[Slots] = 0, 0
	return requested.maxFraction(allocatable)
}
