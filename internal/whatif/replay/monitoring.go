package replay

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// monitoring measures the load of nodes at an interval, and delays the readings.
type monitoring struct {
	metrics result.Metrics
	window  *load.SampleWindow
	// readsPods is set if the scheduler reads the usage of pods, and pods are the pods measured
	// since the last reading.
	readsPods bool
	pods      []load.PodUsage
	// delayed are the readings that the scheduler has not received yet, the oldest
	// first.
	delayed []readings
}

// readings are the load of the nodes and the usage of the pods at one time.
type readings struct {
	nodes load.Reading
	pods  load.PodReading
}

func newMonitoring(m result.Metrics) *monitoring {
	return &monitoring{metrics: m, window: load.NewSampleWindow(time.Duration(m.WindowSeconds) * time.Second)}
}

// addSample adds the load of a node, as fractions of the machine.
func (m *monitoring) addSample(node string, second int64, cpu, memory float64) {
	m.window.Add(node, recording.Time(second), load.Sample{CPU: min(cpu, 1), Memory: min(memory, 1)})
}

// addPod adds the usage of a pod, in millicores and bytes.
func (m *monitoring) addPod(pod *v1.Pod, cpu, memory float64) {
	m.pods = append(m.pods, load.PodUsage{Namespace: pod.Namespace, Name: pod.Name, CPU: cpu, Memory: memory})
}

// takeReading takes a reading of the given nodes, and of the pods.
func (m *monitoring) takeReading(nodes []string, second int64) {
	reading := load.Reading{
		Source: "simulation", Time: recording.Time(second),
		Nodes: make(map[string]load.Node, len(nodes)),
	}
	for _, name := range nodes {
		if node, ok := m.window.Load(name); ok {
			reading.Nodes[name] = node
			reading.Window = max(reading.Window, m.window.Covered(name, Step*time.Second))
		}
	}
	next := readings{nodes: reading}
	if m.readsPods {
		next.pods = load.PodReading{Source: reading.Source, Time: reading.Time, Window: Step * time.Second, Pods: m.pods}
		m.pods = make([]load.PodUsage, 0, len(m.pods)+len(m.pods)/8)
	}
	m.delayed = append(m.delayed, next)
}

// next returns the second at which the next reading is received, recording.Never if there
// is none.
func (m *monitoring) next() int64 {
	if len(m.delayed) == 0 {
		return recording.Never
	}
	return recording.Second(m.delayed[0].nodes.Time) + m.metrics.DelaySeconds
}

// receive removes and returns the next readings that are received up to a second. It
// returns false if there are none.
func (m *monitoring) receive(second int64) (readings, bool) {
	if m.next() > second {
		return readings{}, false
	}
	next := m.delayed[0]
	m.delayed[0] = readings{}
	m.delayed = m.delayed[1:]
	return next, true
}
