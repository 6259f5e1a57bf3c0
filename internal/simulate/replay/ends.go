package replay

import "container/heap"

// end is when a pod ends.
type end struct {
	second int64
	pod    int32
}

// ends are the ends to come, the next one first; of those at one second that of
// the pod with the lower number.
type ends []end

// Len implements heap.Interface.
func (e ends) Len() int { return len(e) }

// Less implements heap.Interface.
func (e ends) Less(i, j int) bool {
	return e[i].second < e[j].second || e[i].second == e[j].second && e[i].pod < e[j].pod
}

// Swap implements heap.Interface.
func (e ends) Swap(i, j int) { e[i], e[j] = e[j], e[i] }

// Push implements heap.Interface.
func (e *ends) Push(x any) { *e = append(*e, x.(end)) }

// Pop implements heap.Interface.
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// add takes an end in.
func (e *ends) add(second int64, pod int32) { heap.Push(e, end{second, pod}) }

// next returns when the next pod ends, never if none does.
func (e ends) next() int64 {
	if len(e) == 0 {
		return never
	}
	return e[0].second
}

// pop returns the next pod that ends by a second, and whether there is one.
func (e *ends) pop(second int64) (int32, bool) {
	if e.next() > second {
		return 0, false
	}
	return heap.Pop(e).(end).pod, true
}
