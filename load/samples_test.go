package load

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var samplesNoon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestWindow(t *testing.T) {
	type sample struct {
		seconds     int
		cpu, memory float64
	}
	for name, tc := range map[string]struct {
		samples []sample
		want    Node
		fresh   int // samples that were new
	}{
		"one": {[]sample{{0, 0.5, 0.25}}, Node{CPU: Utilization{Mean: 0.5}, Memory: Utilization{Mean: 0.25}}, 1},
		// (0.25 + 0.75) / 2 = 0.5, each differs by 0.25
		"two": {
			[]sample{{0, 0.25, 0.5}, {15, 0.75, 0.5}}, Node{CPU: Utilization{Mean: 0.5, StdDev: 0.25}, Memory: Utilization{Mean: 0.5}}, 2,
		},
		"the same again": {[]sample{{0, 0.25, 0.5}, {0, 0.75, 0.5}}, Node{CPU: Utilization{Mean: 0.25}, Memory: Utilization{Mean: 0.5}}, 1},
		"an older one": {
			[]sample{{30, 0.25, 0.5}, {15, 0.75, 0.5}}, Node{CPU: Utilization{Mean: 0.25}, Memory: Utilization{Mean: 0.5}}, 1,
		},
		// The first is 61 s before the last, in a window of 60 s.
		"one that is past": {
			[]sample{{0, 1, 1}, {31, 0.5, 0.5}, {61, 0.5, 0.5}}, Node{CPU: Utilization{Mean: 0.5}, Memory: Utilization{Mean: 0.5}}, 3,
		},
		"all but one past": {[]sample{{0, 1, 1}, {1000, 0.5, 0.5}}, Node{CPU: Utilization{Mean: 0.5}, Memory: Utilization{Mean: 0.5}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w, fresh := NewSampleWindow(time.Minute), 0
			for _, s := range tc.samples {
				if w.Add("node", samplesNoon.Add(time.Duration(s.seconds)*time.Second), Sample{s.cpu, s.memory}) {
					fresh++
				}
			}
			tc.want.HasCPU, tc.want.HasMemory = true, true
			if got, ok := w.Load("node"); !ok || got != tc.want || fresh != tc.fresh {
				t.Errorf("%+v, %t, %d new; want %+v, %d", got, ok, fresh, tc.want, tc.fresh)
			}
		})
	}
}

func TestRetain(t *testing.T) {
	w := NewSampleWindow(time.Minute)
	w.Add("a", samplesNoon, Sample{})
	w.Add("b", samplesNoon, Sample{})
	w.Retain(func(node string) bool { return node == "b" })
	if _, ok := w.Load("a"); ok || !w.Newest("a").IsZero() {
		t.Error("a is not removed")
	}
	if _, ok := w.Load("b"); !ok || !w.Newest("b").Equal(samplesNoon) {
		t.Error("b is removed")
	}
}

// TestWindowEqualsList compares the load with the load computed from a list of all samples in the window, for samples
// that are not too frequent to be stored.
func TestWindowEqualsList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const length = 10 * time.Minute
		w, at := NewSampleWindow(length), samplesNoon
		type plain struct {
			at  time.Time
			cpu float64
		}
		var list []plain
		for range rapid.IntRange(1, 150).Draw(t, "samples") {
			at = at.Add(time.Duration(rapid.IntRange(10, 90).Draw(t, "seconds")) * time.Second)
			cpu := float64(float32(rapid.Float64Range(0, 1).Draw(t, "cpu")))
			w.Add("node", at, Sample{CPU: cpu})
			list = append(list, plain{at, cpu})
		}
		var n, sum, squares float64
		for _, p := range list {
			if !p.at.Before(at.Add(-length)) {
				n++
				sum += p.cpu
			}
		}
		for _, p := range list {
			if !p.at.Before(at.Add(-length)) {
				squares += (p.cpu - sum/n) * (p.cpu - sum/n)
			}
		}
		got, _ := w.Load("node")
		if math.Abs(got.CPU.Mean-sum/n) > 1e-9 || math.Abs(got.CPU.StdDev-math.Sqrt(squares/n)) > 1e-9 {
			t.Fatalf("%+v, want mean %v, deviation %v", got.CPU, sum/n, math.Sqrt(squares/n))
		}
	})
}

// TestMemoryIsBounded checks that the number of samples is bounded if they are frequent, and that the newest is
// stored.
func TestMemoryIsBounded(t *testing.T) {
	w := NewSampleWindow(15 * time.Minute)
	for i := range 10_000 {
		w.Add("node", samplesNoon.Add(time.Duration(i)*time.Second), Sample{CPU: float64(i)})
	}
	r := w.nodes["node"]
	if len(r.samples) > maxPerNode+1 || cap(r.samples) > 4*maxPerNode || r.samples[len(r.samples)-1].cpu != 9999 {
		t.Errorf("%d samples, capacity %d, the last is %v", len(r.samples), cap(r.samples), r.samples[len(r.samples)-1].cpu)
	}
	if span := r.samples[len(r.samples)-1].at - r.samples[0].at; span < (14 * time.Minute).Milliseconds() {
		t.Errorf("they span %d ms, want about 15 minutes", span)
	}
}

func TestDropAfter(t *testing.T) {
	w := NewSampleWindow(time.Hour)
	for _, sample := range []struct {
		node   string
		second int
	}{{"a", 0}, {"b", 0}, {"b", 60}, {"c", 60}} {
		w.Add(sample.node, samplesNoon.Add(time.Duration(sample.second)*time.Second), Sample{CPU: 0.5})
	}
	w.DropAfter(samplesNoon.Add(59 * time.Second))
	if !w.Newest("a").Equal(samplesNoon) || !w.Newest("b").Equal(samplesNoon) || !w.Newest("c").IsZero() {
		t.Errorf("newest samples at %s, %s and %s", w.Newest("a"), w.Newest("b"), w.Newest("c"))
	}
	if !w.Add("b", samplesNoon.Add(time.Second), Sample{CPU: 0.25}) || len(w.nodes["b"].samples) != 2 {
		t.Error("no sample is added after those that were dropped")
	}
}

// TestCovered checks the time that samples cover: one sample, two, and more than the window has.
func TestCovered(t *testing.T) {
	w := NewSampleWindow(time.Minute)
	if got := w.Covered("a", time.Second); got != 0 {
		t.Errorf("no sample: %s", got)
	}
	for _, step := range []struct{ second, want int }{{0, 10}, {20, 30}, {50, 60}, {70, 60}, {75, 60}, {500, 10}} {
		w.Add("a", samplesNoon.Add(time.Duration(step.second)*time.Second), Sample{})
		if got, want := w.Covered("a", 10*time.Second), time.Duration(step.want)*time.Second; got != want {
			t.Errorf("at %d s: %s, want %s", step.second, got, want)
		}
	}
}

// TestIsCurrent checks that one sample of each node has no deviation.
func TestIsCurrent(t *testing.T) {
	for deviation, want := range map[float64]bool{0: true, 0.1: false} {
		r := Reading{Source: "KubernetesMetricsServer", Nodes: map[string]Node{"a": {CPU: Utilization{Mean: 0.5, StdDev: deviation}}}}
		if r.IsCurrent() != want {
			t.Errorf("deviation %g: %t, want %t", deviation, !want, want)
		}
	}
}
