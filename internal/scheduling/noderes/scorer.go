package noderes

import (
	"context"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// Scorer implements PreScore and Score of a plugin that computes data once per scheduling cycle, and scores each node with
// them. A profile may enable the plugin under score alone: then the first Score of a cycle computes the data, and each Score
// the score of its node. Plugins embed it.
type Scorer[T any] struct {
	cache  *Cache
	handle fwk.Handle
	cycle  Cycle[scoredCycle[T]]
	begin  func(*Pending) T
	score  func(*T, Place, fwk.NodeInfo) int64
}

// scoredCycle is the data of a cycle, with the scores of its candidates if PreScore has computed them.
type scoredCycle[T any] struct {
	data   T
	scores Scores
}

// NewScorer returns the scorer of a plugin. key must be unique among the plugins of a profile. begin returns the data of a
// cycle from the amounts of its pod; they must not be changed afterwards. score returns the score of the node at a place;
// several goroutines call it.
func NewScorer[T any](
	key fwk.StateKey, cache *Cache, handle fwk.Handle, begin func(*Pending) T, score func(*T, Place, fwk.NodeInfo) int64,
) Scorer[T] {
	return Scorer[T]{cache: cache, handle: handle, cycle: NewCycle[scoredCycle[T]](key), begin: begin, score: score}
}

// PreScore computes the data of the cycle and the scores of all candidates.
func (s *Scorer[T]) PreScore(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	c := s.newCycle(state, pod)
	c.scores = s.cache.Score(ctx, s.handle, state, nodes, func(place Place, node fwk.NodeInfo) int64 {
		return s.score(&c.data, place, node)
	})
	s.cycle.Set(state, c)
	return nil
}

// Score returns the score of a node, before normalization.
func (s *Scorer[T]) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := s.cycleOf(state, pod)
	if score, known := c.scores.Of(node); known {
		return score, nil
	}
	return s.score(&c.data, s.cache.Place(node, s.handle.SnapshotSharedLister()), node), nil
}

// Data returns the data of a cycle.
func (s *Scorer[T]) Data(state fwk.CycleState, pod *v1.Pod) *T { return &s.cycleOf(state, pod).data }

// cycleOf returns what is known of a cycle. It begins the cycle if PreScore did not.
func (s *Scorer[T]) cycleOf(state fwk.CycleState, pod *v1.Pod) *scoredCycle[T] {
	c := s.cycle.Get(state)
	if c == nil {
		c = s.newCycle(state, pod)
		s.cycle.Set(state, c)
	}
	return c
}

func (s *Scorer[T]) newCycle(state fwk.CycleState, pod *v1.Pod) *scoredCycle[T] {
	return &scoredCycle[T]{data: s.begin(s.cache.Pending(state, pod, s.handle.SnapshotSharedLister()))}
}
