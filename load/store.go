package load

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// MaxAhead is the largest accepted difference of a reading's time ahead of the local clock. A reading
// further ahead would be considered fresh for too long.
const MaxAhead = time.Minute

// Store keeps the newest reading. It is safe for concurrent use: one goroutine writes (Run, or the
// caller of Put), any number read without locks. It contains one reading, with the series of previous
// readings in place of lost series: at most two maps of the nodes.
type Store struct {
	reader
	current atomic.Pointer[Snapshot]
	// latest is the newest load of each series. Only the writer uses it.
	latest latestSeries

	observers observers[Snapshot]
}

// latestSeries is the newest load of each series, with the time of each.
type latestSeries struct {
	nodes map[string]Node
	times map[Series]time.Time
	// at is the time of the newest reading.
	at time.Time
}

// NewStore returns an empty store that returns no reading older than maxAge. now is the clock;
// time.Now if nil.
func NewStore(maxAge time.Duration, now func() time.Time) *Store {
	return &Store{reader: newReader(maxAge, now)}
}

// Fresh returns the fresh series of the newest reading, nil if there are none.
func (s *Store) Fresh() *Snapshot {
	snapshot := s.current.Load()
	if snapshot == nil {
		return nil
	}
	now := s.now()
	if now.Before(snapshot.freshFrom) {
		return nil
	}
	for snapshot != nil && now.After(snapshot.freshUntil) {
		snapshot = snapshot.fallback
	}
	return snapshot
}

// Observe registers a function that is called with each new snapshot before Fresh returns it, by the goroutine that
// stores the reading: a slow function delays only the reading. If there is a reading already, observe is
// called with its snapshot before Observe returns. Calls do not overlap. observe must not call Put or Observe.
//
// When series of a snapshot expire, Fresh returns another snapshot without them, for which observe was not called.
func (s *Store) Observe(observe func(*Snapshot)) { s.observers.add(&s.current, observe) }

// Last returns the newest reading, even if it is too old, nil if there is none.
func (s *Store) Last() *Snapshot { return s.current.Load() }

// Age returns the age of the newest reading, and whether there is one.
func (s *Store) Age() (time.Duration, bool) {
	snapshot := s.current.Load()
	if snapshot == nil {
		return 0, false
	}
	return s.now().Sub(snapshot.reading.Time), true
}

// Put stores a reading, unless its time is in the future or before the time of the previous reading. A
// previous reading whose time is in the future, because the clock was set back, does not count.
// Callers must not modify the reading afterwards. Series that the reading lost are replaced by the series
// of previous readings while these are fresh.
func (s *Store) Put(reading Reading) error {
	err := s.put(reading)
	s.recordReading(err, reading.Rejected, reading.Lost)
	return err
}

func (s *Store) put(reading Reading) error {
	now := s.now()
	if s.latest.at.Sub(now) > MaxAhead {
		s.latest = latestSeries{} // the clock has been set back: later readings are not older than these
	}
	if err := checkOrder(reading.Time, s.latest.at, now); err != nil {
		return err
	}
	next := latestSeries{nodes: reading.Nodes, times: map[Series]time.Time{}, at: reading.Time}
	var carried []Series
	for _, series := range AllSeries {
		if !reading.hasLost(series) {
			next.times[series] = reading.Time
		} else if old, ok := s.latest.times[series]; ok && !now.After(old.Add(s.maxAge)) {
			next.times[series] = old
			carried = append(carried, series)
		}
	}
	freshFrom := reading.Time.Add(-MaxAhead)
	snapshot := &Snapshot{reading: reading, freshFrom: freshFrom, freshUntil: reading.Time.Add(s.maxAge)}
	// The series that is fresh for the longest time is added first: the snapshot without the series that are
	// added later is the fallback when the later ones expire.
	slices.SortStableFunc(carried, func(a, b Series) int { return next.times[b].Compare(next.times[a]) })
	for _, series := range carried {
		extended := reading
		extended.Nodes = addSeries(snapshot.reading.Nodes, s.latest.nodes, series)
		snapshot = &Snapshot{
			reading: extended, freshFrom: freshFrom, freshUntil: next.times[series].Add(s.maxAge), fallback: snapshot,
		}
	}
	next.nodes = snapshot.reading.Nodes
	s.latest = next
	s.observers.publish(&s.current, snapshot)
	return nil
}

// hasLost reports whether the reading lost a series. A standard deviation is lost with its mean.
func (r *Reading) hasLost(series Series) bool {
	_, lost := r.Lost[series]
	switch series {
	case CPUStdDev:
		return lost || r.hasLost(CPUMean)
	case MemoryStdDev:
		return lost || r.hasLost(MemoryMean)
	default:
		return lost
	}
}

// addSeries returns a copy of nodes with one series of the older nodes.
func addSeries(nodes, older map[string]Node, series Series) map[string]Node {
	out := maps.Clone(nodes)
	if out == nil {
		out = map[string]Node{}
	}
	for name, old := range older {
		node := out[name]
		switch series {
		case CPUMean:
			node.CPU.Mean, node.HasCPU = old.CPU.Mean, old.HasCPU
		case CPUStdDev:
			node.CPU.StdDev = old.CPU.StdDev
		case MemoryMean:
			node.Memory.Mean, node.HasMemory = old.Memory.Mean, old.HasMemory
		case MemoryStdDev:
			node.Memory.StdDev = old.Memory.StdDev
		}
		if node.HasCPU || node.HasMemory {
			out[name] = node
		}
	}
	return out
}
