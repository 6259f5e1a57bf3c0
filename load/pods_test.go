package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func podsAt(at time.Time) PodReading {
	return PodReading{Source: "Test", Time: at, Pods: []PodUsage{{Namespace: "default", Name: "web", CPU: 250, Memory: 1 << 30}}}
}

func TestPodStore(t *testing.T) {
	const maxAge = 5 * time.Minute
	tests := map[string]struct {
		// at are the times of consecutive readings, relative to noon; the last one is checked.
		at []time.Duration
		// now is the time at which the reading is used.
		now     time.Duration
		wantErr string
		want    bool
	}{
		"new":                   {[]time.Duration{0}, 0, "", true},
		"maximum age":           {[]time.Duration{0}, maxAge, "", true},
		"1ns too old":           {[]time.Duration{0}, maxAge + 1, "", false},
		"the same time":         {[]time.Duration{0, 0}, 0, "", true},
		"older":                 {[]time.Duration{0, -90 * time.Second}, 0, "reading is 1m30s older than the previous one", true},
		"from the future":       {[]time.Duration{61 * time.Second}, 0, "reading is 1m1s ahead of the local clock, maximum is 1m0s", false},
		"the clock is set back": {[]time.Duration{0}, -61 * time.Second, "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := &clock{noon}
			store := NewPodStore(maxAge, c.now)
			var err error
			for _, at := range tc.at {
				if err != nil {
					t.Fatal(err)
				}
				err = store.Put(podsAt(noon.Add(at)))
			}
			if message := fmt.Sprint(err); message != tc.wantErr && (err != nil || tc.wantErr != "") {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			c.at = noon.Add(tc.now)
			if got := store.Fresh(); (got != nil) != tc.want || got != nil && (len(got.Pods) != 1 || got.Pods[0].CPU != 250) {
				t.Errorf("fresh: %+v, want a reading: %t", got, tc.want)
			}
		})
	}
}

// TestPodStoreAfterTheClockWasSetBack checks that readings are accepted again at once.
func TestPodStoreAfterTheClockWasSetBack(t *testing.T) {
	c := &clock{noon}
	store := NewPodStore(time.Hour, c.now)
	for _, by := range []time.Duration{0, -time.Hour, time.Minute} {
		c.at = c.at.Add(by)
		if err := store.Put(podsAt(c.at)); err != nil {
			t.Error(err)
		}
		if age, known := store.Age(); !known || age != 0 {
			t.Errorf("age %s, known: %t", age, known)
		}
	}
}

func TestPodStoreIsBounded(t *testing.T) {
	c := &clock{noon}
	store := NewPodStore(time.Hour, c.now)
	if err := store.Put(PodReading{Time: noon, Pods: make([]PodUsage, MaxPods)}); err != nil {
		t.Error(err)
	}
	err := store.Put(PodReading{Time: noon, Pods: make([]PodUsage, MaxPods+1)})
	if err == nil || err.Error() != "reading has 200001 pods, maximum is 200000" || ReasonOf(err) != TooLarge {
		t.Errorf("error %v, want one with the bound", err)
	}
	if got := len(store.Fresh().Pods); got != MaxPods {
		t.Errorf("%d pods, want the %d of the previous reading", got, MaxPods)
	}
	if stats := store.Stats(); stats.Reads != 1 || stats.Failures[TooLarge] != 1 {
		t.Errorf("counters %+v, want one reading and one that is too large", stats)
	}
}

func TestPodUsageValid(t *testing.T) {
	for usage, want := range map[PodUsage]bool{
		{}:                      true,
		{CPU: 1, Memory: 1}:     true,
		{CPU: -1}:               false,
		{Memory: -1}:            false,
		{CPU: math.NaN()}:       false,
		{Memory: math.NaN()}:    false,
		{CPU: math.Inf(1)}:      false,
		{Memory: math.Inf(1)}:   false,
		{CPU: math.MaxFloat64}:  true,
		{CPU: 1, Memory: -1e-9}: false,
	} {
		if usage.Valid() != want {
			t.Errorf("%+v: %t, want %t", usage, !want, want)
		}
	}
}

// TestPodReadingsAreObservedBeforeTheyAreVisible checks that the observer has been called before readers get a reading.
func TestPodReadingsAreObservedBeforeTheyAreVisible(t *testing.T) {
	const readings = 2000
	store := NewPodStore(time.Hour, (&clock{noon}).now)
	var computed sync.Map
	store.Observe(func(reading *PodReading) { computed.Store(reading, true) })
	var running sync.WaitGroup
	done := make(chan struct{})
	for range 4 {
		running.Go(func() {
			for last := -1.0; ; {
				reading := store.Fresh()
				if reading != nil {
					if _, known := computed.Load(reading); !known || reading.Pods[0].CPU < last {
						t.Errorf("known: %t, CPU %v after %v", known, reading.Pods[0].CPU, last)
						return
					}
					last = reading.Pods[0].CPU
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range readings {
		at := noon.Add(time.Duration(i) * time.Millisecond)
		if err := store.Put(PodReading{Time: at, Pods: []PodUsage{{CPU: float64(i)}}}); err != nil {
			t.Error(err)
		}
	}
	close(done)
	running.Wait()
}

// podSource is a PodSource whose ReadPods is a function.
type podSource func(ctx context.Context) (PodReading, error)

func (s podSource) ReadPods(ctx context.Context) (PodReading, error) { return s(ctx) }
func (podSource) String() string                                     { return "a test" }

// TestPodStoreRun checks reads, reports and counters over six minutes: readings at 0s and 1m, then failures. After the second
// failure the interval is the longest permitted one, half the maximum age of 150s. The reading of 1m is fresh until 3m30s.
func TestPodStoreRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		store := NewPodStore(150*time.Second, nil)
		store.jitter = func() float64 { return 1 }
		start, ended := time.Now(), make(chan struct{})
		var reads, reports []string
		source := podSource(func(context.Context) (PodReading, error) {
			reads = append(reads, time.Since(start).String())
			if len(reads) > 2 {
				return PodReading{}, &Error{Reason: Denied, Err: errors.New("forbidden")}
			}
			return podsAt(time.Now()), nil
		})
		go func() {
			defer close(ended)
			store.Run(ctx, source, time.Minute, func(state State) {
				reports = append(reports, fmt.Sprintf("%s: %s", time.Since(start), format(state)))
			})
		}()
		<-time.After(6 * time.Minute) // synctest time, which passes at once
		cancel()
		<-ended
		equal(t, "reads", reads, []string{"0s", "1m0s", "2m0s", "3m0s", "4m15s", "5m30s"})
		equal(t, "reports", reports, []string{
			"0s: <nil>",
			"2m0s: reading usage of pods from a test: forbidden",
			"3m30.000000001s: reading usage of pods from a test: forbidden (degraded)",
		})
		if stats := store.Stats(); stats.Reads != 2 || stats.Failures[Denied] != 4 || stats.Durations.Count != 6 {
			t.Errorf("counters %+v, want 2 readings, 4 failures, 6 durations", stats)
		}
	})
}

// TestPodStoreRunRejectsOldReadings checks that a reading older than the maximum age is a failure.
func TestPodStoreRunRejectsOldReadings(t *testing.T) {
	store := NewPodStore(time.Minute, (&clock{noon}).now)
	source := podSource(func(context.Context) (PodReading, error) { return podsAt(noon.Add(-2 * time.Minute)), nil })
	err := store.read(t.Context(), source)
	if ReasonOf(err) != TooOld || store.Fresh() != nil || store.Stats().Failures[TooOld] != 1 {
		t.Errorf("error %v, want a reading that is too old", err)
	}
}

// BenchmarkPodStore measures Fresh, which a plugin calls once per pod, and the storage of a reading.
func BenchmarkPodStore(b *testing.B) {
	store := NewPodStore(time.Hour, nil)
	reading := PodReading{Time: time.Now(), Pods: make([]PodUsage, 150_000)}
	if err := store.Put(reading); err != nil {
		b.Fatal(err)
	}
	b.Run("Fresh", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			store.Fresh()
		}
	})
	b.Run("Put", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := store.Put(reading); err != nil {
				b.Fatal(err)
			}
		}
	})
}
