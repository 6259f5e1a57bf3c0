package predict

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// PodReading is one pod of a node in a reading.
type PodReading struct {
	Declared
	// State is where the learner keeps what it knows of the pod. The caller passes the same one with every reading of
	// the pod, and to one learner only. If it is nil, nothing is known of the pod before this reading.
	State *PodState
	// Seen is the fraction of the window of the node's load during which the pod was on the node, in
	// [0, 1].
	Seen float64
	// Used is the usage of the pod, if IsUsed is set.
	Used   [Resources]float64
	IsUsed bool
	// Created is the second of the creation of the pod.
	Created float64
}

// Measured is the measured load of one resource of a node.
type Measured struct {
	// Mean over the window.
	Mean float64
	// Known is false if the resource was not measured.
	Known bool
}

// NodeReading is one node of a reading.
type NodeReading struct {
	Name     string
	Measured [Resources]Measured
	// Capacity is the most that a pod of the node can use, 0 if it is not known. Usage above it is ignored.
	Capacity [Resources]float64
	Pods     []PodReading
	// Predicted is set by Learner.Observe to the mean that the earlier readings predict; not a number if
	// the node had not been measured before.
	Predicted [Resources]float64
}

// Reading has the measurements of a cluster at one time.
type Reading struct {
	// Second is its time, in seconds since any fixed time.
	Second float64
	// Window is the time in seconds over which the load of nodes is averaged.
	Window float64
	Nodes  []NodeReading
}

// check marks impossible measurements as unknown and replaces other impossible values, so that no sum overflows.
func (n *NodeReading) check() {
	n.Predicted = [Resources]float64{math.NaN(), math.NaN()}
	for r := range n.Measured {
		m := &n.Measured[r]
		m.Known = m.Known && isAmount(m.Mean)
	}
	for i := range n.Pods {
		p := &n.Pods[i]
		for r, used := range p.Used {
			p.IsUsed = p.IsUsed && isAmount(used) && (n.Capacity[r] <= 0 || used <= n.Capacity[r])
		}
		if !(p.Seen >= 0 && p.Seen <= 1) {
			p.Seen = 1
		}
		for r := range p.Amounts {
			p.Amounts[r] = p.Amounts[r].checked()
		}
	}
}

// checked returns the amount without impossible values.
func (a Amount) checked() Amount {
	if !isAmount(a.Request) {
		a.Request = 0
	}
	if !isAmount(a.Limit) {
		a.Limit = 0
	}
	return a
}

// largest is more than any amount: sums of squares of it remain finite.
const largest = 1e18

func isAmount(x float64) bool { return x >= 0 && x <= largest }

// Options configure a Learner.
type Options struct {
	// HistoryWeight is the weight of the usage of a workload's own pods in relation to the usage of all
	// pods: 0 ignores it, 1 weights it by its precision.
	HistoryWeight float64
	// HalfLife is the time in seconds after which a reading counts half.
	HalfLife float64
}

// Learner learns the usage of pods. It is not safe for concurrent use.
type Learner struct {
	options   Options
	last      float64 // second of the newest reading
	saved     float64 // second at which the imported history was saved
	readings  uint64
	pods      []*PodState
	workloads map[resources.WorkloadKey]*workloadState
	nodes     map[string]*nodeState
	resources [Resources]resourceState
	// found has the states of the pods of the current reading, in its order.
	found []*PodState
	// observations has the observations of the resource that is being processed, unmeasured the nodes for which it was measured in an
	// earlier reading only.
	observations, unmeasured []observation
}

// NewLearner returns a learner without readings.
func NewLearner(options Options) *Learner {
	l := &Learner{
		options:   options,
		saved:     math.Inf(-1),
		workloads: map[resources.WorkloadKey]*workloadState{},
		nodes:     map[string]*nodeState{},
	}
	for r := range l.resources {
		l.resources[r].reset(priors[r])
	}
	return l
}

// resourceState is the state of the estimates of one resource over all pods.
type resourceState struct {
	known   [classes]classEstimate
	classes [classes]classState
}

// decaySince returns the weight of a reading at a second.
func (l *Learner) decaySince(second float64) float64 {
	return math.Exp2(-max(l.last-second, 0) / l.options.HalfLife)
}

// ratio is a quotient of two decaying sums, which begins at a prior of some weight.
type ratio struct{ above, below, prior, weight float64 }

func (q *ratio) add(above, below float64) { q.above += above; q.below += below }

func (q *ratio) decay(factor float64) { q.above *= factor; q.below *= factor }

// value returns the quotient within bounds.
func (q *ratio) value(low, high float64) float64 {
	return min(max((q.above+q.prior*q.weight)/(q.below+q.weight), low), high)
}

func (s *resourceState) reset(prior [classes]Prior) {
	for c := range s.classes {
		s.known[c].class = int8(c)
		s.classes[c] = classState{classEstimate: &s.known[c], prior: prior[c]}
		s.classes[c].usePrior()
	}
}

// Observe learns from a reading and returns the new model. A reading that is not newer than the
// previous one counts as simultaneous.
func (l *Learner) Observe(reading *Reading) *Model {
	for i := range reading.Nodes {
		reading.Nodes[i].check()
	}
	elapsed := max(reading.Second-l.last, 0)
	if l.readings == 0 {
		elapsed = 0
	}
	l.last = reading.Second
	l.readings++
	decay := math.Exp2(-elapsed / l.options.HalfLife)
	l.observePods(reading, elapsed, decays{decay, math.Exp2(-elapsed / recentHalfLife)})
	for r := range l.resources {
		l.estimateWorkloads(r)
		l.observe(reading, r)
		l.filterNodes(reading, r, elapsed)
	}
	l.placePods(reading)
	l.forgetNodes()
	return l.model()
}
