package load

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// noon is the start time of the tests.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clock is a clock that tests set.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func readingAt(at time.Time) Reading {
	return Reading{Source: "Test", Time: at, Nodes: map[string]Node{"node": {HasCPU: true, CPU: Utilization{Mean: 0.5}}}}
}

func TestPut(t *testing.T) {
	for name, tc := range map[string]struct {
		// at are the times of consecutive readings, relative to noon; the last one is checked.
		at      []time.Duration
		wantErr string
	}{
		"first":                {[]time.Duration{-time.Minute}, ""},
		"newer":                {[]time.Duration{-time.Minute, 0}, ""},
		"same time":            {[]time.Duration{-time.Minute, -time.Minute}, ""},
		"older":                {[]time.Duration{0, -90 * time.Second}, "reading is 1m30s older than the previous one"},
		"clock slightly ahead": {[]time.Duration{time.Minute}, ""},
		"from the future":      {[]time.Duration{61 * time.Second}, "reading is 1m1s ahead of the local clock, maximum is 1m0s"},
		"a year from now": {
			[]time.Duration{0, 365 * 24 * time.Hour},
			"reading is 8760h0m0s ahead of the local clock, maximum is 1m0s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := NewStore(time.Hour, (&clock{noon}).now)
			var err error
			want := noon.Add(tc.at[0])
			for _, at := range tc.at {
				must.Succeed(t, err)
				if err = store.Put(readingAt(noon.Add(at))); err == nil {
					want = noon.Add(at)
				}
			}
			if message := fmt.Sprint(err); message != tc.wantErr && (err != nil || tc.wantErr != "") {
				t.Errorf("error %v, want %q", err, tc.wantErr)
			}
			// A rejected reading leaves the previous one.
			if snapshot := store.Fresh(); snapshot != nil && !snapshot.Reading().Time.Equal(want) {
				t.Errorf("found the reading of %s, want that of %s", snapshot.Reading().Time, want)
			} else if (snapshot == nil) != (len(tc.at) == 1 && tc.wantErr != "") {
				t.Errorf("found a reading: %t", snapshot != nil)
			}
		})
	}
}

func TestFresh(t *testing.T) {
	const maxAge = 5 * time.Minute
	for name, tc := range map[string]struct {
		age  time.Duration
		want bool
	}{
		"new":              {0, true},
		"maximum age":      {maxAge, true},
		"1ns too old":      {maxAge + 1, false},
		"a day old":        {24 * time.Hour, false},
		"clock ahead":      {-30 * time.Second, true},
		"half maximum age": {maxAge / 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{noon}
			store := NewStore(maxAge, c.now)
			must.Succeed(t, store.Put(readingAt(noon)))
			c.at = noon.Add(tc.age)
			if got := store.Fresh() != nil; got != tc.want {
				t.Errorf("aged %s: fresh %t, want %t", tc.age, got, tc.want)
			}
		})
	}
}

// TestFreshAgain checks that a new reading makes a store fresh again and does not change earlier snapshots.
func TestFreshAgain(t *testing.T) {
	c := &clock{noon}
	store := NewStore(time.Minute, c.now)
	if store.Fresh() != nil {
		t.Error("an empty store has a fresh reading")
	}
	must.Succeed(t, store.Put(readingAt(noon)))
	before := store.Fresh()
	c.at = noon.Add(time.Hour)
	if store.Fresh() != nil {
		t.Error("a reading of an hour ago is fresh")
	}
	must.Succeed(t, store.Put(readingAt(c.at)))
	if after := store.Fresh(); after == nil || !after.Reading().Time.Equal(c.at) {
		t.Error("the new reading is not fresh")
	}
	if !before.Reading().Time.Equal(noon) {
		t.Error("the earlier snapshot has changed")
	}
}

// TestClockJumps checks that load is never used while its age is unknown, and that the next reading is used
// after the clock was set forward or back by an hour.
func TestClockJumps(t *testing.T) {
	const maxAge = 5 * time.Minute
	// Each step advances the clock, or sets it, and stores a reading with the time of the clock unless read is
	// false.
	type step struct {
		by   time.Duration
		read bool
		want bool
	}
	for name, steps := range map[string][]step{
		"forward":               {{0, true, true}, {time.Hour, false, false}, {0, true, true}},
		"back":                  {{0, true, true}, {-time.Hour, false, false}, {0, true, true}, {time.Minute, true, true}},
		"forward and back":      {{0, true, true}, {time.Hour, true, true}, {-time.Hour, false, false}, {time.Second, true, true}},
		"back a little":         {{0, true, true}, {-30 * time.Second, false, true}},
		"back, without reading": {{0, true, true}, {-time.Hour, false, false}, {50 * time.Minute, false, false}, {10 * time.Minute, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock{noon}
			store := NewStore(maxAge, c.now)
			if _, known := store.Age(); known {
				t.Error("the age is known before the first reading")
			}
			for i, step := range steps {
				c.at = c.at.Add(step.by)
				if step.read {
					if err := store.Put(readingAt(c.at)); err != nil {
						t.Errorf("step %d: %v", i, err)
					}
					if age, known := store.Age(); !known || age != 0 {
						t.Errorf("step %d: age %s, known: %t", i, age, known)
					}
				}
				if got := store.Fresh() != nil; got != step.want {
					t.Errorf("step %d: fresh %t, want %t", i, got, step.want)
				}
			}
		})
	}
	// Series of a reading from the future are not carried over.
	c := &clock{noon}
	store := NewStore(maxAge, c.now)
	must.Succeed(t, store.Put(readingAt(noon)))
	c.at = noon.Add(-time.Hour)
	must.Succeed(t, store.Put(Reading{Time: c.at, Nodes: map[string]Node{}, Lost: map[Series]error{CPUMean: nil}}))
	if _, known := store.Fresh().Node("node"); known {
		t.Error("load of a reading from the future is carried over")
	}
}

// TestObserversAreCalledBeforeASnapshotIsVisible checks the order of calls: each observer once per snapshot, before
// Fresh returns it, and one that is registered later with the current snapshot. Rejected readings are not observed.
func TestObserversAreCalledBeforeASnapshotIsVisible(t *testing.T) {
	c := &clock{noon}
	store := NewStore(time.Hour, c.now)
	var early, late []*Snapshot
	store.Observe(func(s *Snapshot) {
		if store.Fresh() == s {
			t.Error("the snapshot is visible before its observer has returned")
		}
		early = append(early, s)
	})
	put := func(at time.Time, want bool) {
		t.Helper()
		if err := store.Put(readingAt(at)); (err == nil) != want {
			t.Fatal(err)
		}
	}
	put(noon, true)
	first := store.Fresh()
	store.Observe(func(s *Snapshot) { late = append(late, s) })
	put(noon.Add(-time.Minute), false)
	put(noon.Add(time.Minute), true)
	for name, got := range map[string][]*Snapshot{"early": early, "late": late} {
		if len(got) != 2 || got[0] != first || got[1] != store.Fresh() {
			t.Errorf("%s observer: %d snapshots, want the two that were stored", name, len(got))
		}
	}
}

func TestSnapshot(t *testing.T) {
	var none *Snapshot
	if _, ok := none.Node("node"); ok || none.Reading().Nodes != nil {
		t.Error("a nil snapshot contains a node")
	}
	snapshot := &Snapshot{reading: readingAt(noon)}
	if node, ok := snapshot.Node("node"); !ok || node.CPU.Mean != 0.5 {
		t.Errorf("%+v, known: %t", node, ok)
	}
	if _, ok := snapshot.Node("other"); ok {
		t.Error("another node is known")
	}
}

// TestStoreIsSafeForConcurrentUse checks that readers get complete readings, and never an older one after a newer
// one.
func TestStoreIsSafeForConcurrentUse(t *testing.T) {
	const readings, readers = 2000, 8
	store := NewStore(time.Hour, (&clock{noon}).now)
	var running sync.WaitGroup
	written := make(chan struct{})
	running.Go(func() {
		defer close(written)
		for i := range readings {
			mean := float64(i) / readings
			err := store.Put(Reading{
				Time:  noon.Add(time.Duration(i) * time.Millisecond),
				Nodes: map[string]Node{"a": {CPU: Utilization{Mean: mean}}, "b": {CPU: Utilization{Mean: mean}}},
			})
			if err != nil {
				t.Error(err)
			}
		}
	})
	for range readers {
		running.Go(func() {
			last := -1.0
			for done := false; !done; {
				select {
				case <-written:
					done = true // once more, for the last reading
				default:
				}
				snapshot := store.Fresh()
				a, ok := snapshot.Node("a")
				b, _ := snapshot.Node("b")
				switch {
				case !ok && snapshot == nil && last < 0: // nothing written yet
				case !ok || a != b || a.CPU.Mean < last:
					t.Errorf("known: %t, a %v, b %v, before %v", ok, a.CPU.Mean, b.CPU.Mean, last)
				default:
					last = a.CPU.Mean
				}
			}
			if want := float64(readings-1) / readings; last != want {
				t.Errorf("the last reading is %v, want %v", last, want)
			}
		})
	}
	running.Wait()
}

func fullStore(nodes int) (store *Store, names []string) {
	reading := readingAt(time.Now())
	for i := range nodes {
		names = append(names, fmt.Sprintf("node-%04d.example.com", i))
		reading.Nodes[names[i]] = Node{HasCPU: true, HasMemory: true}
	}
	store = NewStore(time.Hour, nil)
	if err := store.Put(reading); err != nil {
		panic(err)
	}
	return store, names
}

func TestReadingTheStoreAllocatesNothing(t *testing.T) {
	store, names := fullStore(5000)
	i := 0
	got := testing.AllocsPerRun(1000, func() {
		store.Fresh().Node(names[i%len(names)])
		i++
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
