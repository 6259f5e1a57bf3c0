package result

import (
	"cmp"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// MaxOverloaded is the largest number of nodes, and of workloads, that Overloaded names.
const MaxOverloaded = 20

// Overloaded names the nodes that were overloaded and the workloads that were affected, the longest first.
type Overloaded struct {
	Nodes     []OverloadTime `json:"nodes"`
	Workloads []OverloadTime `json:"workloads"`
	// MoreNodes and MoreWorkloads count those that are not named.
	MoreNodes     int `json:"moreNodes"`
	MoreWorkloads int `json:"moreWorkloads"`
}

// OverloadTime is the time of one node or workload.
type OverloadTime struct {
	// Name of the node, or namespace and name of the workload.
	Name string `json:"name"`
	// Kind of the workload, empty for a node.
	Kind string `json:"kind,omitempty"`
	// Minutes is the time in which the node was overloaded, or the sum over the pods of the workload of the time in which a pod got
	// less CPU than it demanded within its limit, or was killed.
	Minutes float64 `json:"minutes"`
}

// OverloadTimes accumulates the time in which nodes and workloads were affected by overload. A nil OverloadTimes accumulates nothing.
type OverloadTimes struct {
	nodes, workloads map[resources.Workload]float64
}

// NewOverloadTimes returns an accumulator.
func NewOverloadTimes() *OverloadTimes {
	return &OverloadTimes{nodes: map[resources.Workload]float64{}, workloads: map[resources.Workload]float64{}}
}

// Add adds a step of a node with pods, and what Evaluator.Step returned for it. workload returns the workload of a pod.
func (o *OverloadTimes) Add(
	node string, seconds float64, step Step, pods []Demand, granted []float64, victims []int, workload func(pod int) resources.Workload,
) {
	if o == nil || !step.Overloaded() {
		return
	}
	o.nodes[resources.Workload{Name: node}] += seconds
	for i := range pods {
		demand := pods[i].cpuUse()
		if demand-granted[i] > tolerance*demand || slices.Contains(victims, i) {
			o.workloads[workload(i)] += seconds
		}
	}
}

// Result returns the nodes and workloads with the longest times, nil for a nil OverloadTimes.
func (o *OverloadTimes) Result() *Overloaded {
	if o == nil {
		return nil
	}
	result := &Overloaded{}
	result.Nodes, result.MoreNodes = longest(o.nodes)
	result.Workloads, result.MoreWorkloads = longest(o.workloads)
	return result
}

// longest returns the longest times, and the number of others.
func longest(seconds map[resources.Workload]float64) (times []OverloadTime, more int) {
	minutes := map[OverloadTime]float64{}
	for key, time := range seconds {
		name := key.Name
		if key.Namespace != "" {
			name = key.Namespace + "/" + key.Name
		}
		minutes[OverloadTime{Name: name, Kind: key.Kind}] = time / 60
	}
	return longestTimes(minutes)
}

// SumOverloaded adds the times of runs.
func SumOverloaded(runs []Run) *Overloaded {
	nodes, workloads := map[OverloadTime]float64{}, map[OverloadTime]float64{}
	for i := range runs {
		if o := runs[i].Overloaded; o != nil {
			addTimes(nodes, o.Nodes)
			addTimes(workloads, o.Workloads)
		}
	}
	sum := &Overloaded{}
	sum.Nodes, sum.MoreNodes = longestTimes(nodes)
	sum.Workloads, sum.MoreWorkloads = longestTimes(workloads)
	return sum
}

// addTimes adds times to sums by name and kind.
func addTimes(sums map[OverloadTime]float64, times []OverloadTime) {
	for _, t := range times {
		sums[OverloadTime{Name: t.Name, Kind: t.Kind}] += t.Minutes
	}
}

// longestTimes returns the MaxOverloaded longest times in descending order, and the number of others.
func longestTimes(sums map[OverloadTime]float64) (times []OverloadTime, more int) {
	times = []OverloadTime{}
	for t, minutes := range sums {
		t.Minutes = minutes
		times = append(times, t)
	}
	slices.SortFunc(times, func(a, b OverloadTime) int {
		return cmp.Or(cmp.Compare(b.Minutes, a.Minutes), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	n := min(len(times), MaxOverloaded)
	return times[:n], len(times) - n
}
