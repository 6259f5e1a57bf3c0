package noderes

import (
	"context"
	"slices"

	fwk "k8s.io/kube-scheduler/framework"
)

// candidates are the nodes that a scheduling cycle scores, with their places in a cache. All plugins of a
// cycle share them.
type candidates struct {
	index
	table *table
	// places are the positions of the nodes in the table.
	places []int32
}

// Score returns the scores of all nodes of a PreScore. One loop over all nodes waits for main memory far less
// than one call of the plugin's Score per node, between which the scheduler does much else: the processor loads the
// values of the next nodes while it computes with those of the first.
func (c *Cache) Score(
	ctx context.Context, handle fwk.Handle, state fwk.CycleState, nodes []fwk.NodeInfo, score func(Place, fwk.NodeInfo) int64,
) Scores {
	found := c.candidatesOf(state, nodes, handle.SnapshotSharedLister())
	values := make([]int64, len(found.nodes))
	piece := func(begin, end int) {
		for i := begin; i < end; i++ {
			values[i] = score(Place{found.table, int(found.places[i])}, found.nodes[i])
		}
	}
	if pieces := len(values) / nodesPerPiece; pieces > 1 {
		handle.Parallelizer().Until(ctx, pieces, func(i int) {
			piece(i*len(values)/pieces, (i+1)*len(values)/pieces)
		}, "PreScore")
	} else {
		piece(0, len(values))
	}
	return Scores{found, values}
}

// nodesPerPiece is the number of nodes that one goroutine scores at least: for fewer, starting another one costs more
// than it saves.
const nodesPerPiece = 1000

// candidatesOf returns the candidates of a cycle, which its first PreScore looks up. all is the snapshot
// of the cycle.
func (c *Cache) candidatesOf(state fwk.CycleState, nodes []fwk.NodeInfo, all fwk.SharedLister) *candidates {
	if found := c.candidates.Get(state); found != nil && slices.Equal(found.nodes, nodes) {
		return found
	}
	found, missing := newCandidates(c.nodes.Load(), nodes)
	if missing != nil {
		found, _ = newCandidates(c.addNodes(missing, all).table, nodes)
	}
	c.candidates.Set(state, found)
	return found
}

// newCandidates looks up the candidates in a table. If one is missing, it returns it.
func newCandidates(t *table, nodes []fwk.NodeInfo) (found *candidates, missing fwk.NodeInfo) {
	found = &candidates{index: newIndex(len(nodes)), table: t, places: make([]int32, len(nodes))}
	last := -1
	for _, node := range nodes {
		position, known := t.findNear(node, last+1) // most are in the order of the table
		if !known {
			return found, node
		}
		found.places[found.add(node)] = int32(position)
		last = position
	}
	return found, nil
}

// Scores are the scores of the candidates of a cycle by one plugin.
type Scores struct {
	candidates *candidates
	values     []int64
}

// Of returns the score of a node, and whether it is a candidate.
func (s *Scores) Of(node fwk.NodeInfo) (score int64, known bool) {
	if s.candidates == nil {
		return 0, false
	}
	i, known := s.candidates.find(node)
	if !known {
		return 0, false
	}
	return s.values[i], true
}
