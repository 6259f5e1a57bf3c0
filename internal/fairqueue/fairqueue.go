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

// share is the reciprocal of the part of the values that is taken from less urgent levels.
const share = 4

// Levels is a queue of different values with levels of urgency, 0 being the most urgent one.
// Within a level it takes values from their groups in turn. Every share-th value is from a
// less urgent level, if one has values, so that no level waits forever. It is not safe for
// concurrent use.
type Levels[G, T comparable] struct {
	queues []queue[G, T]
	// entries has the values in each queue. A value that became more urgent remains in the queue of
	// its previous level until it is at the head of that queue.
	entries []map[T]bool
	// level is the level of each queued value.
	level map[T]int
	taken int
}

// NewLevels returns an empty queue with the given number of levels, at least 1.
func NewLevels[G, T comparable](levels int) *Levels[G, T] {
	l := &Levels[G, T]{queues: make([]queue[G, T], levels), entries: make([]map[T]bool, levels), level: map[T]int{}}
	for i := range l.entries {
		l.entries[i] = map[T]bool{}
	}
	return l
}

// Push adds a value at the end of its group. A value that is in the queue keeps its place
// unless the level is more urgent than its own.
func (l *Levels[G, T]) Push(level int, group G, value T) {
	if current, queued := l.level[value]; queued && current <= level {
		return
	}
	l.level[value] = level
	if !l.entries[level][value] {
		l.entries[level][value] = true
		l.queues[level].Push(group, value)
	}
}

// Pop removes and returns the next value. ok is false if the queue is empty.
func (l *Levels[G, T]) Pop() (value T, level int, ok bool) {
	if len(l.level) == 0 {
		return value, 0, false
	}
	l.taken++
	if less := len(l.queues) - 1; less > 0 && l.taken%share == 0 {
		for i := range less { // beginning with another level each time
			level = 1 + (l.taken/share+i)%less
			if value, ok = l.popFrom(level); ok {
				return value, level, true
			}
		}
	}
	for level = range l.queues {
		if value, ok = l.popFrom(level); ok {
			return value, level, true
		}
	}
	return value, 0, false
}

// Len returns the number of values.
func (l *Levels[G, T]) Len() int { return len(l.level) }

// popFrom removes the next value of a level.
func (l *Levels[G, T]) popFrom(level int) (value T, ok bool) {
	for value, ok = l.queues[level].Pop(); ok; value, ok = l.queues[level].Pop() {
		delete(l.entries[level], value)
		if current, queued := l.level[value]; queued && current == level {
			delete(l.level, value)
			return value, true
		}
	}
	return value, false
}
