package placement

import "cmp"

// Compare orders two feasible clusters by their indexes in the fleet, the better
// first: those without a PreferNoSelect taint that is not tolerated, then those
// with the higher total, then those that were chosen before, then by name. No
// two clusters are equal.
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
	case x.Before != y.Before:
		if x.Before {
			return -1
		}
		return 1
	}
	return cmp.Compare(a, b) // the fleet is sorted by name
}

// best marks the n best of the feasible clusters, which are more than n, as
// chosen.
func (d *Decision) best(feasible []int32, n int) {
	if n == 0 {
		return
	}
	// A heap of the best so far, the worst of them at its root: most clusters
	// are compared with that one alone.
	heap := append(make([]int32, 0, n), feasible[:n]...)
	worse := func(a, b int32) bool { return d.Compare(a, b) > 0 }
	heapify(heap, worse)
	for _, cluster := range feasible[n:] {
		if d.Compare(cluster, heap[0]) < 0 {
			heap[0] = cluster
			sink(heap, 0, worse)
		}
	}
	for _, cluster := range heap {
		d.Clusters[cluster].Outcome = Chosen
	}
}

// heapify orders a list such that none is above its parent, that is at (i-1)/2:
// the first is above all.
func heapify(heap []int32, above func(a, b int32) bool) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i, above)
	}
}

// sink restores the order after the element at i has moved down in rank.
func sink(heap []int32, i int, above func(a, b int32) bool) {
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
