package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

func podsAt(at time.Time) PodReading {
	return PodReading{Source: "Test", Time: at, Pods: []PodUsage{{Namespace: "default", Name: "web", CPU: 250, Memory: 1 << 30}}}
}

// TestPodStoreRejectsOlderReadings checks that the previous reading is kept. The tests of Store check when readings are fresh.
func TestPodStoreRejectsOlderReadings(t *testing.T) {
	store := NewPodStore(time.Hour, (&clock{noon}).now)
	must.Succeed(t, store.Put(podsAt(noon)))
	err := store.Put(podsAt(noon.Add(-time.Minute)))
	if err == nil || !store.Fresh().Time.Equal(noon) || store.Stats().Failures[OutOfOrder] != 1 {
		t.Errorf("error %v, reading of %s", err, store.Fresh().Time)
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
