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
	for i := n/2 - 1; i >= 0; i-- {
		d.sink(heap, i)
	}
	for _, cluster := range feasible[n:] {
		if d.Compare(cluster, heap[0]) < 0 {
			heap[0] = cluster
			d.sink(heap, 0)
		}
	}
	for _, cluster := range heap {
		d.Clusters[cluster].Outcome = Chosen
	}
}

// sink restores a heap with the worst at its root after the element at i has
// become better.
func (d *Decision) sink(heap []int32, i int) {
	for {
		worst := 2*i + 1
		if worst >= len(heap) {
			return
		}
		if right := worst + 1; right < len(heap) && d.Compare(heap[right], heap[worst]) > 0 {
			worst = right
		}
		if d.Compare(heap[worst], heap[i]) < 0 {
			return
		}
		heap[i], heap[worst] = heap[worst], heap[i]
		i = worst
	}
}
