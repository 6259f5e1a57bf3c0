package slack

import (
	"cmp"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// poolTotals is the input of a plan. Only the ledger's own totals have devices.
type poolTotals struct {
	// Requested is the sum of the requests of all pods, without daemon pods and pods with devices.
	Requested resources.Amounts
	// Allocatable is the sum over the usable nodes, Free the part that their pods leave free on nodes that do
	// not boot, and Nodes the number of usable nodes. Matching is the number of all nodes of the pool.
	Allocatable, Free resources.Amounts
	Nodes, Matching   int
	// Spare is the sum of the requests of pods that only reserve capacity, and SparePods their number.
	Spare     resources.Amounts
	SparePods int
	// Domains is the number of domains over which placeholders are spread. The ledger does not know it.
	Domains int
	// MaxPodRequests is the highest request of any pod for each resource. LargestByCPU and
	// LargestByMemory are the requests of the pod with the highest request of that resource; the
	// other resource breaks ties. All are zero if there are no pods.
	MaxPodRequests, LargestByCPU, LargestByMemory resources.Amounts
	// Shapes are the capacities of usable nodes after daemon pods, without shapes that another shape
	// exceeds in all resources, in a fixed order.
	Shapes []resources.Amounts
	// Expected is the capacity of the nodes that the pool will have if it has none, zero if it is not known.
	Expected resources.Amounts
}

// averageNode returns the allocatable resources of the average node, or else of the node that the pool will have.
func (p *poolTotals) averageNode() resources.Amounts {
	if p.Nodes == 0 {
		return p.Expected
	}
	return p.Allocatable.DivideUp(int64(p.Nodes))
}

// maximalShapes returns the shapes that no other shape exceeds in all resources, by descending CPU.
// Amounts that fit any shape fit one of these.
func maximalShapes(shapes []resources.Amounts) []resources.Amounts {
	slices.SortFunc(shapes, func(a, b resources.Amounts) int {
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory))
	})
	// CPU does not increase from one shape to the next: a shape is maximal if it has more memory than
	// all shapes before it.
	maximal, memory := shapes[:0], int64(-1)
	for _, shape := range shapes {
		if shape.Memory > memory {
			maximal, memory = append(maximal, shape), shape.Memory
		}
	}
	return maximal
}

// fitsAny reports whether one of the shapes has enough of all resources.
func fitsAny(a resources.Amounts, shapes []resources.Amounts) bool {
	return slices.ContainsFunc(shapes, a.FitsIn)
}
