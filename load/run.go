package load

import (
	"context"
	"errors"
	"fmt"
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
	read := func(ctx context.Context) (bool, error) { return s.read(ctx, source) }
	fresh := func() (bool, time.Time) { return s.Fresh() != nil, s.current.Load().lastFresh() }
	s.repeat(ctx, interval, read, fresh, report)
}

// repeat implements Run. read reads the source once, as Store.read does. fresh reports whether any stored value is
// fresh, and the last time at which one is.
func (r *reader) repeat(
	ctx context.Context, interval time.Duration, read func(context.Context) (partial bool, err error),
	fresh func() (is bool, until time.Time), report func(State),
) {
	var reported *State
	update := func(state State) {
		if reported == nil || !reported.equivalent(state) {
			report(state)
		}
		reported = &state
	}
	failures := 0
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		began := time.Now()
		partial, err := r.readOnce(ctx, read)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !partial {
			failures++
		} else {
			failures = 0
		}
		isFresh, until := fresh()
		update(State{Err: err, Partial: partial, Degraded: !isFresh})
		next := began.Add(r.backoff(interval, failures, retryAfter(err)))
		if expiry := until.Add(time.Nanosecond); isFresh && expiry.Before(next) {
			if !sleep(ctx, timer, expiry) {
				return
			}
			isFresh, _ = fresh()
			update(State{Err: err, Partial: partial, Degraded: !isFresh})
		}
		if !sleep(ctx, timer, next) {
			return
		}
	}
}

// readOnce reads once, bounded in time.
func (r *reader) readOnce(ctx context.Context, read func(context.Context) (bool, error)) (partial bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return read(ctx)
}

// sleep waits until the given time. It returns false if ctx is done earlier.
func sleep(ctx context.Context, timer *time.Timer, until time.Time) bool {
	timer.Reset(time.Until(until))
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// lastFresh returns the last time at which any series of the snapshot is fresh.
func (s *Snapshot) lastFresh() time.Time {
	if s == nil {
		return time.Time{}
	}
	for s.fallback != nil {
		s = s.fallback
	}
	return s.freshUntil
}

// backoff returns the time from the start of one read to the start of the next. requested is the
// time to wait that the server requested.
func (r *reader) backoff(interval time.Duration, failures int, requested time.Duration) time.Duration {
	if failures == 0 {
		return max(interval, min(requested, maxRetryAfter))
	}
	limit := max(interval, min(maxBackoff, r.maxAge/2))
	backoff := interval
	for range failures - 1 {
		if backoff = 2 * backoff; backoff >= limit {
			backoff = limit
			break
		}
	}
	return max(time.Duration(float64(backoff)*r.jitter()), min(requested, maxRetryAfter))
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
		partial, err = true, lostError(reading)
	}
	if err != nil {
		return partial, fmt.Errorf("reading load from %s: %w", source, err)
	}
	return false, nil
}

// lostError returns the errors of the lost series, in the order of AllSeries.
func lostError(reading Reading) error {
	var errs []error
	for _, series := range AllSeries {
		if err, lost := reading.Lost[series]; lost {
			errs = append(errs, fmt.Errorf("%s: %w", series, err))
		}
	}
	return errors.Join(errs...)
}
