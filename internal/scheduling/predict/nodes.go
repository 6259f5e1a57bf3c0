package predict

import "math"

// nodeState is the state of a learner for one node.
type nodeState struct {
	reading uint64
	filters [Resources]filter
	// own is the part of the shift that the histories of the pods explain.
	own [Resources]Shift
}

// filter is the difference of a node between its measured load and the expected usage of its pods.
type filter struct {
	// mean is its mean over a number of seconds.
	mean, seconds float64
	// shift is how much of mean is believed. expected is the variance of the expected usage, and known the part of it by which
	// the shift reduces it.
	shift, expected, known float64
}

// driftTime is the time in seconds after which an unconfirmed shift has decayed to half.
const driftTime = 12 * 3600

// sums are sums over the pods of a node, for one resource.
type sums struct {
	// mean is the expected load of the pods within the window; unknown is the variance of this
	// expectation, retained the part of unknown from pods that the previous reading had on the node.
	mean, unknown, retained float64
	// time is the variance of the load over time.
	time float64
	// own is the part of the shift that the histories of the pods explain.
	own Shift
}

// sums computes the sums of a node.
func (l *Learner) sums(node *NodeReading, found []*PodState, state *nodeState, r int) sums {
	var s sums
	resource := &l.resources[r]
	for i := range node.Pods {
		p := &node.Pods[i]
		pod := found[i]
		e := estimateOf(&resource.known, &pod.workload.estimate[r], p.Amounts[r].Request)
		class := &resource.classes[e.class]
		mean, variance := e.Mean, e.Pod
		if own := &pod.own[r]; own.seconds > 0 {
			o := class.observe(own, pod.workload.estimate[r].volatility)
			change := o.gain * (own.recent - mean)
			s.own.Mean += change
			s.own.Known += o.known * e.square
			mean += change
			variance = max(e.Pod-o.known*e.square, 0)
			// The error of the mean of the workload remains in the part of the expectation that the history does not replace:
			// (1 - gain)^2 x Unknown.
			explained := o.gain * (2 - o.gain) * e.Unknown
			s.own.Known += explained
			e.Unknown -= explained
		}
		seen := p.Seen
		s.mean += max(mean, 0) * seen
		unknown := (variance + e.Unknown) * seen * seen
		s.unknown += unknown
		if pod.node == state {
			s.retained += unknown
		}
		s.time += e.Time * seen * seen
	}
	return s
}

// observed is what the recent usage of a pod says about its usage for the time that it is expected to run.
type observed struct {
	// gain is how much of the difference from the mean of the workload remains, in [0, 1].
	gain float64
	// known is the variance, in the unit of square, by which the observation makes the expectation more certain.
	known float64
}

// observe returns what a history says. The deviation of a pod from its workload remains as far as it is the deviation of the pod or
// varies over longer times than both the past and the future that are compared.
func (s *classState) observe(h *history, volatility float64) observed {
	variance := s.pod + volatility*s.scales.varianceOver(h.recentSeconds)
	lasting := s.pod + volatility*s.scales.varianceOver(h.recentSeconds+h.remaining())
	if variance <= 0 {
		return observed{}
	}
	gain := lasting / variance
	return observed{gain, gain * lasting}
}

// observation is the part of a reading about one node and resource.
type observation struct {
	node     *NodeReading
	state    *nodeState
	measured Measured
	sums
}

// observe computes the sums of all nodes, and keeps those of the nodes whose resource was measured, and of the nodes for which it was
// measured earlier.
func (l *Learner) observe(reading *Reading, r int) {
	l.observations, l.unmeasured = l.observations[:0], l.unmeasured[:0]
	found := l.found
	for i := range reading.Nodes {
		node := &reading.Nodes[i]
		pods := found[:len(node.Pods)]
		found = found[len(node.Pods):]
		m, state := &node.Measured[r], l.node(node.Name)
		use := l.sums(node, pods, state, r)
		state.own[r] = use.own
		if m.Known {
			l.observations = append(l.observations, observation{node, state, *m, use})
		} else if state.filters[r].expected > 0 {
			l.unmeasured = append(l.unmeasured, observation{node, state, *m, use})
		}
	}
}

func (l *Learner) node(name string) *nodeState {
	state, ok := l.nodes[name]
	if !ok {
		state = &nodeState{}
		l.nodes[name] = state
	}
	state.reading = l.readings
	return state
}

// gain returns the fraction of the difference between measurement and expectation to add to the
// expectation, given the variance of the expectation and of the measurement (noise).
func gain(variance, noise float64) float64 {
	if variance+noise <= 0 {
		return 0
	}
	return variance / (variance + noise)
}

const tiny = 1e-12

// remaining returns the variance of the mean over some seconds, as a fraction of the variance over time.
func (s *resourceState) remaining(seconds float64) float64 {
	scales := &s.classes[requested].scales
	return scales.varianceOver(seconds) / max(scales.after[0], tiny)
}

// filterNodes updates the shift of every measured node, and of the nodes that were measured earlier.
func (l *Learner) filterNodes(reading *Reading, r int, elapsed float64) {
	s := &l.resources[r]
	forget := math.Exp2(-elapsed / driftTime)
	for _, o := range l.observations {
		f := &o.state.filters[r]
		retained := f.retainedPart(&o.sums)
		if f.expected > 0 {
			o.node.Predicted[r] = max(o.mean+retained*f.shift, 0)
		}
		f.mean *= retained
		f.seconds *= retained * forget
		step := max(elapsed, 1)
		if f.seconds == 0 {
			step = max(reading.Window, step)
		}
		f.seconds += step
		f.mean += (o.measured.Mean - o.mean - f.mean) * step / f.seconds
		// As for the histories of pods: the difference remains as far as it varies over longer times.
		lasting := o.unknown + s.remaining(2*f.seconds)*o.time
		gain := gain(lasting, max(o.unknown+s.remaining(f.seconds)*o.time-lasting, 0))
		f.shift, f.expected, f.known = gain*f.mean, o.unknown, gain*lasting
	}
	for _, o := range l.unmeasured {
		f := &o.state.filters[r]
		retained := f.retainedPart(&o.sums)
		f.mean *= retained
		f.seconds *= retained * forget
		f.shift, f.expected, f.known = retained*f.shift, o.unknown, retained*f.known
	}
}

// retainedPart returns the part of the shift that remains: the part of the pods that were on the node in the previous reading.
func (f *filter) retainedPart(s *sums) float64 {
	if f.expected == 0 {
		return 0
	}
	return min(s.retained/f.expected, 1)
}

// placePods remembers the node of each pod.
func (l *Learner) placePods(reading *Reading) {
	found := l.found
	for i := range reading.Nodes {
		node := &reading.Nodes[i]
		state := l.node(node.Name)
		for _, pod := range found[:len(node.Pods)] {
			pod.node = state
		}
		found = found[len(node.Pods):]
	}
}

// forgetNodes drops the nodes that the reading lacks.
func (l *Learner) forgetNodes() {
	for name, state := range l.nodes {
		if state.reading != l.readings {
			delete(l.nodes, name)
		}
	}
}
