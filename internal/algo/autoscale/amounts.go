// Package autoscale decides as a cluster autoscaler does: how many nodes of which
// group pods that wait need, and which nodes nobody needs. It knows amounts, groups
// and times; what else tells whether a pod may be on a node, it asks.
package autoscale

// The resources, as indexes of Amounts.
const (
	// CPU in millicores.
	CPU = iota
	// Memory in bytes.
	Memory
	// GPU in thousandths of a device.
	GPU
	// Slots are how many pods a node takes.
	Slots
	// resources is how many there are.
	resources
)

// Amounts are how much there is of each resource. What is free can be less than
// nothing, where more was promised than a node has.
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

// FitsIn reports whether there is as much as is needed of everything. As to the
// scheduler, what is not needed may be short.
func (a Amounts) FitsIn(free Amounts) bool {
	for r := range a {
		if a[r] > 0 && a[r] > free[r] {
			return false
		}
	}
	return true
}

// most returns the larger amount of each resource.
func (a Amounts) most(b Amounts) Amounts {
	for r := range a {
		a[r] = max(a[r], b[r])
	}
	return a
}

// part returns the largest part that amounts are of what there is, over the
// resources that there are.
func (a Amounts) part(of Amounts) float64 {
	var largest float64
	for r := range a {
		if of[r] > 0 {
			largest = max(largest, float64(a[r])/float64(of[r]))
		}
	}
	return largest
}

// Utilization of a node: of what it has beside its daemons the part that its pods
// request, that of CPU or of memory, whichever is larger; of a node with GPUs that
// of its GPUs. This is Cluster Autoscaler's rule; it also counts daemons unless it is
// told not to (--ignore-daemonsets-utilization).
func Utilization(requested, has Amounts) float64 {
	if has[GPU] > 0 {
		return float64(requested[GPU]) / float64(has[GPU])
	}
	requested[GPU], requested[Slots] = 0, 0
	return requested.part(has)
}
