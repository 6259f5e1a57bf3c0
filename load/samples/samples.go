// Package samples keeps what sources say that know only the present, and works
// out the mean and deviation over a window of time.
package samples

import (
	"math"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// MaxPerNode is the most samples that are kept of a node. Where more come
// within a window, the time between two that are kept is the window's over
// MaxPerNode.
const MaxPerNode = 64

// Sample is the utilization of a node at one instant, as fractions of the
// machine's capacity in [0, 1].
type Sample struct {
	CPU, Memory float64
}

// Window keeps the samples of the last while. It belongs to one goroutine, and
// holds at most MaxPerNode samples of 16 bytes of a node.
type Window struct {
	length time.Duration
	nodes  map[string]*ring
}

// ring holds samples in the order of their times.
type ring struct {
	samples []stamped
	newest  time.Time
}

// stamped is a sample with its time. Single precision is finer than a millionth
// of the capacity, and the sums are made in double.
type stamped struct {
	at          int64 // Unix milliseconds
	cpu, memory float32
}

// New returns a window of that length.
func New(length time.Duration) *Window {
	return &Window{length: length, nodes: map[string]*ring{}}
}

// Add takes a sample in and returns whether it is a new one: one that is not
// newer than the last of its node is not.
func (w *Window) Add(node string, at time.Time, sample Sample) bool {
	r := w.nodes[node]
	if r == nil {
		r = &ring{}
		w.nodes[node] = r
	}
	if !at.After(r.newest) {
		return false
	}
	r.newest = at
	next := stamped{at.UnixMilli(), float32(sample.CPU), float32(sample.Memory)}
	if n := len(r.samples); n > 1 && next.at-r.samples[n-2].at < w.length.Milliseconds()/MaxPerNode {
		r.samples[n-1] = next
	} else {
		r.samples = append(r.samples, next)
	}
	r.drop(at.Add(-w.length))
	return true
}

// drop forgets what is before an instant, and the oldest where there are too
// many.
func (r *ring) drop(before time.Time) {
	oldest, n := before.UnixMilli(), 0
	for n < len(r.samples)-1 && (r.samples[n].at < oldest || len(r.samples)-n > MaxPerNode) {
		n++
	}
	if n > 0 {
		r.samples = append(r.samples[:0], r.samples[n:]...)
	}
}

// Retain forgets the nodes that keep says no to.
func (w *Window) Retain(keep func(node string) bool) {
	for node := range w.nodes {
		if !keep(node) {
			delete(w.nodes, node)
		}
	}
}

// Newest returns the time of the newest sample of a node, zero if there is
// none.
func (w *Window) Newest(node string) time.Time {
	if r := w.nodes[node]; r != nil {
		return r.newest
	}
	return time.Time{}
}

// Load returns the mean and the deviation of a node over the window that ends
// with its newest sample, and whether there is any. The deviation of a single
// sample is 0.
func (w *Window) Load(node string) (load.Node, bool) {
	r := w.nodes[node]
	if r == nil || len(r.samples) == 0 {
		return load.Node{}, false
	}
	n := float64(len(r.samples))
	var cpu, memory float64
	for _, s := range r.samples {
		cpu += float64(s.cpu)
		memory += float64(s.memory)
	}
	cpu, memory = cpu/n, memory/n
	var cpuSquares, memorySquares float64
	for _, s := range r.samples {
		cpuSquares += (float64(s.cpu) - cpu) * (float64(s.cpu) - cpu)
		memorySquares += (float64(s.memory) - memory) * (float64(s.memory) - memory)
	}
	return load.Node{
		CPU: load.Utilization{Mean: cpu, StdDev: math.Sqrt(cpuSquares / n)}, HasCPU: true,
		Memory: load.Utilization{Mean: memory, StdDev: math.Sqrt(memorySquares / n)}, HasMemory: true,
	}, true
}
