package lowriskovercommitment

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// numberedSnapshot is a snapshot of load with a number, which identifies it in packed values.
type numberedSnapshot struct {
	snapshot *load.Snapshot
	number   uint64
}

// snapshots numbers the snapshots of load. The packed values of even and of odd numbers are in two
// arrays, so that the values for the next snapshot are stored before Score uses it.
type snapshots struct {
	// newest is the snapshot of the newest cycle.
	newest atomic.Pointer[numberedSnapshot]
	// cycles is the number of cycles since the last snapshot was announced.
	cycles atomic.Int64

	mu sync.Mutex
	// announced is the newest snapshot of the store, which cycles may not use yet.
	announced numberedSnapshot
}

// number returns the snapshot of a cycle with its number, which is at least 1. It takes a lock only
// for the first cycle with another snapshot.
func (s *snapshots) number(snapshot *load.Snapshot) numberedSnapshot {
	if newest := s.newest.Load(); newest != nil && newest.snapshot == snapshot {
		return *newest
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newestOrNone()
	next := s.announced
	switch {
	case newest.number > 0 && newest.snapshot == snapshot:
		return newest
	case next.number <= newest.number || next.snapshot != snapshot:
		next = numberedSnapshot{snapshot, max(newest.number, s.announced.number) + 1}
	}
	s.newest.Store(&next)
	return next
}

// announce returns the number of a snapshot that cycles will use. It belongs to the array that the
// newest cycle does not use.
func (s *snapshots) announce(snapshot *load.Snapshot) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newestOrNone()
	number := max(newest.number, s.announced.number) + 1
	if number%2 == newest.number%2 {
		number++
	}
	s.announced = numberedSnapshot{snapshot, number}
	return number
}

func (s *snapshots) newestOrNone() numberedSnapshot {
	if newest := s.newest.Load(); newest != nil {
		return *newest
	}
	return numberedSnapshot{}
}

// nodesPerCycle is the number of nodes that are prepared per cycle at most. A cycle evaluates up to
// that many nodes whose load has changed; without cycles there is nothing to prepare for.
const nodesPerCycle = 100

// prepare evaluates all nodes for a snapshot of load that Score does not use yet. It is called by the
// goroutine that reads load, and reads only objects that do not change. Nodes whose pods change
// meanwhile are evaluated by Score.
func (pl *plugin) prepare(snapshot *load.Snapshot) {
	number := pl.snapshots.announce(snapshot)
	if pl.snapshots.cycles.Swap(0)*nodesPerCycle < int64(pl.sums.Len()) {
		return // few cycles: they evaluate the nodes that they need
	}
	packed := pl.packed[number%2]
	pl.sums.All(func(place noderes.Place, sums *noderes.Sums) {
		var values noderes.Values
		result := pl.evaluate(sums.Node(), sums, snapshot)
		if result.pack(&values, number) {
			packed.Store(place, sums, &values)
		}
	})
}

// The packed values of a node: the number of its load, five values of its CPU and five of its memory.
const (
	loadNumber = 0
	packedCPU  = 1
	packedMem  = packedCPU + packedResource

	packedResource = 5
)

// The flags of a packed resource.
const (
	flagUnbounded = 1 << iota
	flagMeasured
)

// pack packs the result, unless the load risk depends on the pending pod.
func (n *nodeResult) pack(values *noderes.Values, number uint64) bool {
	if n.cpu.dependsOnPod || n.memory.dependsOnPod {
		return false
	}
	values[loadNumber] = number
	n.cpu.pack(values[packedCPU:])
	n.memory.pack(values[packedMem:])
	return true
}

func (r *resourceResult) pack(values []uint64) {
	values[0], values[1] = math.Float64bits(r.requests), math.Float64bits(r.limits)
	values[2], values[3] = math.Float64bits(r.capacity), math.Float64bits(r.loadRisk)
	values[4] = 0
	if r.isUnbounded {
		values[4] |= flagUnbounded
	}
	if r.isMeasured {
		values[4] |= flagMeasured
	}
}

func unpack(values []uint64) resourceResult {
	return resourceResult{
		requests: math.Float64frombits(values[0]), limits: math.Float64frombits(values[1]),
		capacity: math.Float64frombits(values[2]), loadRisk: math.Float64frombits(values[3]),
		isUnbounded: values[4]&flagUnbounded != 0, isMeasured: values[4]&flagMeasured != 0,
	}
}

// packedRisk returns the risk of a node with the pending pod from packed values.
func (pl *plugin) packedRisk(values *noderes.Values, c *cycleData) float64 {
	cpu, memory := unpack(values[packedCPU:]), unpack(values[packedMem:])
	return max(pl.cpu.risk(&cpu, nil, &c.cpu), pl.memory.risk(&memory, nil, &c.memory))
}
