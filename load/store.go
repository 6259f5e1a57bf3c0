package load

import (
	"maps"
	"slices"
	"time"
)

// Store keeps the newest load of nodes: one reading, with the series of previous readings in place of lost series. These are
// at most two maps of the nodes.
type Store struct{ newest[Snapshot] }

// NewStore returns an empty store that returns no reading older than maxAge. now is the clock;
// time.Now if nil.
func NewStore(maxAge time.Duration, now func() time.Time) *Store {
	s := &Store{}
	s.init(maxAge, now)
	return s
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
	previous, err := s.previous(reading.Time)
	if err != nil {
		return err
	}
	older := &Snapshot{}
	if previous != nil {
		older = previous.value
	}
	now, times := s.now(), map[Series]time.Time{}
	var carried []Series
	for _, series := range AllSeries {
		if !reading.hasLost(series) {
			times[series] = reading.Time
		} else if old, ok := older.times[series]; ok && !now.After(old.Add(s.maxAge)) {
			times[series] = old
			carried = append(carried, series)
		}
	}
	next := &entry[Snapshot]{value: &Snapshot{reading, times}, at: reading.Time, until: reading.Time.Add(s.maxAge)}
	// The series that is fresh for the longest time is added first: the snapshot without the series that are
	// added later is the fallback when the later ones expire.
	slices.SortStableFunc(carried, func(a, b Series) int { return times[b].Compare(times[a]) })
	for _, series := range carried {
		extended := reading
		extended.Nodes = addSeries(next.value.reading.Nodes, older.reading.Nodes, series)
		next = &entry[Snapshot]{value: &Snapshot{extended, times}, at: reading.Time, until: times[series].Add(s.maxAge), fallback: next}
	}
	s.publish(next)
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
