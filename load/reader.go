package load

import (
	"fmt"
	"maps"
	"sync"
	"time"
)

// reader is the common part of stores of nodes and of pods: the age up to which readings count, the intervals between
// reads, and the counters.
type reader struct {
	maxAge time.Duration
	now    func() time.Time
	// jitter returns the factor of the interval after a failure.
	jitter func() float64

	mu    sync.Mutex
	stats Stats
}

func newReader(maxAge time.Duration, now func() time.Time) reader {
	if now == nil {
		now = time.Now
	}
	return reader{maxAge: maxAge, now: now, jitter: jitter, stats: Stats{Failures: map[Reason]int{}, Lost: map[Series]int{}}}
}

// MaxAge returns the maximum age of the readings that Fresh returns.
func (r *reader) MaxAge() time.Duration { return r.maxAge }

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
func (r *reader) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	stats := r.stats
	stats.Failures, stats.Lost = maps.Clone(stats.Failures), maps.Clone(stats.Lost)
	return stats
}

// recordFailure counts a failed read.
func (r *reader) recordFailure(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Failures[ReasonOf(err)]++
}

// recordReading counts a reading that was stored, or rejected because of err.
func (r *reader) recordReading(err error, rejected int, lost map[Series]error) {
	if err != nil {
		r.recordFailure(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Reads++
	r.stats.Rejected += rejected
	for series := range lost {
		r.stats.Lost[series]++
	}
}

// recordRead counts a read that began at a time and returned a reading, or err. It returns an error if there is no reading,
// or if the reading is older than the maximum age.
func (r *reader) recordRead(began, at time.Time, err error) error {
	if age := r.now().Sub(at); err == nil && age > r.maxAge {
		err = &Error{Reason: TooOld, Err: fmt.Errorf("reading is %s old, maximum age is %s", age.Round(time.Second), r.maxAge)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stats.Durations.add(time.Since(began))
	if err != nil {
		r.stats.Failures[ReasonOf(err)]++
	}
	return err
}

// checkOrder returns an error if a reading is from the future, or older than the previous one.
func checkOrder(at, previous, now time.Time) error {
	if ahead := at.Sub(now); ahead > MaxAhead {
		return &Error{
			Reason: Future,
			Err:    fmt.Errorf("reading is %s ahead of the local clock, maximum is %s", ahead.Round(time.Second), MaxAhead),
		}
	}
	if at.Before(previous) {
		age := previous.Sub(at).Round(time.Second)
		return &Error{Reason: OutOfOrder, Err: fmt.Errorf("reading is %s older than the previous one", age)}
	}
	return nil
}
