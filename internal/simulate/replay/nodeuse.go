package replay

import (
	"cmp"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/outcome"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/simulate/result"
)

// nodeUse is what nodes used in the steps in which they had pods. The zero value
// records nothing.
type nodeUse struct{ cpu, memory []risk.Observed }

func newNodeUse(nodes int) nodeUse {
	return nodeUse{make([]risk.Observed, nodes), make([]risk.Observed, nodes)}
}

// node takes in a step on the node of a number, which has so many pods.
func (u *nodeUse) node(number int, has outcome.Node, pods int, step outcome.Step) {
	if u.cpu == nil || pods == 0 {
		return
	}
	for number >= len(u.cpu) { // nodes that an autoscaler has added
		u.cpu, u.memory = append(u.cpu, risk.Observed{}), append(u.memory, risk.Observed{})
	}
	u.cpu[number].Add(part(step.CPUGranted, has.CPU))
	u.memory[number].Add(part(step.MemoryKept, has.Memory))
}

// result returns what was recorded, nil if nothing was to be.
func (u *nodeUse) result(nodes []node) *result.NodeUse {
	if u.cpu == nil {
		return nil
	}
	return &result.NodeUse{CPU: useOf(u.cpu, nodes), Memory: useOf(u.memory, nodes)}
}

// useOf returns the use of one resource.
func useOf(observed []risk.Observed, nodes []node) result.ResourceUse {
	var used []int // numbers of the nodes that had pods
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
		Means: rounded(means), Deviations: rounded(deviations), Distances: rounded(distances), Notable: []result.NotableNode{},
		Distance: outcome.Describe(slices.Clone(distances)),
	}
	if len(used) == 0 {
		return use
	}
	tell := func(why string, at int) {
		name := nodes[used[at]].name
		for i := range use.Notable {
			if use.Notable[i].Node == name {
				use.Notable[i].Reasons = append(use.Notable[i].Reasons, why)
				return
			}
		}
		use.Notable = append(use.Notable, notableNode(name, why, &observed[used[at]]))
	}
	tell(result.TypicalNode, medianAt(means))
	tell(result.BusiestNode, highestAt(means))
	tell(result.MostVariableNode, highestAt(deviations))
	tell(result.WorstFitNode, highestAt(distances))
	return use
}

// notableNode describes one node.
func notableNode(name, why string, observed *risk.Observed) result.NotableNode {
	load := observed.Load()
	fitted := risk.Fit(load, 1)
	alpha, beta := fitted.Parameters()
	return result.NotableNode{
		Node: name, Reasons: []string{why}, Steps: observed.Count(),
		Mean: round(load.Mean), Deviation: round(load.StdDev), Distance: round(observed.Distance(fitted)),
		Alpha: significant(alpha), Beta: significant(beta),
		Observed: rounded(observed.Histogram(result.UseBins)), Fitted: rounded(fitted.Histogram(result.UseBins)),
	}
}

// significant keeps four digits of a value above 0: parameters may be of any size.
func significant(v float64) float64 {
	if v <= 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(v))-3)
	return math.Round(v/unit) * unit
}

// highestAt returns where the highest value is, the first of equal ones.
func highestAt(values []float64) int {
	at := 0
	for i, v := range values {
		if v > values[at] {
			at = i
		}
	}
	return at
}

// medianAt returns where the median is, of an even number the lower of the two.
func medianAt(values []float64) int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	return order[(len(order)-1)/2]
}
