package replay

import (
	"container/heap"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// completion is the second at which a pod ends.
type completion struct {
	second int64
	pod    int32
}

// completions are the future completions as a heap, ordered by second and then by
// pod number.
type completions []completion

// Len implements heap.Interface.
func (c completions) Len() int { return len(c) }

// Less implements heap.Interface.
func (c completions) Less(i, j int) bool {
	return c[i].second < c[j].second || c[i].second == c[j].second && c[i].pod < c[j].pod
}

// Swap implements heap.Interface.
func (c completions) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *completions) Push(x any) { *c = append(*c, x.(completion)) }

// Pop implements heap.Interface.
func (c *completions) Pop() any {
	last := (*c)[len(*c)-1]
	*c = (*c)[:len(*c)-1]
	return last
}

// add adds a completion.
func (c *completions) add(second int64, pod int32) { heap.Push(c, completion{second, pod}) }

// next returns the second of the next completion, recording.Never if there is none.
func (c completions) next() int64 {
	if len(c) == 0 {
		return recording.Never
	}
	return c[0].second
}

// popUntil removes the next completion up to a second, and returns its pod. It
// returns false if there is none.
func (c *completions) popUntil(second int64) (int32, bool) {
	if c.next() > second {
		return 0, false
	}
	return heap.Pop(c).(completion).pod, true
}
