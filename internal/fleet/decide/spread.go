package decide

import (
	"container/heap"
	"slices"

	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
)

// topologyOf returns the topology of a cluster for a spread constraint, if it has one: the value of a label or claim.
func topologyOf(s *clusterv1beta1.SpreadConstraintsTerm, c *Cluster) (value string, found bool) {
	if s.TopologyKeyType == clusterv1beta1.TopologyKeyTypeClaim {
		value, found = c.Claims[s.TopologyKey]
		return value, found
	}
	value, found = c.Labels[s.TopologyKey]
	return value, found
}

// isRequired reports whether a constraint selects fewer clusters rather than exceeding maxSkew. Otherwise the
// constraint is a preference with precedence over the ranking.
func isRequired(s *clusterv1beta1.SpreadConstraintsTerm) bool {
	return s.WhenUnsatisfiable == clusterv1beta1.DoNotSchedule
}

// noTopology is the topology of clusters without the key.
const noTopology = -1

// topologies counts the decisions in the topologies of one constraint.
type topologies struct {
	maxSkew  int32
	required bool
	// chosen has the number of decisions in each topology, fewest is the minimum of
	// them, and withFewest the number of topologies that have it.
	chosen             []int32
	fewest, withFewest int32
}

// exceeds reports whether one more decision in a topology would violate the
// constraint, which is always true for a cluster without the key.
func (t *topologies) exceeds(topology int32) bool {
	return topology == noTopology || int64(t.chosen[topology])+1-int64(t.fewest) > int64(t.maxSkew)
}

// countDecision counts a decision in a topology. It reports whether topologies may have more decisions now.
func (t *topologies) countDecision(topology int32) (relaxed bool) {
	if topology == noTopology {
		return false
	}
	t.chosen[topology]++
	if t.chosen[topology]-1 > t.fewest {
		return false
	}
	if t.withFewest--; t.withFewest > 0 {
		return false
	}
	t.fewest++
	for _, n := range t.chosen {
		if n == t.fewest {
			t.withFewest++
		}
	}
	return true
}

// class has the clusters with the same topology in every constraint. They are
// chosen in the order of their rank.
type class struct {
	topology []int32 // by constraint
	queue    []int32 // the clusters, best first
	// violations are the last known violations of preferences; there may be more now.
	violations uint64
}

// spreading is the state while clusters are chosen under spread constraints.
type spreading struct {
	d           *Decision
	constraints []topologies
	classes     []class
	// candidates is a heap of the classes with clusters left, the best first. While no fewest count increases, classes can only get
	// worse: they are checked when they are first. When one increases, the heap is built again.
	candidates []*class
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (s *spreading) Len() int           { return len(s.candidates) }
func (s *spreading) Less(i, j int) bool { return s.ranksBefore(s.candidates[i], s.candidates[j]) }
func (s *spreading) Swap(i, j int) {
	s.candidates[i], s.candidates[j] = s.candidates[j], s.candidates[i]
}

// Push is not used: the heap is built at once.
func (s *spreading) Push(any) {}

// Pop removes the last class.
func (s *spreading) Pop() any {
	s.candidates = s.candidates[:len(s.candidates)-1]
	return nil
}

// spreadClusters marks up to n feasible clusters as chosen. It repeatedly chooses the best
// cluster that no DoNotSchedule constraint forbids: clusters without an untolerated
// PreferNoSelect taint are preferred, then clusters that violate no ScheduleAnyway
// constraint or a later one in the list (of the first 64), then the higher rank. A
// cluster violates a constraint if its topology would exceed the topology with the
// fewest decisions by more than MaxSkew.
//
// A topology counts if a feasible cluster with the keys of all DoNotSchedule
// constraints is in it. As in Kubernetes, a topology whose clusters are all
// chosen can have the fewest decisions. A cluster without the key of a
// DoNotSchedule constraint is not chosen; a cluster without the key of a
// ScheduleAnyway constraint violates it and is in no topology.
func (r *Request) spreadClusters(d *Decision, feasible []int32, n int) {
	s := r.newSpreading(d, feasible)
	s.buildHeap()
	for ; n > 0 && s.findBest(); n-- {
		s.chooseBest()
	}
	for i := range s.classes {
		c := &s.classes[i]
		if constraint := s.forbiddenBy(c); constraint >= 0 {
			for _, i := range c.queue {
				d.Clusters[i].Outcome, d.Clusters[i].Detail = Skewed, constraint
			}
		}
	}
}

// buildHeap fills the heap with all classes that have clusters left.
func (s *spreading) buildHeap() {
	s.candidates = s.candidates[:0]
	for i := range s.classes {
		if c := &s.classes[i]; len(c.queue) > 0 {
			c.violations = s.violations(c)
			s.candidates = append(s.candidates, c)
		}
	}
	heap.Init(s)
}

// findBest removes classes without permitted clusters until the first class has the best cluster. It reports whether there is one.
func (s *spreading) findBest() bool {
	for len(s.candidates) > 0 {
		c := s.candidates[0]
		violations := s.violations(c)
		switch {
		case s.forbiddenBy(c) >= 0:
			heap.Pop(s)
		case violations == c.violations:
			return true
		default:
			c.violations = violations
			heap.Fix(s, 0)
		}
	}
	return false
}

// chooseBest chooses the best cluster of the first class.
func (s *spreading) chooseBest() {
	c := s.candidates[0]
	s.d.Clusters[c.queue[0]].Outcome = Chosen
	relaxed := false
	for k := range s.constraints {
		relaxed = s.constraints[k].countDecision(c.topology[k]) || relaxed
	}
	if len(c.queue) == 1 {
		heap.Pop(s)
	}
	c.queue = c.queue[1:]
	switch {
	case relaxed:
		s.buildHeap()
	case len(c.queue) > 0:
		heap.Fix(s, 0)
	}
}

// newSpreading divides the feasible clusters into classes.
func (r *Request) newSpreading(d *Decision, feasible []int32) *spreading {
	s := &spreading{d: d, constraints: make([]topologies, len(r.Spread))}
	// Topologies and classes are numbered in the order of their first cluster.
	numbers := make([]map[string]int32, len(r.Spread))
	type path struct{ before, topology int32 }
	paths := make([]map[path]int32, len(r.Spread))
	for k := range r.Spread {
		s.constraints[k] = topologies{maxSkew: max(r.Spread[k].MaxSkew, 1), required: isRequired(&r.Spread[k])}
		numbers[k], paths[k] = map[string]int32{}, map[path]int32{}
	}
	topology := make([]int32, len(r.Spread))
	for _, i := range d.ranked(feasible) {
		if constraint := r.missingKey(r.Fleet[i]); constraint >= 0 {
			d.Clusters[i].Outcome, d.Clusters[i].Detail = NoTopology, constraint
			continue
		}
		at := path{}
		for k := range r.Spread {
			at.topology = noTopology
			if value, found := topologyOf(&r.Spread[k], r.Fleet[i]); found {
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
		s.constraints[k].chosen, s.constraints[k].withFewest = make([]int32, n), int32(n)
	}
	return s
}

// number returns the number of a key; a new key gets the next number.
func number[K comparable](numbers map[K]int32, key K) int32 {
	n, known := numbers[key]
	if !known {
		n = int32(len(numbers))
		numbers[key] = n
	}
	return n
}

// missingKey returns the first DoNotSchedule constraint whose key a cluster does
// not have, or -1.
func (r *Request) missingKey(c *Cluster) int32 {
	for k := range r.Spread {
		if _, found := topologyOf(&r.Spread[k], c); !found && isRequired(&r.Spread[k]) {
			return int32(k)
		}
	}
	return -1
}

// ranksBefore reports whether the best cluster of class a precedes the best cluster of class b.
func (s *spreading) ranksBefore(a, b *class) bool {
	if s.d.Clusters[a.queue[0]].Avoided == s.d.Clusters[b.queue[0]].Avoided && a.violations != b.violations {
		return a.violations < b.violations
	}
	return s.d.Compare(a.queue[0], b.queue[0]) < 0
}

// forbiddenBy returns the first DoNotSchedule constraint that one more decision in
// the class would violate, or -1.
func (s *spreading) forbiddenBy(c *class) int32 {
	for k := range s.constraints {
		if s.constraints[k].required && s.constraints[k].exceeds(c.topology[k]) {
			return int32(k)
		}
	}
	return -1
}

// violations returns the ScheduleAnyway constraints that one more decision in the
// class would violate, the first one as the highest bit.
func (s *spreading) violations(c *class) uint64 {
	var bits uint64
	for k := range s.constraints {
		if !s.constraints[k].required && s.constraints[k].exceeds(c.topology[k]) {
			bits |= 1 << 63 >> k
		}
	}
	return bits
}
