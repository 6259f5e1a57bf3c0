package placement

import "slices"

// SpreadConstraint asks that the decisions be spread evenly over the values of a
// label or claim, its topologies.
type SpreadConstraint struct {
	// Key of the label, or of the claim if Claim is true.
	Key   string
	Claim bool
	// MaxSkew is by how many decisions a topology may exceed the one with the
	// fewest; less than 1 counts as 1.
	MaxSkew int32
	// DoNotSchedule rather takes fewer clusters than exceed MaxSkew. Otherwise the
	// constraint is a preference, ahead of the ranking.
	DoNotSchedule bool
}

// value returns the topology of a cluster, if it has one.
func (s *SpreadConstraint) value(c *Cluster) (string, bool) {
	set := c.Labels
	if s.Claim {
		set = c.Claims
	}
	value, found := set[s.Key]
	return value, found
}

// nowhere is the topology of clusters without the key.
const nowhere = -1

// topologies counts the decisions of one constraint.
type topologies struct {
	maxSkew int32
	hard    bool
	// chosen are the decisions of each topology; least is the fewest, and atLeast
	// how many topologies have no more.
	chosen         []int32
	least, atLeast int32
	// exceeded: some topology was found to be at the limit, so that a rise of least
	// makes a difference.
	exceeded bool
}

// exceeds reports whether one more decision would break the constraint. A
// cluster without the key always does.
func (t *topologies) exceeds(topology int32) bool {
	if topology == nowhere {
		return true
	}
	if int64(t.chosen[topology])+1-int64(t.least) <= int64(t.maxSkew) {
		return false
	}
	t.exceeded = true
	return true
}

// add counts a decision, and reports whether that may let a topology have more
// that was at the limit.
func (t *topologies) add(topology int32) (relaxed bool) {
	if topology == nowhere {
		return false
	}
	t.chosen[topology]++
	if t.chosen[topology]-1 > t.least {
		return false
	}
	if t.atLeast--; t.atLeast > 0 {
		return false
	}
	t.least++
	for _, n := range t.chosen {
		if n == t.least {
			t.atLeast++
		}
	}
	relaxed, t.exceeded = t.exceeded, false
	return relaxed
}

// class is the clusters that share the topology of every constraint: for the
// constraints they are the same, so that the best of them goes first.
type class struct {
	topology []int32 // by constraint
	queue    []int32 // of clusters, the best first
	broken   uint64  // preferences, as it was found last; it may be more by now
}

// spreading is a selection under way.
type spreading struct {
	d           *Decision
	constraints []topologies
	classes     []class
	// heap of the classes that may come next, the best first. Between two rises of
	// a least count classes only get worse, and that is noticed when they have come
	// up; those that are forbidden are left out. At a rise all are looked at again.
	heap []int32
}

// spread marks up to n feasible clusters as chosen, one after the other. Each is
// the best of those that no DoNotSchedule constraint forbids at that moment:
// first those without an untolerated PreferNoSelect taint, then those that break
// no ScheduleAnyway constraint, or a later one in the list (of the first 64),
// then by rank. A constraint is broken by a cluster whose topology would have
// more than MaxSkew decisions over the topology with the fewest.
//
// Topologies are those of the feasible clusters that have the keys of all
// DoNotSchedule constraints. A topology whose clusters are all chosen still
// counts as the one with the fewest, as in Kubernetes. A cluster without the key
// of a DoNotSchedule constraint is not chosen, because it would evade the
// constraint; one without the key of a ScheduleAnyway constraint counts as
// breaking that, and for no topology.
func (r *Request) spread(d *Decision, feasible []int32, n int) {
	s := r.newSpreading(d, feasible)
	s.queueAll()
	for ; n > 0 && s.settle(); n-- {
		s.take()
	}
	for i := range s.classes {
		c := &s.classes[i]
		if by := s.forbids(c); by >= 0 {
			for _, i := range c.queue {
				d.Clusters[i].Outcome, d.Clusters[i].Detail = Skewed, by
			}
		}
	}
}

// queueAll fills the heap with all classes that have clusters left.
func (s *spreading) queueAll() {
	s.heap = s.heap[:0]
	for i := range s.classes {
		if c := &s.classes[i]; len(c.queue) > 0 {
			c.broken = s.broken(c)
			s.heap = append(s.heap, int32(i))
		}
	}
	heapify(s.heap, s.before)
}

// settle makes the first class of the heap the one that comes next, if there is
// any.
func (s *spreading) settle() bool {
	for len(s.heap) > 0 {
		c := &s.classes[s.heap[0]]
		if s.forbids(c) >= 0 {
			s.drop()
			continue
		}
		broken := s.broken(c)
		if broken == c.broken {
			return true
		}
		c.broken = broken
		sink(s.heap, 0, s.before)
	}
	return false
}

// drop takes the first class off the heap.
func (s *spreading) drop() {
	last := len(s.heap) - 1
	s.heap[0] = s.heap[last]
	s.heap = s.heap[:last]
	sink(s.heap, 0, s.before)
}

// take chooses the best cluster of the first class.
func (s *spreading) take() {
	c := &s.classes[s.heap[0]]
	s.d.Clusters[c.queue[0]].Outcome = Chosen
	c.queue = c.queue[1:]
	relaxed := false
	for k := range s.constraints {
		relaxed = s.constraints[k].add(c.topology[k]) || relaxed
	}
	switch {
	case relaxed:
		s.queueAll()
	case len(c.queue) == 0:
		s.drop()
	default:
		sink(s.heap, 0, s.before)
	}
}

// newSpreading sorts the feasible clusters into classes.
func (r *Request) newSpreading(d *Decision, feasible []int32) *spreading {
	s := &spreading{d: d, constraints: make([]topologies, len(r.Spread))}
	// Topologies and classes are numbered as they are met.
	numbers := make([]map[string]int32, len(r.Spread))
	type path struct{ before, topology int32 }
	paths := make([]map[path]int32, len(r.Spread))
	for k := range r.Spread {
		s.constraints[k] = topologies{maxSkew: max(r.Spread[k].MaxSkew, 1), hard: r.Spread[k].DoNotSchedule}
		numbers[k], paths[k] = map[string]int32{}, map[path]int32{}
	}
	ranked := slices.Clone(feasible)
	slices.SortFunc(ranked, d.Compare)
	topology := make([]int32, len(r.Spread))
	for _, i := range ranked {
		if by := r.keyless(r.Fleet[i]); by >= 0 {
			d.Clusters[i].Outcome, d.Clusters[i].Detail = NoTopology, by
			continue
		}
		at := path{}
		for k := range r.Spread {
			at.topology = nowhere
			if value, found := r.Spread[k].value(r.Fleet[i]); found {
				at.topology = number(numbers[k], value)
			}
			topology[k] = at.topology
			at.before = number(paths[k], at)
		}
		if int(at.before) == len(s.classes) {
			s.classes = append(s.classes, class{topology: slices.Clone(topology)})
		}
		c := &s.classes[at.before]
		c.queue = append(c.queue, i)
	}
	for k := range s.constraints {
		n := len(numbers[k])
		s.constraints[k].chosen, s.constraints[k].atLeast = make([]int32, n), int32(n)
	}
	return s
}

// number returns the number of a key, the next one for a key not met before.
func number[K comparable](numbers map[K]int32, key K) int32 {
	n, known := numbers[key]
	if !known {
		n = int32(len(numbers))
		numbers[key] = n
	}
	return n
}

// keyless returns the first DoNotSchedule constraint whose key a cluster lacks,
// or -1.
func (r *Request) keyless(c *Cluster) int32 {
	for k := range r.Spread {
		if _, found := r.Spread[k].value(c); !found && r.Spread[k].DoNotSchedule {
			return int32(k)
		}
	}
	return -1
}

// before reports whether the best cluster of class a goes before that of b.
func (s *spreading) before(a, b int32) bool {
	x, y := &s.classes[a], &s.classes[b]
	if s.d.Clusters[x.queue[0]].Avoided == s.d.Clusters[y.queue[0]].Avoided && x.broken != y.broken {
		return x.broken < y.broken
	}
	return s.d.Compare(x.queue[0], y.queue[0]) < 0
}

// forbids returns the first DoNotSchedule constraint that one more decision in
// the class would break, or -1.
func (s *spreading) forbids(c *class) int32 {
	for k := range s.constraints {
		if s.constraints[k].hard && s.constraints[k].exceeds(c.topology[k]) {
			return int32(k)
		}
	}
	return -1
}

// broken returns the ScheduleAnyway constraints that one more decision in the
// class would break, the first as the highest bit.
func (s *spreading) broken(c *class) uint64 {
	var bits uint64
	for k := range s.constraints {
		if !s.constraints[k].hard && s.constraints[k].exceeds(c.topology[k]) {
			bits |= 1 << 63 >> k
		}
	}
	return bits
}
