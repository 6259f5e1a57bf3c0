package noderes

import "sync/atomic"

// Slot is the place of one plugin's value in the sums of every node, for results that depend on the
// node only. It takes no lock, and reading it allocates nothing.
type Slot[T any] struct{ index int }

// NewSlot reserves a slot in the sums of a cache. A plugin reserves its slots in its constructor:
// sums that were computed before have no place for the value.
func NewSlot[T any](c *Cache) Slot[T] {
	return Slot[T]{int(c.slotCount.Add(1)) - 1}
}

// Get returns the value in the sums, or nil. The sums must be from the cache of the slot.
func (s Slot[T]) Get(sums *Sums) *T {
	place := s.place(sums)
	if place == nil {
		return nil
	}
	value, _ := place.Load().(*T)
	return value
}

// Set stores a value in the sums, which must be from the cache of the slot. The value must not be
// changed afterwards.
func (s Slot[T]) Set(sums *Sums, value *T) {
	if place := s.place(sums); place != nil {
		place.Store(value)
	}
}

// place returns the place of the value, nil if the sums were computed before the slot was reserved.
func (s Slot[T]) place(sums *Sums) *atomic.Value {
	if s.index < len(sums.inPlace) {
		if s.index >= int(sums.slotsInPlace) {
			return nil
		}
		return &sums.inPlace[s.index]
	}
	if further := s.index - len(sums.inPlace); further < len(sums.furtherSlots) {
		return &sums.furtherSlots[further]
	}
	return nil
}
