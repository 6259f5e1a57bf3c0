package load

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// MaxAhead is how far in the future a reading may be, for clocks that differ.
// What is further ahead would look fresh for longer than it is.
const MaxAhead = time.Minute

// readTimeout bounds one read of a source.
const readTimeout = 10 * time.Second

// Store keeps the newest reading. It is safe for concurrent use: one goroutine
// writes (Run, or whoever calls Put), any number read, and reading takes no
// lock.
type Store struct {
	current atomic.Pointer[Snapshot]
	maxAge  time.Duration
	now     func() time.Time
}

// NewStore returns an empty store that shows no reading older than maxAge as
// now tells the time; time.Now if now is nil.
func NewStore(maxAge time.Duration, now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{maxAge: maxAge, now: now}
}

// Fresh returns the newest reading, or nil if there is none or it is older
// than the store's bound.
func (s *Store) Fresh() *Snapshot {
	snapshot := s.current.Load()
	if snapshot == nil || s.now().Sub(snapshot.reading.Time) > s.maxAge {
		return nil
	}
	return snapshot
}

// Put takes a reading over, unless it is from the future or older than the one
// there is. The reading must not be changed afterwards.
func (s *Store) Put(reading Reading) error {
	if ahead := reading.Time.Sub(s.now()); ahead > MaxAhead {
		return fmt.Errorf("reading is %s ahead of this clock, at most %s is allowed", ahead.Round(time.Second), MaxAhead)
	}
	if old := s.current.Load(); old != nil && reading.Time.Before(old.reading.Time) {
		return fmt.Errorf("reading is %s older than the one before", old.reading.Time.Sub(reading.Time).Round(time.Second))
	}
	s.current.Store(&Snapshot{reading})
	return nil
}

// Run reads the source at once and then every interval, until ctx ends. report
// is called with the error when reading begins to fail, and with nil when it
// succeeds again; not for every read.
func (s *Store) Run(ctx context.Context, source Source, interval time.Duration, report func(error)) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	failing := false
	for {
		err := s.read(ctx, source)
		if ctx.Err() != nil {
			return
		}
		if failing != (err != nil) {
			failing = err != nil
			report(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (s *Store) read(ctx context.Context, source Source) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	reading, err := source.Read(ctx)
	if err == nil {
		err = s.Put(reading)
	}
	if age := s.now().Sub(reading.Time); err == nil && age > s.maxAge {
		err = fmt.Errorf("reading is %s old, older than %s is not used", age.Round(time.Second), s.maxAge)
	}
	if err != nil {
		return fmt.Errorf("reading load from %s: %w", source, err)
	}
	return nil
}
