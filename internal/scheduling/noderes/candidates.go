package noderes

import (
	"context"

	fwk "k8s.io/kube-scheduler/framework"
)

// candidates are the nodes that a scheduling cycle scores, with their places in a cache. All plugins of a
// cycle share them. The next cycle overwrites them, so that a cycle allocates nothing: the scheduler runs one
// scheduling cycle after the other.
type candidates struct {
	// cycle is the number of the cycle that they are those of.
	cycle uint64

	index
	table *table
	// places are the positions of the nodes in the table.
	places []int32
	// scores are those by the plugins that have scored them, the first scored of them in the present cycle.
	scores [][]int64
	scored int
}

// Score returns the scores of all nodes of a PreScore. One loop over all nodes waits for main memory far less
// than one call of the plugin's Score per node, between which the scheduler does much else: the processor loads the
// values of the next nodes while it computes with those of the first.
func (c *Cache) Score(
	ctx context.Context, handle fwk.Handle, state fwk.CycleState, nodes []fwk.NodeInfo, score func(Place, fwk.NodeInfo) int64,
) Scores {
	found := c.candidatesOf(state, nodes, handle.SnapshotSharedLister())
	values := found.newScores()
	if pieces := len(values) / nodesPerPiece; pieces > 1 {
		handle.Parallelizer().Until(ctx, pieces, func(i int) {
			found.score(values, i*len(values)/pieces, (i+1)*len(values)/pieces, score)
		}, "PreScore")
	} else {
		found.score(values, 0, len(values), score)
	}
	return Scores{found, found.cycle, values}
}

// score scores the candidates from begin to end.
func (c *candidates) score(values []int64, begin, end int, score func(Place, fwk.NodeInfo) int64) {
	for i := begin; i < end; i++ {
		values[i] = score(Place{c.table, int(c.places[i])}, c.nodes[i])
	}
}

// nodesPerPiece is the number of nodes that one goroutine scores at least: for fewer, starting another one costs more
// than it saves.
const nodesPerPiece = 1000

// candidatesOf returns the candidates of a cycle, which its first PreScore looks up. all is the snapshot
// of the cycle.
func (c *Cache) candidatesOf(state fwk.CycleState, nodes []fwk.NodeInfo, all fwk.SharedLister) *candidates {
	found := &c.candidates
	if state == c.candidatesState && isSame(found.nodes, nodes) {
		return found
	}
	if !found.begin(c.nodes.Load(), nodes) {
		found.begin(c.addNodes(nodes, all), nodes)
	}
	c.candidatesState = state
	return found
}

// isSame reports whether two slices are the same: the scheduler passes the same nodes to all plugins of a cycle.
func isSame(a, b []fwk.NodeInfo) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// begin makes nodes that are in a table the candidates of a new cycle. It reports whether the table has all of them.
func (c *candidates) begin(t *table, nodes []fwk.NodeInfo) bool {
	c.cycle++
	c.reset(nodes)
	c.table, c.places, c.scored = t, c.places[:0], 0
	var runs runs
	for _, address := range c.addresses {
		position, known := runs.find(&t.index, address)
		if !known {
			return false
		}
		c.places = append(c.places, int32(position))
	}
	return true
}

// newScores returns the place for the scores by a further plugin.
func (c *candidates) newScores() []int64 {
	if c.scored == len(c.scores) {
		c.scores = append(c.scores, nil)
	}
	scores := &c.scores[c.scored]
	c.scored++
	if cap(*scores) < len(c.nodes) {
		*scores = make([]int64, len(c.nodes))
	}
	return (*scores)[:len(c.nodes)]
}

// Scores are the scores of the candidates of a cycle by one plugin.
type Scores struct {
	candidates *candidates
	// cycle is the number of the cycle.
	cycle  uint64
	values []int64
}

// Of returns the score of a node, and whether it is known: it is that of a candidate until the next cycle.
func (s *Scores) Of(node fwk.NodeInfo) (score int64, known bool) {
	if s.candidates == nil || s.candidates.cycle != s.cycle {
		return 0, false
	}
	i, known := s.candidates.find(node)
	if !known {
		return 0, false
	}
	return s.values[i], true
}
