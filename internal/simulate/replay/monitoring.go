package replay

import (
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/simulate/input"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/samples"
)

// monitoring measures the load of nodes at an interval, and delays the readings.
type monitoring struct {
	metrics Metrics
	window  *samples.Window
	// delayed are the readings that the scheduler has not received yet, the oldest
	// first. newest is the last reading, delayed or not.
	delayed []load.Reading
	newest  load.Reading
}

func newMonitoring(m Metrics) *monitoring {
	return &monitoring{metrics: m, window: samples.New(time.Duration(m.Window) * time.Second)}
}

// addSample adds the load of a node, as fractions of the machine.
func (m *monitoring) addSample(node string, second int64, cpu, memory float64) {
	m.window.Add(node, input.Time(second), samples.Sample{CPU: min(cpu, 1), Memory: min(memory, 1)})
}

// takeReading takes a reading of the given nodes.
func (m *monitoring) takeReading(nodes []string, second int64) {
	reading := load.Reading{
		Source: "simulation", Time: input.Time(second), Window: time.Duration(m.metrics.Window) * time.Second,
		Nodes: make(map[string]load.Node, len(nodes)),
	}
	for _, name := range nodes {
		if node, ok := m.window.Load(name); ok {
			reading.Nodes[name] = node
		}
	}
	m.delayed, m.newest = append(m.delayed, reading), reading
}

// next returns the second at which the next reading is received, trace.Never if there
// is none.
func (m *monitoring) next() int64 {
	if len(m.delayed) == 0 {
		return trace.Never
	}
	return input.Second(m.delayed[0].Time) + m.metrics.Delay
}

// receive removes and returns the next reading that is received up to a second. It
// returns false if there is none.
func (m *monitoring) receive(second int64) (load.Reading, bool) {
	if m.next() > second {
		return load.Reading{}, false
	}
	reading := m.delayed[0]
	m.delayed = m.delayed[1:]
	return reading, true
}
