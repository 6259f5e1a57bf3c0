package outcome

import (
	"cmp"
	"slices"
)

// LimitRatios returns limits over what there is of each node that had pods, the
// mean over the time it had them, as Result has the distribution of them. The
// highest is first.
func (r *Run) LimitRatios() (cpu, memory []float64) {
	for i := range r.nodes {
		if h := &r.nodes[i]; h.seconds > 0 {
			cpu, memory = append(cpu, h.cpuRatio/h.seconds), append(memory, h.memoryRatio/h.seconds)
		}
	}
	descending := func(a, b float64) int { return cmp.Compare(b, a) }
	slices.SortFunc(cpu, descending)
	slices.SortFunc(memory, descending)
	return cpu, memory
}
