package slack

import (
	"maps"
	"math"
	"slices"
)

// Demand is a number of equal placeholders that want room.
type Demand struct {
	Group
	// Allowed says which nodes they may be on; nil stands for those of the pool.
	Allowed func(node string) bool
}

// Spare is what a node has beside its pods.
type Spare struct {
	// InPool and Usable as the node was set.
	InPool, Usable bool
	// Free amounts, and how many more pods it takes.
	Free  Amounts
	Slots int64
}

// Spare returns what a node has beside its pods; a node that is not known has
// nothing.
func (l *Ledger) Spare(name string) Spare {
	a := l.nodes[name]
	if a == nil || !a.known {
		return Spare{}
	}
	return Spare{a.InPool, a.Usable, a.free(), a.Slots - int64(len(a.pods))}
}

// Room returns how many of the placeholders there is room for at once, one
// demand after the other. Those of the last demand are counted exactly. Those
// before it are put where they take the least from it; another way to put them
// may have room for more.
func (l *Ledger) Room(demands []Demand) (placed int64) {
	if l.names == nil {
		l.names = slices.Sorted(maps.Keys(l.nodes))
	}
	nodes := make([]Spare, len(l.names))
	for i, name := range l.names {
		nodes[i] = l.Spare(name)
	}
	for i, demand := range demands {
		var rest Amounts // what the last demand wants of a node
		if i+1 < len(demands) {
			rest = demands[len(demands)-1].Size
		}
		placed += l.seat(nodes, demand, rest)
	}
	return placed
}

// seat takes room for a demand and returns how many have it: first where that
// takes no room from placeholders of the size rest, then where it takes the
// least.
func (l *Ledger) seat(nodes []Spare, demand Demand, rest Amounts) (placed int64) {
	candidates := l.candidates(nodes, demand)
	for _, node := range candidates {
		for placed < demand.Count && node.takes(demand.Size) > 0 && node.loss(demand.Size, rest) == 0 {
			n := int64(1)
			if rest.IsZero() {
				n = min(node.takes(demand.Size), demand.Count-placed)
			}
			node.take(demand.Size, n)
			placed += n
		}
	}
	for placed < demand.Count {
		var best *Spare
		least := int64(math.MaxInt64)
		for _, node := range candidates {
			if loss := node.loss(demand.Size, rest); node.takes(demand.Size) > 0 && loss < least {
				best, least = node, loss
			}
		}
		if best == nil {
			return placed
		}
		n := int64(1)
		if demand.Count > 2 {
			// Of many, all that fit: else this would be placeholders x nodes.
			n = min(best.takes(demand.Size), demand.Count-placed)
		}
		best.take(demand.Size, n)
		placed += n
	}
	return placed
}

// candidates returns the nodes that have room for a placeholder and may have it.
func (l *Ledger) candidates(nodes []Spare, demand Demand) []*Spare {
	out := make([]*Spare, 0, len(nodes))
	for i := range nodes {
		node := &nodes[i]
		if !node.Usable || node.takes(demand.Size) == 0 {
			continue
		}
		if demand.Allowed == nil && node.InPool || demand.Allowed != nil && demand.Allowed(l.names[i]) {
			out = append(out, node)
		}
	}
	return out
}

// takes returns how many placeholders of a size there is room for.
func (s *Spare) takes(size Amounts) int64 {
	n := max(0, s.Slots)
	for r := range size {
		if size[r] > 0 {
			n = min(n, s.Free[r]/size[r])
		}
	}
	return n
}

func (s *Spare) take(size Amounts, n int64) {
	s.Free = s.Free.Minus(size.Times(n))
	s.Slots -= n
}

// loss returns how many fewer of the size rest there is room for beside one more
// of a size.
func (s *Spare) loss(size, rest Amounts) int64 {
	if rest.IsZero() {
		return 0
	}
	after := *s
	after.take(size, 1)
	return s.takes(rest) - after.takes(rest)
}
