package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

const (
	// readTimeout bounds one read of a source.
	readTimeout = 10 * time.Second
	// maxPause is the longest pause after failures, unless the interval is longer
	// or the server asks for more.
	maxPause = 2 * time.Minute
	// maxRetryAfter bounds how long a server may ask to be left alone.
	maxRetryAfter = 10 * time.Minute
)

// State is how reading goes, as told to those who log it.
type State struct {
	// Err is why the last read brought nothing, or not everything; nil if all is
	// well.
	Err error
	// Partial is set where the read brought something beside the error.
	Partial bool
	// Degraded is set where nothing fresh is left to show.
	Degraded bool
}

// Run reads the source at once and then every interval, until ctx ends. After
// failures it waits longer each time, up to two minutes, with some jitter so
// that many readers do not come back at once, and as long as the server asks
// for. report is called after the first read, and then when reading begins to fail, fails in another way
// (nothing instead of something), gets well, or when what the store shows
// becomes too old or fresh again; not for every read. It is called from Run's
// goroutine.
func (s *Store) Run(ctx context.Context, source Source, interval time.Duration, report func(State)) {
	var told State
	first := true
	tell := func(state State) {
		if first || (told.Err != nil) != (state.Err != nil) || told.Partial != state.Partial || told.Degraded != state.Degraded {
			report(state)
		}
		told, first = state, false
	}
	failures := 0
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		began := time.Now()
		partial, err := s.read(ctx, source)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !partial {
			failures++
		} else {
			failures = 0
		}
		tell(State{Err: err, Partial: partial, Degraded: s.Fresh() == nil})
		next := began.Add(s.pause(interval, failures, retryAfter(err)))
		if expiry := s.expiry(); !told.Degraded && expiry.Before(next) {
			if !sleep(ctx, timer, expiry) {
				return
			}
			tell(State{Err: told.Err, Partial: told.Partial, Degraded: s.Fresh() == nil})
		}
		if !sleep(ctx, timer, next) {
			return
		}
	}
}

// sleep waits until an instant, and returns false if ctx ends before.
func sleep(ctx context.Context, timer *time.Timer, until time.Time) bool {
	timer.Reset(time.Until(until))
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// expiry returns the first instant at which nothing is fresh any more.
func (s *Store) expiry() time.Time {
	return s.current.Load().lastUntil().Add(time.Nanosecond)
}

// lastUntil returns the last instant at which anything of the snapshot is fresh.
func (s *Snapshot) lastUntil() time.Time {
	if s == nil {
		return time.Time{}
	}
	for s.rest != nil {
		s = s.rest
	}
	return s.until
}

// pause returns the time from the beginning of one read to the next.
func (s *Store) pause(interval time.Duration, failures int, asked time.Duration) time.Duration {
	if failures == 0 {
		return max(interval, min(asked, maxRetryAfter))
	}
	most := max(interval, min(maxPause, s.maxAge/2))
	pause := interval
	for range failures - 1 {
		if pause = 2 * pause; pause >= most {
			pause = most
			break
		}
	}
	return max(time.Duration(float64(pause)*s.jitter()), min(asked, maxRetryAfter))
}

// jitter returns a factor between 0.9 and 1.1.
func jitter() float64 { return 0.9 + 0.2*rand.Float64() }

// read reads once. Where the error is partial, a reading was taken over all the
// same.
func (s *Store) read(ctx context.Context, source Source) (partial bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := time.Now()
	reading, err := source.Read(ctx)
	s.took(time.Since(began))
	if err != nil {
		s.failed(err)
	} else if age := s.now().Sub(reading.Time); age > s.maxAge {
		err = &Error{Reason: TooOld, Err: fmt.Errorf("reading is %s old, older than %s is not used", age.Round(time.Second), s.maxAge)}
		s.failed(err)
	} else if err = s.Put(reading); err == nil && len(reading.Lost) > 0 {
		partial, err = true, lostError(reading)
	}
	if err != nil {
		return partial, fmt.Errorf("reading load from %s: %w", source, err)
	}
	return false, nil
}

// lostError says which series were lost, in the order of AllSeries.
func lostError(reading Reading) error {
	var errs []error
	for _, series := range AllSeries {
		if err, lost := reading.Lost[series]; lost {
			errs = append(errs, fmt.Errorf("%s: %w", series, err))
		}
	}
	return errors.Join(errs...)
}
