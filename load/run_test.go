package load

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// source is read by a function.
type source func(ctx context.Context) (Reading, error)

func (s source) Read(ctx context.Context) (Reading, error) { return s(ctx) }
func (source) String() string                              { return "a test" }

// run runs a new store with the source in a bubble where time passes at once,
// for that long. It returns what was reported, with the time since the start.
// The bubble fails the test if anything still runs at its end.
func run(t *testing.T, s source, interval, total time.Duration, look func(*Store)) []string {
	t.Helper()
	var reports []string
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		store := NewStore(time.Hour, nil)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			store.Run(ctx, s, interval, func(err error) {
				reports = append(reports, fmt.Sprintf("%s: %v", time.Since(start), err))
			})
		}()
		<-time.After(total) // time of the bubble, which nobody waits for
		synctest.Wait()
		if look != nil {
			look(store)
		}
		cancel()
		<-ended
	})
	return reports
}

func equal(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%q\nwant:\n%q", what, got, want)
	}
}

func TestRunReadsAtOnceAndThenEveryInterval(t *testing.T) {
	var start time.Time
	var reads []string
	s := source(func(context.Context) (Reading, error) {
		if start.IsZero() {
			start = time.Now()
		}
		reads = append(reads, time.Since(start).String())
		return readingAt(time.Now()), nil
	})
	reports := run(t, s, 30*time.Second, 95*time.Second, func(store *Store) {
		// the last read was at 90s, 5s ago
		if snapshot := store.Fresh(); snapshot == nil || time.Since(snapshot.Reading().Time) != 5*time.Second {
			t.Error("the store does not show the last reading")
		}
	})
	equal(t, "reads", reads, []string{"0s", "30s", "1m0s", "1m30s"})
	equal(t, "reports", reports, nil)
}

func TestRunReportsWhatChanges(t *testing.T) {
	refused, noAnswer := errors.New("connection refused"), errors.New("no answer")
	tests := map[string]struct {
		// reads are the outcomes of one read a second after another.
		reads []error
		want  []string
	}{
		"all well":         {[]error{nil, nil, nil}, nil},
		"fails and stays":  {[]error{refused, refused, refused}, []string{"0s: reading load from a test: connection refused"}},
		"fails later":      {[]error{nil, nil, refused, refused}, []string{"2s: reading load from a test: connection refused"}},
		"fails otherwise":  {[]error{refused, refused, noAnswer}, []string{"0s: reading load from a test: connection refused"}},
		"gets well":        {[]error{refused, refused, nil, nil}, []string{"0s: reading load from a test: connection refused", "2s: <nil>"}},
		"fails once again": {[]error{refused, nil, refused}, []string{"0s: reading load from a test: connection refused", "1s: <nil>", "2s: reading load from a test: connection refused"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			i := 0
			s := source(func(context.Context) (Reading, error) {
				err := tc.reads[i]
				i++
				return readingAt(time.Now()), err
			})
			equal(t, "reports", run(t, s, time.Second, time.Duration(len(tc.reads))*time.Second-time.Second/2, nil), tc.want)
			if i != len(tc.reads) {
				t.Errorf("%d reads, want %d", i, len(tc.reads))
			}
		})
	}
}

// A reading that the store does not take over is a failure like others, and
// the one before stays.
func TestRunReportsReadingsFromTheFuture(t *testing.T) {
	i := 0
	s := source(func(context.Context) (Reading, error) {
		i++
		ahead := time.Duration(0)
		if i > 1 {
			ahead = 2 * time.Minute
		}
		return readingAt(time.Now().Add(ahead)), nil
	})
	reports := run(t, s, time.Second, 3500*time.Millisecond, func(store *Store) {
		if snapshot := store.Fresh(); snapshot == nil || time.Since(snapshot.Reading().Time) != 3500*time.Millisecond {
			t.Error("the first reading is not kept")
		}
	})
	equal(t, "reports", reports, []string{"1s: reading load from a test: reading is 2m0s ahead of this clock, at most 1m0s is allowed"})
}

// A source that does not answer is given up, and asked again.
func TestRunGivesUpOnASourceThatHangs(t *testing.T) {
	reads := 0
	s := source(func(ctx context.Context) (Reading, error) {
		reads++
		<-ctx.Done()
		return Reading{}, ctx.Err()
	})
	reports := run(t, s, time.Second, 25*time.Second, nil)
	// from 0s to 10s, from 10s to 20s, from 20s on
	equal(t, "reports", reports, []string{"10s: reading load from a test: context deadline exceeded"})
	if reads != 3 {
		t.Errorf("%d reads, want 3", reads)
	}
}

// Whoever ends the store is not told that reading failed because of it.
func TestRunEndsInTheMiddleOfARead(t *testing.T) {
	s := source(func(ctx context.Context) (Reading, error) {
		<-ctx.Done()
		return Reading{}, ctx.Err()
	})
	equal(t, "reports", run(t, s, time.Second, time.Second, nil), nil)
}

func TestRunWithAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := NewStore(time.Hour, nil)
	s := source(func(ctx context.Context) (Reading, error) { return Reading{}, ctx.Err() })
	store.Run(ctx, s, time.Second, func(err error) { t.Errorf("reported %v", err) })
	if store.Fresh() != nil {
		t.Error("shows a reading")
	}
}

// A source that keeps saying the same goes stale, and that is told.
func TestRunReportsAReadingThatIsTooOld(t *testing.T) {
	var said time.Time
	s := source(func(context.Context) (Reading, error) {
		if said.IsZero() {
			said = time.Now()
		}
		return readingAt(said), nil
	})
	got := run(t, s, 40*time.Minute, 3*time.Hour, nil)
	equal(t, "reports", got, []string{"1h20m0s: reading load from a test: reading is 1h20m0s old, older than 1h0m0s is not used"})
}
