package capacity

import (
	"cmp"
	"container/heap"
	"slices"
)

// cell is a list of nodes that become one group.
type cell struct {
	class int
	nodes []int
	// gain is how much less is lost if the cell is divided: into the nodes before and after position at in the order of
	// dimension by.
	gain   float64
	by, at int
	// order is the number of the cell, which breaks ties.
	order int
}

// cells is a heap of cells, the one with the highest gain first.
type cells []*cell

func (c cells) Len() int { return len(c) }

func (c cells) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(c[j].gain, c[i].gain), cmp.Compare(c[i].order, c[j].order)) < 0
}
func (c cells) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *cells) Push(x any) { *c = append(*c, x.(*cell)) }

// Pop implements heap.Interface.
func (c *cells) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// divider divides nodes into groups. Each group has the lowest amounts of its nodes: what the other nodes have in excess is lost.
// It divides the group first that loses the most, at the position where this loses the least.
type divider struct {
	// amounts has the amounts of each node by dimension.
	amounts [][]int64
	// weights are the weights of lost amounts by dimension.
	weights []float64
	// buffers of gainOf.
	sorted []int
	after  []float64
	lowest []int64
}

// divide returns at most limit cells of the nodes, at least one for each class. Nodes are numbered in the order of their classes.
func (d *divider) divide(classOf []int, classes, limit int) []*cell {
	var queue cells
	members := make([][]int, classes)
	for i, class := range classOf {
		members[class] = append(members[class], i)
	}
	for class, nodes := range members {
		if len(nodes) > 0 {
			queue = append(queue, d.cellOf(class, nodes, len(queue)))
		}
	}
	heap.Init(&queue)
	for order := len(queue); len(queue) < limit && queue[0].gain > 0; order += 2 {
		c := heap.Pop(&queue).(*cell)
		d.sortBy(c.nodes, c.by)
		heap.Push(&queue, d.cellOf(c.class, c.nodes[:c.at:c.at], order))
		heap.Push(&queue, d.cellOf(c.class, c.nodes[c.at:], order+1))
	}
	return queue
}

// sortBy sorts nodes by their amounts of a dimension, and by their numbers.
func (d *divider) sortBy(nodes []int, by int) {
	amounts := d.amounts[by]
	slices.SortFunc(nodes, func(a, b int) int { return cmp.Or(cmp.Compare(amounts[a], amounts[b]), cmp.Compare(a, b)) })
}

// cellOf returns a cell with its gain.
func (d *divider) cellOf(class int, nodes []int, order int) *cell {
	c := &cell{class: class, nodes: nodes, order: order}
	base := d.held(nodes)
	for by := range d.amounts {
		first := d.amounts[by][nodes[0]]
		if !slices.ContainsFunc(nodes, func(n int) bool { return d.amounts[by][n] != first }) {
			continue
		}
		if at, held := d.bestSplit(nodes, by); held-base > c.gain {
			c.gain, c.by, c.at = held-base, by, at
		}
	}
	return c
}

// held returns the weighted amounts that nodes have as one group.
func (d *divider) held(nodes []int) (sum float64) {
	for r := range d.amounts {
		lowest := d.amounts[r][nodes[0]]
		for _, n := range nodes {
			lowest = min(lowest, d.amounts[r][n])
		}
		sum += d.weights[r] * float64(lowest) * float64(len(nodes))
	}
	return sum
}

// bestSplit returns the position in the order of a dimension at which two groups have the most, and what they have. Different
// amounts are never on the same side by chance: equal amounts are not divided.
func (d *divider) bestSplit(nodes []int, by int) (at int, held float64) {
	d.sorted = append(d.sorted[:0], nodes...)
	d.sortBy(d.sorted, by)
	n := len(nodes)
	d.after = append(d.after[:0], make([]float64, n)...)
	sumOf := func(count int) (sum float64) {
		for r := range d.amounts {
			sum += d.weights[r] * float64(d.lowest[r]) * float64(count)
		}
		return sum
	}
	add := func(node int, isFirst bool) {
		for r := range d.amounts {
			if amount := d.amounts[r][node]; isFirst || amount < d.lowest[r] {
				d.lowest[r] = amount
			}
		}
	}
	for i := n - 1; i > 0; i-- {
		add(d.sorted[i], i == n-1)
		d.after[i] = sumOf(n - i)
	}
	for i := 1; i < n; i++ {
		add(d.sorted[i-1], i == 1)
		if d.amounts[by][d.sorted[i]] == d.amounts[by][d.sorted[i-1]] {
			continue
		}
		if total := sumOf(i) + d.after[i]; at == 0 || total > held {
			at, held = i, total
		}
	}
	return at, held
}
