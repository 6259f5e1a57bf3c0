package load

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"
)

// MaxAhead is the largest accepted difference of a reading's time ahead of the local clock. A reading
// further ahead would be considered fresh for too long.
const MaxAhead = time.Minute

// newest keeps the newest value: the common part of stores of nodes and of pods. It is safe for concurrent use: one goroutine
// writes, any number read without locks.
type newest[T any] struct {
	maxAge time.Duration
	now    func() time.Time
	// jitter returns the factor of the interval after a failure.
	jitter  func() float64
	current atomic.Pointer[entry[T]]

	// publishing is locked while observers are called.
	publishing sync.Mutex
	observers  []func(*T)

	mu    sync.Mutex
	stats Stats
}

// entry is a value with the times at which it is fresh.
type entry[T any] struct {
	value *T
	// at is the time of the reading, and until the last time at which the whole value is fresh.
	at, until time.Time
	// fallback is the part of the value that is fresh for longer, nil if there is none.
	fallback *entry[T]
}

// init sets the maximum age and the clock; time.Now if now is nil.
func (s *newest[T]) init(maxAge time.Duration, now func() time.Time) {
	if now == nil {
		now = time.Now
	}
	s.maxAge, s.now, s.jitter = maxAge, now, jitter
	s.stats = Stats{Failures: map[Reason]int{}, Lost: map[Series]int{}}
}

// MaxAge returns the maximum age of the readings that Fresh returns.
func (s *newest[T]) MaxAge() time.Duration { return s.maxAge }

// Fresh returns the fresh part of the newest reading, which callers must not modify, nil if there is none. A reading is not
// fresh if the clock has been set back to before its time.
func (s *newest[T]) Fresh() *T {
	e := s.current.Load()
	if e == nil {
		return nil
	}
	now := s.now()
	for ; e != nil && e.at.Sub(now) <= MaxAhead; e = e.fallback {
		if !now.After(e.until) {
			return e.value
		}
	}
	return nil
}

// Age returns the age of the newest reading, and whether there is one.
func (s *newest[T]) Age() (time.Duration, bool) {
	e := s.current.Load()
	if e == nil {
		return 0, false
	}
	return s.now().Sub(e.at), true
}

// freshUntil returns the last time at which a part of the newest reading is fresh.
func (s *newest[T]) freshUntil() time.Time {
	e := s.current.Load()
	if e == nil {
		return time.Time{}
	}
	for e.fallback != nil {
		e = e.fallback
	}
	return e.until
}

// Observe registers a function that is called with each new value before Fresh returns it, by the goroutine that stores the
// reading: a slow function delays only the reading. If there is a reading already, observe is called with it before Observe
// returns. Calls do not overlap. observe must not modify the value, nor call Put or Observe.
//
// When a part of a reading expires, Fresh returns another value without it, for which observe was not called.
func (s *newest[T]) Observe(observe func(*T)) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	s.observers = append(s.observers, observe)
	if e := s.current.Load(); e != nil {
		observe(e.value)
	}
}

// publish calls the observers with a value and then makes it the newest value.
func (s *newest[T]) publish(e *entry[T]) {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	for _, observe := range s.observers {
		observe(e.value)
	}
	s.current.Store(e)
}

// checkTime returns an error for the time of a reading from the future.
func checkTime(at, now time.Time) error {
	if ahead := at.Sub(now); ahead > MaxAhead {
		return &Error{
			Reason: Future,
			Err:    fmt.Errorf("reading is %s ahead of the local clock, maximum is %s", ahead.Round(time.Second), MaxAhead),
		}
	}
	return nil
}

// previous returns the newest entry, or an error if a reading of the time at cannot follow it, because at is in the future or
// before the entry. The entry is nil if there is none, or if its time is in the future, because the clock was set back.
func (s *newest[T]) previous(at time.Time) (*entry[T], error) {
	now := s.now()
	if err := checkTime(at, now); err != nil {
		return nil, err
	}
	e := s.current.Load()
	if e == nil || e.at.Sub(now) > MaxAhead {
		return nil, nil
	}
	if at.Before(e.at) {
		age := e.at.Sub(at).Round(time.Second)
		return nil, &Error{Reason: OutOfOrder, Err: fmt.Errorf("reading is %s older than the previous one", age)}
	}
	return e, nil
}

// Stats are counters since the creation of a store.
type Stats struct {
	// Reads is the number of readings stored.
	Reads int
	// Failures is the number of failed reads, by reason.
	Failures map[Reason]int
	// Lost is the number of readings without a series, by series. Readings of pods lose none.
	Lost map[Series]int
	// Rejected is the number of invalid values that were ignored.
	Rejected int
	// Durations are the durations of all reads, failed ones included.
	Durations Durations
}

// DurationBounds are the upper bounds of the buckets of Durations.
var DurationBounds = []time.Duration{
	10 * time.Millisecond, 30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond,
	time.Second, 3 * time.Second, readTimeout,
}

// Durations is a histogram of durations.
type Durations struct {
	// Count is the number of durations.
	Count int
	// Sum is the sum of the durations.
	Sum time.Duration
	// Within is the number of durations up to each of DurationBounds.
	Within [7]int
}

func (d *Durations) add(duration time.Duration) {
	d.Count++
	d.Sum += duration
	for i, bound := range DurationBounds {
		if duration <= bound {
			d.Within[i]++
		}
	}
}

// Stats returns a copy of the counters.
func (s *newest[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Failures, stats.Lost = maps.Clone(stats.Failures), maps.Clone(stats.Lost)
	return stats
}

// recordReading counts a reading that was stored, or rejected because of err.
func (s *newest[T]) recordReading(err error, rejected int, lost map[Series]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.stats.Failures[ReasonOf(err)]++
		return
	}
	s.stats.Reads++
	s.stats.Rejected += rejected
	for series := range lost {
		s.stats.Lost[series]++
	}
}

// recordRead counts a read that began at a time and returned a reading, or err. It returns an error if there is no reading,
// or if the reading is older than the maximum age.
func (s *newest[T]) recordRead(began, at time.Time, err error) error {
	if age := s.now().Sub(at); err == nil && age > s.maxAge {
		err = &Error{Reason: TooOld, Err: fmt.Errorf("reading is %s old, maximum age is %s", age.Round(time.Second), s.maxAge)}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Durations.add(time.Since(began))
	if err != nil {
		s.stats.Failures[ReasonOf(err)]++
	}
	return err
}
