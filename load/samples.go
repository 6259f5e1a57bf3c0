package load

import (
	"maps"
	"math"
	"time"
)

// maxPerNode is the largest number of samples stored per node. If a window has more samples, the time
// between two stored samples is the length of the window divided by maxPerNode.
const maxPerNode = 64

// Sample is the utilization of a node at one time, as fractions of the node's capacity in [0, 1].
type Sample struct {
	CPU, Memory float64
}

// SampleWindow stores the samples of a sliding window, at most maxPerNode of 16 bytes per node. It is not
// safe for concurrent use.
type SampleWindow struct {
	length time.Duration
	nodes  map[string]*history
}

// history is the samples of one node, in the order of their times.
type history struct {
	samples []timedSample
	newest  time.Time
}

// timedSample is a sample with its time. Single precision is finer than a millionth of the capacity;
// sums have double precision.
type timedSample struct {
	at          int64 // Unix milliseconds
	cpu, memory float32
}

// NewSampleWindow returns an empty window of a length.
func NewSampleWindow(length time.Duration) *SampleWindow {
	return &SampleWindow{length: length, nodes: map[string]*history{}}
}

// Add stores a sample of a node. It returns false, and ignores the sample, if it is not newer than the
// newest one of the node.
func (w *SampleWindow) Add(node string, at time.Time, sample Sample) bool {
	h := w.nodes[node]
	if h == nil {
		h = &history{}
		w.nodes[node] = h
	}
	if !at.After(h.newest) {
		return false
	}
	h.newest = at
	next := timedSample{at.UnixMilli(), float32(sample.CPU), float32(sample.Memory)}
	if n := len(h.samples); n > 1 && next.at-h.samples[n-2].at < w.length.Milliseconds()/maxPerNode {
		h.samples[n-1] = next
	} else {
		h.samples = append(h.samples, next)
	}
	h.drop(at.Add(-w.length))
	return true
}

// drop removes the samples before a time, and the oldest ones if there are too many.
func (h *history) drop(before time.Time) {
	oldest, n := before.UnixMilli(), 0
	for n < len(h.samples)-1 && (h.samples[n].at < oldest || len(h.samples)-n > maxPerNode) {
		n++
	}
	if n > 0 {
		h.samples = append(h.samples[:0], h.samples[n:]...)
	}
}

// DropAfter removes the samples after a time, which were added before the clock was set back. Without it,
// new samples would not be newer than these.
func (w *SampleWindow) DropAfter(latest time.Time) {
	for node, h := range w.nodes {
		if !h.newest.After(latest) {
			continue
		}
		n := len(h.samples)
		for n > 0 && h.samples[n-1].at > latest.UnixMilli() {
			n--
		}
		if n == 0 {
			delete(w.nodes, node)
			continue
		}
		h.samples, h.newest = h.samples[:n], time.UnixMilli(h.samples[n-1].at)
	}
}

// Retain removes the nodes for which keep returns false.
func (w *SampleWindow) Retain(keep func(node string) bool) {
	maps.DeleteFunc(w.nodes, func(node string, _ *history) bool { return !keep(node) })
}

// Newest returns the time of the newest sample of a node, zero if there is none.
func (w *SampleWindow) Newest(node string) time.Time {
	if h := w.nodes[node]; h != nil {
		return h.newest
	}
	return time.Time{}
}

// Covered returns the time that the samples of a node cover, at most the length of the window, if each covers one resolution before
// its time. It is 0 without a sample.
func (w *SampleWindow) Covered(node string, resolution time.Duration) time.Duration {
	h := w.nodes[node]
	if h == nil || len(h.samples) == 0 {
		return 0
	}
	return min(time.Duration(h.newest.UnixMilli()-h.samples[0].at)*time.Millisecond+resolution, w.length)
}

// Load returns the load of a node over the window that ends with its newest sample, and whether there
// is a sample. The standard deviation of a single sample is 0.
func (w *SampleWindow) Load(node string) (Node, bool) {
	h := w.nodes[node]
	if h == nil || len(h.samples) == 0 {
		return Node{}, false
	}
	n := float64(len(h.samples))
	var cpu, memory float64
	for _, s := range h.samples {
		cpu += float64(s.cpu)
		memory += float64(s.memory)
	}
	cpu, memory = cpu/n, memory/n
	var cpuSquares, memorySquares float64
	for _, s := range h.samples {
		cpuSquares += (float64(s.cpu) - cpu) * (float64(s.cpu) - cpu)
		memorySquares += (float64(s.memory) - memory) * (float64(s.memory) - memory)
	}
	return Node{
		CPU: Utilization{Mean: cpu, StdDev: math.Sqrt(cpuSquares / n)}, HasCPU: true,
		Memory: Utilization{Mean: memory, StdDev: math.Sqrt(memorySquares / n)}, HasMemory: true,
	}, true
}
