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
}

// exceeds reports whether one more decision would break the constraint. A
// cluster without the key always does.
func (t *topologies) exceeds(topology int32) bool {
	return topology == nowhere || int64(t.chosen[topology])+1-int64(t.least) > int64(t.maxSkew)
}

func (t *topologies) add(topology int32) {
	if topology == nowhere {
		return
	}
	t.chosen[topology]++
	if t.chosen[topology]-1 > t.least {
		return
	}
	if t.atLeast--; t.atLeast > 0 {
		return
	}
	t.least++
	for _, n := range t.chosen {
		if n == t.least {
			t.atLeast++
		}
	}
}

// class is the clusters that share the topology of every constraint: for the
// constraints they are the same, so that the best of them goes first.
type class struct {
	topology []int32 // by constraint
	queue    []int32 // of clusters, the best first
}

// spreading is a selection under way.
type spreading struct {
	constraints []topologies
	classes     []class
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
	for ; n > 0; n-- {
		next := s.next(d)
		if next < 0 {
			break
		}
		c := &s.classes[next]
		d.Clusters[c.queue[0]].Outcome = Chosen
		c.queue = c.queue[1:]
		for k := range s.constraints {
			s.constraints[k].add(c.topology[k])
		}
	}
	for _, c := range s.classes {
		if by := s.forbids(&c); by >= 0 {
			for _, i := range c.queue {
				d.Clusters[i].Outcome, d.Clusters[i].Detail = Skewed, by
			}
		}
	}
}

// newSpreading sorts the feasible clusters into classes.
func (r *Request) newSpreading(d *Decision, feasible []int32) *spreading {
	s := &spreading{constraints: make([]topologies, len(r.Spread))}
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

// next returns the class whose best cluster is to be chosen next, -1 if there is
// none.
func (s *spreading) next(d *Decision) int {
	best, bestBroken := -1, uint64(0)
	for i := range s.classes {
		c := &s.classes[i]
		if len(c.queue) == 0 || s.forbids(c) >= 0 {
			continue
		}
		broken := s.broken(c)
		if best < 0 || d.before(c.queue[0], broken, s.classes[best].queue[0], bestBroken) {
			best, bestBroken = i, broken
		}
	}
	return best
}

// before reports whether cluster a, which breaks these preferences, goes before
// cluster b.
func (d *Decision) before(a int32, aBroken uint64, b int32, bBroken uint64) bool {
	if d.Clusters[a].Avoided == d.Clusters[b].Avoided && aBroken != bBroken {
		return aBroken < bBroken
	}
	return d.Compare(a, b) < 0
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
