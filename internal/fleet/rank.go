package fleet

import (
	"cmp"
	"math"
	"slices"
)

// Compare orders two feasible clusters, given by their indexes in the fleet, the
// better one first: clusters without a PreferNoSelect taint that is not tolerated,
// then higher totals, then clusters that were chosen before, then by name. It is
// only 0 for the same cluster.
func (d *Decision) Compare(a, b int32) int {
	x, y := &d.Clusters[a], &d.Clusters[b]
	switch {
	case x.Avoided != y.Avoided:
		if y.Avoided {
			return -1
		}
		return 1
	case x.Total != y.Total:
		return cmp.Compare(y.Total, x.Total)
	case x.WasChosen != y.WasChosen:
		if x.WasChosen {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b) // the fleet is sorted by name
}

// chooseBest marks the n best feasible clusters as chosen and returns them, ascending; n is less
// than the number of feasible clusters.
func (d *Decision) chooseBest(feasible []int32, n int) []int32 {
	// A heap of the n best clusters so far, the worst of them at its root: most
	// clusters are compared with the root only.
	heap := append(make([]int32, 0, n), feasible[:n]...)
	if n == 0 {
		return heap
	}
	worse := func(a, b int32) bool { return d.Compare(a, b) > 0 }
	heapify(heap, worse)
	least := d.leastTotal(heap[0])
	for _, cluster := range feasible[n:] {
		if d.Clusters[cluster].Total >= least && d.Compare(cluster, heap[0]) < 0 {
			heap[0] = cluster
			siftDown(heap, 0, worse)
			least = d.leastTotal(heap[0])
		}
	}
	for _, cluster := range heap {
		d.Clusters[cluster].Outcome = Chosen
	}
	slices.Sort(heap)
	return heap
}

// leastTotal returns the total below which every cluster ranks after the given one.
func (d *Decision) leastTotal(cluster int32) int64 {
	if d.Clusters[cluster].Avoided {
		return math.MinInt64 // clusters that are not avoided rank before it with any total
	}
	return d.Clusters[cluster].Total
}

// heapify makes a list a heap: no element is above its parent, at (i-1)/2.
func heapify(heap []int32, above func(a, b int32) bool) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftDown(heap, i, above)
	}
}

// siftDown restores the heap after the element at i has changed its rank to a lower one.
func siftDown(heap []int32, i int, above func(a, b int32) bool) {
	for {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if right := child + 1; right < len(heap) && above(heap[right], heap[child]) {
			child = right
		}
		if !above(heap[child], heap[i]) {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
