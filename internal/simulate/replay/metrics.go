package replay

import (
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/samples"
)

// monitoring is what measures the nodes: it looks at them now and then, and its
// readings take a while to arrive.
type monitoring struct {
	Metrics
	window *samples.Window
	// due are the readings on their way, the oldest first; newest is the last one,
	// on its way or not.
	due    []load.Reading
	newest load.Reading
}

func newMonitoring(m Metrics) *monitoring {
	return &monitoring{Metrics: m, window: samples.New(time.Duration(m.Window) * time.Second)}
}

// at returns an instant.
func at(second int64) time.Time { return Epoch.Add(time.Duration(second) * time.Second) }

// measured takes in what a node uses, as fractions of the machine.
func (m *monitoring) measured(node string, second int64, cpu, memory float64) {
	m.window.Add(node, at(second), samples.Sample{CPU: min(cpu, 1), Memory: min(memory, 1)})
}

// read sends off a reading of the nodes that were measured now.
func (m *monitoring) read(nodes []string, second int64) {
	reading := load.Reading{
		Source: "simulation", Time: at(second), Window: time.Duration(m.Window) * time.Second,
		Nodes: make(map[string]load.Node, len(nodes)),
	}
	for _, name := range nodes {
		if node, ok := m.window.Load(name); ok {
			reading.Nodes[name] = node
		}
	}
	m.due, m.newest = append(m.due, reading), reading
}

// next returns when the next reading arrives, never if there is none.
func (m *monitoring) next() int64 {
	if len(m.due) == 0 {
		return never
	}
	return int64(m.due[0].Time.Sub(Epoch)/time.Second) + m.Delay
}

// arrived returns the reading that has arrived by now, if there is one.
func (m *monitoring) arrived(second int64) (load.Reading, bool) {
	if m.next() > second {
		return load.Reading{}, false
	}
	reading := m.due[0]
	m.due = m.due[1:]
	return reading, true
}
