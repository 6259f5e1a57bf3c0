package load

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MaxAhead is how far in the future a reading may be, for clocks that differ.
// What is further ahead would look fresh for longer than it is.
const MaxAhead = time.Minute

// Store keeps the newest reading. It is safe for concurrent use: one goroutine
// writes (Run, or whoever calls Put), any number read, and reading takes no
// lock. It holds one reading and, of series that the newest one lost, those of
// the reading before: two maps of the nodes, whatever happens.
type Store struct {
	current atomic.Pointer[Snapshot]
	maxAge  time.Duration
	now     func() time.Time
	// jitter returns what a pause after a failure is multiplied by.
	jitter func() float64

	// last is what is known, with its times; it belongs to the writer.
	last known

	mu    sync.Mutex
	stats Stats
}

// known is the last reading and the times that its series are of.
type known struct {
	nodes map[string]Node
	times map[Series]time.Time
	at    time.Time
}

// Stats count what a store has seen since it was made.
type Stats struct {
	// Reads are the readings that were taken over.
	Reads int
	// Failures are the reads that brought nothing new, by reason.
	Failures map[Reason]int
	// Lost are the series that a reading came without, by series.
	Lost map[Series]int
	// Rejected are the values that were left out because they made no sense.
	Rejected int
	// Durations are how long reads took, those that failed included.
	Durations Durations
}

// DurationBounds are the upper bounds by which Durations are counted.
var DurationBounds = []time.Duration{
	10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond,
	time.Second, 3 * time.Second, readTimeout,
}

// Durations count how long something took.
type Durations struct {
	Count int
	Sum   time.Duration
	// Within counts, for each of the DurationBounds, what took no longer.
	Within [7]int
}

func (d *Durations) add(took time.Duration) {
	d.Count++
	d.Sum += took
	for i, bound := range DurationBounds {
		if took <= bound {
			d.Within[i]++
		}
	}
}

// NewStore returns an empty store that shows no reading older than maxAge as
// now tells the time; time.Now if now is nil.
func NewStore(maxAge time.Duration, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{maxAge: maxAge, now: now, jitter: jitter, stats: Stats{Failures: map[Reason]int{}, Lost: map[Series]int{}}}
}

// Fresh returns the newest reading, or what of it is still fresh; nil if there
// is none or it is older than the store's bound.
func (s *Store) Fresh() *Snapshot {
	snapshot := s.current.Load()
	if snapshot == nil {
		return nil
	}
	for now := s.now(); snapshot != nil && now.After(snapshot.until); {
		snapshot = snapshot.rest
	}
	return snapshot
}

// Last returns the newest reading however old it is, nil if there is none. It
// is for those who tell how old.
func (s *Store) Last() *Snapshot { return s.current.Load() }

// MaxAge returns how old a reading may be and still be shown.
func (s *Store) MaxAge() time.Duration { return s.maxAge }

// Age returns how old the newest reading is, and whether there is one.
func (s *Store) Age() (time.Duration, bool) {
	snapshot := s.current.Load()
	if snapshot == nil {
		return 0, false
	}
	return s.now().Sub(snapshot.reading.Time), true
}

// Stats returns what the store has seen.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Failures, stats.Lost = maps.Clone(stats.Failures), maps.Clone(stats.Lost)
	return stats
}

// Put takes a reading over, unless it is from the future or older than the one
// there is. The reading must not be changed afterwards. In place of series that
// it lost, those of the reading before are shown until they are too old.
func (s *Store) Put(reading Reading) error {
	err := s.put(reading)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stats.Failures[ReasonOf(err)]++
		return err
	}
	s.stats.Reads++
	s.stats.Rejected += reading.Rejected
	for series := range reading.Lost {
		s.stats.Lost[series]++
	}
	return nil
}

func (s *Store) put(reading Reading) error {
	now := s.now()
	if ahead := reading.Time.Sub(now); ahead > MaxAhead {
		return &Error{Reason: Future, Err: fmt.Errorf("reading is %s ahead of this clock, at most %s is allowed", ahead.Round(time.Second), MaxAhead)}
	}
	if reading.Time.Before(s.last.at) {
		return &Error{Reason: OutOfOrder, Err: fmt.Errorf("reading is %s older than the one before", s.last.at.Sub(reading.Time).Round(time.Second))}
	}
	next := known{nodes: reading.Nodes, times: map[Series]time.Time{}, at: reading.Time}
	var carried []Series
	for _, series := range AllSeries {
		if !reading.lost(series) {
			next.times[series] = reading.Time
		} else if old, ok := s.last.times[series]; ok && !now.After(old.Add(s.maxAge)) {
			next.times[series] = old
			carried = append(carried, series)
		}
	}
	snapshot := &Snapshot{reading: reading, until: reading.Time.Add(s.maxAge)}
	// What stays fresh longest is put in first: when the others are too old, the
	// snapshots before them are what is left.
	slices.SortStableFunc(carried, func(a, b Series) int { return next.times[b].Compare(next.times[a]) })
	for _, series := range carried {
		with := reading
		with.Nodes = carry(snapshot.reading.Nodes, s.last.nodes, series)
		snapshot = &Snapshot{reading: with, until: next.times[series].Add(s.maxAge), rest: snapshot}
	}
	next.nodes = snapshot.reading.Nodes
	s.last = next
	s.current.Store(snapshot)
	return nil
}

// lost reports whether the reading came without a series. A deviation is of no
// use without its mean.
func (r *Reading) lost(series Series) bool {
	_, lost := r.Lost[series]
	switch series {
	case CPUStdDev:
		return lost || r.lost(CPUMean)
	case MemoryStdDev:
		return lost || r.lost(MemoryMean)
	default:
		return lost
	}
}

// carry returns the nodes with one series taken from older ones.
func carry(nodes, older map[string]Node, series Series) map[string]Node {
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

// took counts how long a read took.
func (s *Store) took(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Durations.add(d)
}

// failed counts a read that brought no reading.
func (s *Store) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Failures[ReasonOf(err)]++
}
