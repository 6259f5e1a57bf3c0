// Package load provides the measured load of nodes. A Source reads the utilization of all nodes, a
// Store keeps the newest reading, and its users (a scheduler plugin, for every node of every pod)
// read an immutable Snapshot without locks.
//
// Utilization is a fraction of the node's capacity, with the mean and the standard deviation over a
// window of time. A Store does not return readings that are older than its maximum age.
package load

import (
	"context"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
)

// Utilization is the utilization of one resource of one node, as fractions of the node's capacity
// in [0, 1].
type Utilization struct {
	// Mean is the mean over the window.
	Mean float64
	// StdDev is the population standard deviation over the window.
	StdDev float64
}

// Valid reports whether both values are finite and not negative.
func (u Utilization) Valid() bool { return risk.Load(u).Valid() }

// Node is the load of one node. HasCPU and HasMemory report whether the load of the resource is known.
type Node struct {
	CPU, Memory       Utilization
	HasCPU, HasMemory bool
}

// HasNoUsage reports whether the node has a mean CPU utilization below that of any kubelet, so that its source is probably wrong.
func (n Node) HasNoUsage() bool { return n.HasCPU && n.CPU.Mean < 0.0001 }

// IsCurrent reports whether the reading is one sample of each node, as metrics-server gives at first: no node has a deviation.
func (r *Reading) IsCurrent() bool {
	for _, n := range r.Nodes {
		if n.CPU.StdDev > 0 || n.Memory.StdDev > 0 {
			return false
		}
	}
	return r.Source == metricprovider.MetricsServer
}

// Series is one statistic of one resource for all nodes. A source may fail to read one series and
// still read other series.
type Series string

// The series of a reading.
const (
	CPUMean      Series = "CPU mean"
	CPUStdDev    Series = "CPU deviation"
	MemoryMean   Series = "memory mean"
	MemoryStdDev Series = "memory deviation"
)

// AllSeries are the series in the order of the documentation.
var AllSeries = []Series{CPUMean, CPUStdDev, MemoryMean, MemoryStdDev}

// Reading is the load of all nodes at one time.
type Reading struct {
	// Source is the display name of the source, such as Prometheus.
	Source string
	// Time is the end of the window.
	Time time.Time
	// Window is the time that means and standard deviations cover.
	Window time.Duration
	// Nodes is the load by node name.
	Nodes map[string]Node
	// Rejected is the number of values that were ignored because they are invalid (not a number,
	// negative, infinite) or belong to no node.
	Rejected int
	// Stale is the number of nodes that the source has only old values for. They are not in Nodes.
	Stale int
	// Lost are the errors of the series that could not be read. A Store replaces these series with the
	// series of earlier readings while the earlier readings are fresh.
	Lost map[Series]error
	// Warnings are what the server says about its answers, such as that they are partial.
	Warnings []string
}

// Source reads the load of all nodes.
type Source interface {
	// Read returns a new reading. It returns when ctx is done. An *Error states the kind of failure.
	Read(ctx context.Context) (Reading, error)
	// String returns the name and the address of the source, for messages.
	String() string
}

// Snapshot is an immutable reading. A nil Snapshot is valid and contains no nodes.
type Snapshot struct {
	reading Reading
	// times are the times of the series, which are before the time of the reading for series of previous readings.
	times map[Series]time.Time
}

// Node returns the load of a node, and whether it is known.
func (s *Snapshot) Node(name string) (Node, bool) {
	if s == nil {
		return Node{}, false
	}
	node, ok := s.reading.Nodes[name]
	return node, ok
}

// Reading returns the reading, which callers must not modify. The reading of a nil Snapshot is empty.
func (s *Snapshot) Reading() Reading {
	if s == nil {
		return Reading{}
	}
	return s.reading
}
