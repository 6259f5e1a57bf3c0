// Package fairqueue has queues that serve groups in turn, so that many entries of one group
// delay an entry of another group by one entry at most.
package fairqueue

// queue is a queue of values that takes them from their groups in turn. Values of one group
// keep their order. Every operation takes constant time for any number of groups. The zero value
// is empty and ready to use. It is not safe for concurrent use.
type queue[G comparable, T any] struct {
	// groups are the groups with values, the next one first.
	groups []G
	values map[G][]T
	length int
}

// Push adds a value at the end of its group.
func (q *queue[G, T]) Push(group G, value T) {
	if q.values == nil {
		q.values = map[G][]T{}
	}
	if len(q.values[group]) == 0 {
		q.groups = append(q.groups, group)
	}
	q.values[group] = append(q.values[group], value)
	q.length++
}

// Len returns the number of values.
func (q *queue[G, T]) Len() int { return q.length }

// Pop removes and returns the first value of the next group, and moves the group to the end.
// ok is false if the queue is empty.
func (q *queue[G, T]) Pop() (value T, ok bool) {
	if q.length == 0 {
		return value, false
	}
	group := q.groups[0]
	q.groups = q.groups[1:]
	value, rest := q.values[group][0], q.values[group][1:]
	if len(rest) > 0 {
		q.values[group] = rest
		q.groups = append(q.groups, group)
	} else {
		delete(q.values, group)
	}
	q.length--
	return value, true
}
