// Package load knows how busy nodes are. A Source reads the utilization of all
// nodes from somewhere, a Store keeps the newest reading, and those who need it
// (a scheduler plugin, for every node of every pod) look at an immutable
// Snapshot without waiting for anything.
//
// Utilization is a fraction of the capacity of the whole machine, with its mean
// and standard deviation over a window of time. A Store never shows a reading
// that is older than it is told to: of stale load nothing is known.
package load

import (
	"context"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
)

// Utilization of one resource of one node: Mean and StdDev, as fractions of
// the machine's capacity in [0, 1].
type Utilization = risk.Load

// Node is the load of one node. A resource that nothing is known of has its
// Has field unset.
type Node struct {
	CPU, Memory       Utilization
	HasCPU, HasMemory bool
}

// Series is one figure of one resource, of all nodes: what a source asks for
// at once, and may fail to get while it gets the others.
type Series string

// The series that there are.
const (
	CPUMean      Series = "CPU mean"
	CPUStdDev    Series = "CPU deviation"
	MemoryMean   Series = "memory mean"
	MemoryStdDev Series = "memory deviation"
)

// AllSeries are the series in the order of the documentation.
var AllSeries = []Series{CPUMean, CPUStdDev, MemoryMean, MemoryStdDev}

// Reading is what a source knew of all nodes at one time.
type Reading struct {
	// Source names where the reading is from, for people: Prometheus.
	Source string
	// Time is when the reading was taken, the end of its window.
	Time time.Time
	// Window is the time that means and deviations are over.
	Window time.Duration
	// Nodes by name.
	Nodes map[string]Node
	// Rejected is the number of values that made no sense (not a number,
	// negative, infinite) or belong to no node, and were left out.
	Rejected int
	// Stale is the number of nodes that the source knows, but of which it has
	// only old values; they are not among the Nodes.
	Stale int
	// Lost are the series that could not be read, and why. A Store shows those
	// of the reading before in their place, as long as they are fresh.
	Lost map[Series]error
}

// Source reads the load of all nodes.
type Source interface {
	// Read returns a new reading. It ends when ctx does. An error loses this
	// reading only; an *Error says of which kind it is.
	Read(ctx context.Context) (Reading, error)
	// String names the source and its address in messages.
	String() string
}

// Snapshot is a reading that does not change any more. A nil Snapshot is valid
// and knows no nodes.
type Snapshot struct {
	reading Reading
	// until is the last instant at which all of it is fresh.
	until time.Time
	// rest is what is left from then on, nil if nothing is.
	rest *Snapshot
}

// Node returns the load of a node, and whether anything is known of it.
func (s *Snapshot) Node(name string) (Node, bool) {
	if s == nil {
		return Node{}, false
	}
	node, ok := s.reading.Nodes[name]
	return node, ok
}

// Reading returns the reading itself, which must not be changed; that of a nil
// Snapshot is empty.
func (s *Snapshot) Reading() Reading {
	if s == nil {
		return Reading{}
	}
	return s.reading
}
