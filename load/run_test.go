package load

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// source is a Source whose Read is a function.
type source func(ctx context.Context) (Reading, error)

func (s source) Read(ctx context.Context) (Reading, error) { return s(ctx) }
func (source) String() string                              { return "a test" }

// run runs a new store with the source for the given time, in a synctest bubble. It returns the reported
// states, with the time since the start. The bubble fails the test if a goroutine is left at its end.
func run(t *testing.T, s source, interval, total time.Duration, check func(*Store)) []string {
	t.Helper()
	var reports []string
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		store := NewStore(time.Hour, nil)
		store.jitter = func() float64 { return 1 }
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			store.Run(ctx, s, interval, func(state State) {
				reports = append(reports, fmt.Sprintf("%s: %s", time.Since(start), format(state)))
			})
		}()
		<-time.After(total) // synctest time, which passes at once
		synctest.Wait()
		if check != nil {
			check(store)
		}
		cancel()
		<-ended
	})
	return reports
}

// format returns a state as text.
func format(state State) string {
	words := fmt.Sprint(state.Err)
	if state.Partial {
		words += " (partial)"
	}
	if state.Degraded {
		words += " (degraded)"
	}
	return words
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
		// The last read was at 90s, 5s ago.
		if snapshot := store.Fresh(); snapshot == nil || time.Since(snapshot.Reading().Time) != 5*time.Second {
			t.Error("the store does not return the last reading")
		}
	})
	equal(t, "reads", reads, []string{"0s", "30s", "1m0s", "1m30s"})
	equal(t, "reports", reports, []string{"0s: <nil>"})
}

func TestRunReportsTransitions(t *testing.T) {
	refused, noAnswer := errors.New("connection refused"), errors.New("no answer")
	for name, tc := range map[string]struct {
		// reads are the errors of consecutive reads, one second apart, or two after a second failure.
		reads []error
		want  []string
	}{
		"no failure":      {[]error{nil, nil, nil}, []string{"0s: <nil>"}},
		"keeps failing":   {[]error{refused, refused, refused}, []string{"0s: reading load from a test: connection refused (degraded)"}},
		"fails later":     {[]error{nil, nil, refused, refused}, []string{"0s: <nil>", "2s: reading load from a test: connection refused"}},
		"another failure": {[]error{refused, refused, noAnswer}, []string{"0s: reading load from a test: connection refused (degraded)"}},
		"recovers": {
			[]error{refused, refused, nil, nil},
			[]string{"0s: reading load from a test: connection refused (degraded)", "3s: <nil>"},
		},
		"fails again": {
			[]error{refused, nil, refused},
			[]string{
				"0s: reading load from a test: connection refused (degraded)",
				"1s: <nil>",
				"2s: reading load from a test: connection refused",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			i := 0
			s := source(func(context.Context) (Reading, error) {
				err := tc.reads[min(i, len(tc.reads)-1)]
				i++
				return readingAt(time.Now()), err
			})
			equal(t, "reports", run(t, s, time.Second, 9500*time.Millisecond, nil), tc.want)
			if i < len(tc.reads) {
				t.Errorf("%d reads, want %d", i, len(tc.reads))
			}
		})
	}
}

// TestRunReportsReadingsFromTheFuture checks that a rejected reading is a failure and does not replace the
// previous reading.
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
	equal(t, "reports", reports,
		[]string{"0s: <nil>", "1s: reading load from a test: reading is 2m0s ahead of the local clock, maximum is 1m0s"})
}

// TestRead checks that one reading from the future is an error, and that a source has 10 s.
func TestRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, err := Read(
			t.Context(),
			source(func(context.Context) (Reading, error) { return readingAt(time.Now().Add(2 * time.Minute)), nil }),
		)
		if ReasonOf(err) != Future {
			t.Errorf("%v, want an error about the future", err)
		}
		began := time.Now()
		_, err = Read(t.Context(), source(func(ctx context.Context) (Reading, error) {
			<-ctx.Done()
			return Reading{}, ctx.Err()
		}))
		if ReasonOf(err) != Timeout || time.Since(began) != 10*time.Second {
			t.Errorf("%v after %s, want a timeout after 10 s", err, time.Since(began))
		}
	})
}

// TestRunTimesOut checks that a read without a response is canceled, and repeated.
func TestRunTimesOut(t *testing.T) {
	reads := 0
	s := source(func(ctx context.Context) (Reading, error) {
		reads++
		<-ctx.Done()
		return Reading{}, ctx.Err()
	})
	reports := run(t, s, time.Second, 25*time.Second, nil)
	// Reads are from 0s to 10s, from 10s to 20s, and from 20s.
	equal(t, "reports", reports, []string{"10s: reading load from a test: context deadline exceeded (degraded)"})
	if reads != 3 {
		t.Errorf("%d reads, want 3", reads)
	}
}

// TestRunCanceledDuringRead checks that canceling the context is not reported as a failure.
func TestRunCanceledDuringRead(t *testing.T) {
	s := source(func(ctx context.Context) (Reading, error) {
		<-ctx.Done()
		return Reading{}, ctx.Err()
	})
	equal(t, "reports", run(t, s, time.Second, time.Second, nil), nil)
}

// TestRunReportsAReadingThatIsTooOld checks that a reading that is never updated is reported when it exceeds
// the maximum age.
func TestRunReportsAReadingThatIsTooOld(t *testing.T) {
	var said time.Time
	s := source(func(context.Context) (Reading, error) {
		if said.IsZero() {
			said = time.Now()
		}
		return readingAt(said), nil
	})
	got := run(t, s, 40*time.Minute, 3*time.Hour, nil)
	equal(t, "reports", got, []string{
		"0s: <nil>",
		"1h0m0.000000001s: <nil> (degraded)",
		"1h20m0s: reading load from a test: reading is 1h20m0s old, maximum age is 1h0m0s (degraded)",
	})
}

// TestRunBacksOff checks that the interval doubles after failures, up to two minutes.
func TestRunBacksOff(t *testing.T) {
	var start time.Time
	var reads []string
	failing := func(err error, total time.Duration) {
		start, reads = time.Time{}, nil
		run(t, func(context.Context) (Reading, error) {
			if start.IsZero() {
				start = time.Now()
			}
			reads = append(reads, time.Since(start).String())
			return Reading{}, err
		}, 15*time.Second, total, nil)
	}
	// 15 + 30 + 60 + 120 + 120
	failing(errors.New("no"), 350*time.Second)
	equal(t, "reads", reads, []string{"0s", "15s", "45s", "1m45s", "3m45s", "5m45s"})
	failing(&Error{Reason: Throttled, RetryAfter: time.Minute, Err: errors.New("slow down")}, 250*time.Second)
	equal(t, "reads of a throttled source", reads, []string{"0s", "1m0s", "2m0s", "3m0s"})
	failing(&Error{Reason: Throttled, RetryAfter: 24 * time.Hour, Err: errors.New("slow down")}, 15*time.Minute)
	equal(t, "reads of a source that asks for a day", reads, []string{"0s", "10m0s"})
}

func TestJitter(t *testing.T) {
	for range 1000 {
		if j := jitter(); j < 0.9 || j > 1.1 {
			t.Fatal(j)
		}
	}
}

// TestRunReportsPartialReadings checks that lost series are reported and do not cause a backoff.
func TestRunReportsPartialReadings(t *testing.T) {
	reads := 0
	s := source(func(context.Context) (Reading, error) {
		reads++
		reading := readingAt(time.Now())
		if reads > 2 {
			reading.Lost = map[Series]error{MemoryMean: errors.New("no such metric"), CPUStdDev: errors.New("timeout")}
		}
		return reading, nil
	})
	got := run(t, s, time.Second, 5500*time.Millisecond, nil)
	equal(t, "reports", got,
		[]string{"0s: <nil>", "2s: reading load from a test: CPU deviation: timeout\nmemory mean: no such metric (partial)"})
	if reads != 6 {
		t.Errorf("%d reads, want 6", reads)
	}
}

func TestStatsCount(t *testing.T) {
	errs := []error{
		nil,
		&Error{Reason: ServerError, Err: errors.New("status 500")},
		context.DeadlineExceeded,
		&net.OpError{Op: "dial", Err: errors.New("refused")},
		errors.New("nonsense"),
	}
	i := 0
	s := source(func(context.Context) (Reading, error) {
		err := errs[min(i, len(errs)-1)]
		i++
		reading := readingAt(time.Now())
		reading.Rejected, reading.Lost = 3, map[Series]error{CPUStdDev: errors.New("no")}
		return reading, err
	})
	run(t, s, time.Second, 10*time.Second, func(store *Store) {
		stats := store.Stats()
		got := fmt.Sprint(stats.Reads, stats.Rejected, stats.Lost, stats.Failures)
		if want := "1 3 map[CPU deviation:1] map[invalid:1 server:1 timeout:1 unreachable:1]"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
