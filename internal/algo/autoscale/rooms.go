package autoscale

// rooms find the first node that has room, without asking each: a binary tree whose
// leaves are what nodes have free, and whose other nodes are the most of each
// resource that anything below them has.
type rooms struct {
	leaves int // a power of two
	nodes  int
	most   []Amounts // the root is at 1, leaf i at leaves + i
}

// add adds a node, which has the next number.
func (r *rooms) add(free Amounts) {
	if r.nodes == r.leaves {
		grown := rooms{leaves: max(1, 2*r.leaves), nodes: r.nodes}
		grown.most = make([]Amounts, 2*grown.leaves)
		copy(grown.most[grown.leaves:], r.most[r.leaves:])
		for i := grown.leaves - 1; i >= 1; i-- {
			grown.most[i] = grown.most[2*i].most(grown.most[2*i+1])
		}
		*r = grown
	}
	r.nodes++
	r.set(r.nodes-1, free)
}

// pop takes the last node away.
func (r *rooms) pop() {
	r.set(r.nodes-1, Amounts{})
	r.nodes--
}

// free returns what a node has.
func (r *rooms) free(node int) Amounts { return r.most[r.leaves+node] }

// set says what a node has.
func (r *rooms) set(node int, free Amounts) {
	i := r.leaves + node
	r.most[i] = free
	for i >>= 1; i >= 1; i >>= 1 {
		r.most[i] = r.most[2*i].most(r.most[2*i+1])
	}
}

// first returns the first node from a number on that has room and of which ok says
// yes, or the number of nodes if there is none. A pod needs a slot, and a node that
// is closed has none.
func (r *rooms) first(needs Amounts, from int, ok func(node int) bool) int {
	if found := r.search(1, 0, r.leaves, needs, from, ok); found >= 0 {
		return found
	}
	return r.nodes
}

// search looks below one of the tree's nodes, which has so many leaves from one on.
func (r *rooms) search(at, start, leaves int, needs Amounts, from int, ok func(int) bool) int {
	if start >= r.nodes || start+leaves <= from || !needs.FitsIn(r.most[at]) {
		return -1
	}
	if leaves == 1 {
		if ok(start) {
			return start
		}
		return -1
	}
	half := leaves / 2
	if found := r.search(2*at, start, half, needs, from, ok); found >= 0 {
		return found
	}
	return r.search(2*at+1, start+half, half, needs, from, ok)
}
