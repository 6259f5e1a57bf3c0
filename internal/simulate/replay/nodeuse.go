package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// nodeUse records what nodes use in the steps in which they have pods. The zero value
// records nothing.
type nodeUse struct{ cpu, memory []risk.Observed }

func newNodeUse(nodes int) nodeUse {
	return nodeUse{make([]risk.Observed, nodes), make([]risk.Observed, nodes)}
}

// addStep adds a step of a node with a number of pods.
func (u *nodeUse) addStep(number int, allocatable outcome.Node, pods int, step outcome.Step) {
	if u.cpu == nil || pods == 0 {
		return
	}
	for number >= len(u.cpu) { // nodes added by the autoscaler
		u.cpu, u.memory = append(u.cpu, risk.Observed{}), append(u.memory, risk.Observed{})
	}
	u.cpu[number].Add(fraction(step.CPUGranted, allocatable.CPU))
	u.memory[number].Add(fraction(step.MemoryKept, allocatable.Memory))
}

// result returns the use of the nodes, nil if nothing was recorded.
func (u *nodeUse) result(nodes []node) *result.NodeUse {
	if u.cpu == nil {
		return nil
	}
	return &result.NodeUse{CPU: resourceUse(u.cpu, nodes), Memory: resourceUse(u.memory, nodes)}
}

// resourceUse returns the use of one resource.
func resourceUse(observed []risk.Observed, nodes []node) result.ResourceUse {
	var used []int // numbers of the nodes with pods
	var means, deviations, distances []float64
	for i := range observed {
		if observed[i].Count() == 0 {
			continue
		}
		load := observed[i].Load()
		used = append(used, i)
		means, deviations = append(means, load.Mean), append(deviations, load.StdDev)
		distances = append(distances, observed[i].Distance(risk.Fit(load, 1)))
	}
	use := result.ResourceUse{
		Means: roundAll(means), Deviations: roundAll(deviations), Distances: roundAll(distances), Notable: []result.NotableNode{},
		Distance: outcome.Describe(slices.Clone(distances)),
	}
	if len(used) == 0 {
		return use
	}
	add := func(reason string, i int) {
		name := nodes[used[i]].name
		for j := range use.Notable {
			if use.Notable[j].Node == name {
				use.Notable[j].Reasons = append(use.Notable[j].Reasons, reason)
				return
			}
		}
		use.Notable = append(use.Notable, notableNode(name, reason, &observed[used[i]]))
	}
	add(result.TypicalNode, indexOfMedian(means))
	add(result.BusiestNode, indexOfMax(means))
	add(result.MostVariableNode, indexOfMax(deviations))
	add(result.WorstFitNode, indexOfMax(distances))
	return use
}

// notableNode describes one node.
func notableNode(name, reason string, observed *risk.Observed) result.NotableNode {
	load := observed.Load()
	fitted := risk.Fit(load, 1)
	alpha, beta := fitted.Parameters()
	return result.NotableNode{
		Node: name, Reasons: []string{reason}, Steps: observed.Count(),
		Mean: round(load.Mean), Deviation: round(load.StdDev), Distance: round(observed.Distance(fitted)),
		Alpha: roundSignificant(alpha), Beta: roundSignificant(beta),
		Observed: roundAll(observed.Histogram(result.UseBins)), Fitted: roundAll(fitted.Histogram(result.UseBins)),
	}
}

// roundSignificant rounds a positive value to four significant digits; other values
// are 0.
func roundSignificant(v float64) float64 {
	if v <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(v/unit) * unit
}

// indexOfMax returns the index of the highest value, the first of equal ones.
func indexOfMax(values []float64) int {
	index := 0
	for i, v := range values {
		if v > values[index] {
			index = i
		}
	}
	return index
}

// indexOfMedian returns the index of the median, of the lower one for an even number.
func indexOfMedian(values []float64) int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order[(len(order)-1)/2]
}
