package noderes

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
	if s.index >= len(sums.slots) {
		return nil
	}
	value, _ := sums.slots[s.index].Load().(*T)
	return value
}

// Set stores a value in the sums, which must be from the cache of the slot. The value must not be
// changed afterwards.
func (s Slot[T]) Set(sums *Sums, value *T) {
	if s.index < len(sums.slots) {
		sums.slots[s.index].Store(value)
	}
}
