package load

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// readTimeout is the longest duration of one read.
	readTimeout = 10 * time.Second
	// maxBackoff is the longest interval between reads after failures, unless the configured
	// interval is longer or the server requests more.
	maxBackoff = 2 * time.Minute
	// maxRetryAfter is the longest wait that a server can request.
	maxRetryAfter = 10 * time.Minute
)

// State is the state of reading a source.
type State struct {
	// Err is the error of the last read, nil if all series were read.
	Err error
	// Partial is set if the last read returned only some of the series.
	Partial bool
	// Degraded is set if the store has no fresh load.
	Degraded bool
}

// equivalent reports whether the two states differ at most in the text of the error.
func (s State) equivalent(other State) bool {
	return (s.Err != nil) == (other.Err != nil) && s.Partial == other.Partial && s.Degraded == other.Degraded
}

// Run reads the source at once and then every interval, until ctx is done. After failures the
// interval grows exponentially up to two minutes, with jitter, and is at least the time that the
// server requested. report is called after the first read and then on every state transition, not
// for every read, from Run's goroutine.
func (s *Store) Run(ctx context.Context, source Source, interval time.Duration, report func(State)) {
	s.run(ctx, interval, func(ctx context.Context) (bool, error) { return s.read(ctx, source) }, report)
}

// run implements Run. read reads the source once, as Store.read does.
func (s *newest[T]) run(
	ctx context.Context, interval time.Duration, read func(context.Context) (partial bool, err error), report func(State),
) {
	var reported *State
	update := func(state State) {
		if reported == nil || !reported.equivalent(state) {
			report(state)
		}
		reported = &state
	}
	failures := 0
	for {
		began := time.Now()
		readCtx, cancel := context.WithTimeout(ctx, readTimeout)
		partial, err := read(readCtx)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err != nil && !partial {
			failures++
		} else {
			failures = 0
		}
		isFresh := s.Fresh() != nil
		update(State{Err: err, Partial: partial, Degraded: !isFresh})
		next := began.Add(s.backoff(interval, failures, retryAfter(err)))
		if expiry := s.freshUntil().Add(time.Nanosecond); isFresh && expiry.Before(next) {
			if !sleep(ctx, expiry) {
				return
			}
			update(State{Err: err, Partial: partial, Degraded: s.Fresh() == nil})
		}
		if !sleep(ctx, next) {
			return
		}
	}
}

// sleep waits until the given time. It returns false if ctx is done earlier.
func sleep(ctx context.Context, until time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(until)):
		return true
	}
}

// backoff returns the time from the start of one read to the start of the next. requested is the
// time to wait that the server requested.
func (s *newest[T]) backoff(interval time.Duration, failures int, requested time.Duration) time.Duration {
	requested = min(requested, maxRetryAfter)
	if failures == 0 {
		return max(interval, requested)
	}
	limit := max(interval, min(maxBackoff, s.maxAge/2))
	backoff := min(math.Ldexp(float64(interval), failures-1), float64(limit))
	return max(time.Duration(backoff*s.jitter()), requested)
}

// Read reads a source once, in at most 10 s. A reading without nodes is an error, and one from the future, as in a Store.
func Read(ctx context.Context, source Source) (Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reading, err := source.Read(ctx)
	if err == nil && len(reading.Nodes) == 0 {
		err = Errorf(Empty, "found no load of any node, and %d values that are not valid", reading.Rejected)
	}
	return reading, cmp.Or(err, checkTime(reading.Time, time.Now()))
}

// jitter returns a random factor in [0.9, 1.1).
func jitter() float64 { return 0.9 + 0.2*rand.Float64() }

// read reads the source once. It returns true together with an error if only some of the series were
// read and stored.
func (s *Store) read(ctx context.Context, source Source) (partial bool, err error) {
	began := time.Now()
	reading, err := source.Read(ctx)
	if err = s.recordRead(began, reading.Time, err); err == nil {
		err = s.Put(reading)
	}
	if err == nil && len(reading.Lost) > 0 {
		partial, err = true, reading.LostError()
	}
	if err != nil {
		return partial, fmt.Errorf("reading load from %s: %w", source, err)
	}
	return false, nil
}

// LostError returns the errors of the lost series, in the order of AllSeries, nil if none is lost.
func (r *Reading) LostError() error {
	var errs []error
	for _, series := range AllSeries {
		if err, lost := r.Lost[series]; lost {
			errs = append(errs, fmt.Errorf("%s: %w", series, err))
		}
	}
	return errors.Join(errs...)
}
