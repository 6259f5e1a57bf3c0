package predict

import "math"

// nodeState is the state of a learner for one node.
type nodeState struct {
	reading uint64
	filters [Resources]filter
	// own is the part of the shift that the histories of the pods explain.
	own [Resources]Shift
}

// filter is a Kalman filter of the shift of a node: the usage of its pods minus their expected usage.
type filter struct {
	shift, variance float64
	// known is the variance of the expected usage at the previous reading, before the filter reduced it.
	known float64
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
	// arrivals is the variance within the window that is due to pods that arrived during it.
	arrivals float64
	// requests is the sum of the requests, and pods the number of pods without a request, weighted by the
	// fraction of the window in which the pod was on the node.
	requests, pods float64
}

// sums computes the sums of a node.
func (l *Learner) sums(node *NodeReading, found []*PodState, state *nodeState, r int) sums {
	var s sums
	resource := &l.resources[r]
	together := l.together()
	var unknown [classes]Ratio
	for c := range unknown {
		unknown[c] = resource.classes[c].ratio(&pool{}, 0, int8(c))
	}
	for i := range node.Pods {
		p := &node.Pods[i]
		pod := found[i]
		base, class := p.Amounts[r].base()
		q := &pod.workload.ratio[r]
		if int(q.class) != class || q.Pods == 0 {
			q = &unknown[class]
		}
		seen := base * p.Seen
		own := &pod.own[r]
		mean, variance := q.Mean, q.Pod
		if own.weight > 0 && int(own.class) == class {
			noise := resource.classes[class].time * resource.classes[class].correlation / own.weight * q.Mean * q.Mean
			gain := gain(q.Pod, noise)
			s.own.Mean += gain * (own.mean - mean) * base
			s.own.Known += gain * variance * base * base
			mean += gain * (own.mean - mean)
			variance *= 1 - gain
		}
		s.mean += mean * seen
		s.arrivals += mean * mean * base * base * p.Seen * (1 - p.Seen)
		s.unknown += (variance + q.Unknown) * seen * seen
		if pod.node == state {
			s.retained += (variance + q.Unknown) * seen * seen
		}
		if class == requested {
			s.requests += seen
		} else {
			s.pods += seen
		}
		l.addCorrelated(pod.workload, math.Sqrt(q.Time)*seen)
	}
	s.time = l.takeCorrelated(together)
	return s
}

// addCorrelated adds the deviation of a pod to the sums of its workload.
func (l *Learner) addCorrelated(w *workloadState, deviation float64) {
	if w.count == 0 {
		l.touched = append(l.touched, w)
	}
	w.count++
	w.sum += deviation
	w.squares += deviation * deviation
}

// takeCorrelated returns the variance of the sum of the deviations, and resets the sums.
func (l *Learner) takeCorrelated(together float64) (variance float64) {
	for _, w := range l.touched {
		variance += together*w.sum*w.sum + (1-together)*w.squares
		w.sum, w.squares, w.count = 0, 0, 0
	}
	l.touched = l.touched[:0]
	return variance
}

// observation is the part of a reading about one node and resource.
type observation struct {
	node     *NodeReading
	state    *nodeState
	measured Measured
	sums
}

// observe computes the sums of all nodes whose resource was measured.
func (l *Learner) observe(reading *Reading, r int) []observation {
	l.observations = l.observations[:0]
	found := l.found
	for i := range reading.Nodes {
		node := &reading.Nodes[i]
		pods := found[:len(node.Pods)]
		found = found[len(node.Pods):]
		if m := &node.Measured[r]; m.Known {
			state := l.node(node.Name)
			use := l.sums(node, pods, state, r)
			state.own[r] = use.own
			l.observations = append(l.observations, observation{node, state, *m, use})
		}
	}
	return l.observations
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

// fitClasses fits the means of the classes to the load of nodes, and corrects the variances of the prior
// by it. overlap is the number of readings per window: overlapping readings have less weight.
func (l *Learner) fitClasses(reading *Reading, r int, decay, overlap float64) {
	s := &l.resources[r]
	s.fit.decay(decay)
	s.timeScale.decay(decay)
	s.spread.decay(decay)
	podsMeasured := s.classes[requested].isMeasured || s.classes[unrequested].isMeasured
	for _, o := range l.observe(reading, r) {
		if o.unknown+o.time <= 0 {
			continue
		}
		variance := max(o.unknown+s.drift.value(minimumDrift, maximumDrift)*o.time, 1)
		s.fit.add(o.requests, o.pods, o.measured.Mean, variance*overlap)
		if podsMeasured {
			continue
		}
		residual := o.measured.Mean - o.mean - o.state.filters[r].shift
		// Half of the changes are arrivals, the other half are pods that ended.
		within := max(o.measured.StdDev*o.measured.StdDev-2*o.arrivals, 0)
		s.timeScale.add(min((within+residual*residual)/max(o.time, tiny), 9)*s.timeScaleNow/overlap, 1/overlap)
		raw := o.measured.Mean - o.mean
		s.spread.add(min(raw*raw/max(o.unknown, tiny), 9)*s.spreadNow/overlap, 1/overlap)
	}
	s.fit.solve()
	s.timeScaleNow, s.spreadNow = s.timeScale.value(0.01, 25), s.spread.value(0.01, 25)
	changed := false
	for c := range s.classes {
		if !s.classes[c].isMeasured {
			s.classes[c].settle(s.fit.mean[c], s.spreadNow, s.timeScaleNow)
			changed = true
		}
	}
	if changed {
		l.observe(reading, r)
	}
}

// gain returns the fraction of the difference between measurement and expectation to add to the
// expectation, given the variance of the expectation and of the measurement (noise).
func gain(variance, noise float64) float64 {
	if variance+noise <= 0 {
		return 0
	}
	return variance / (variance + noise)
}

const (
	minimumDrift = 0.02
	maximumDrift = 2
	tiny         = 1e-12
)

// filterNodes updates the shift of every measured node.
func (l *Learner) filterNodes(r int, elapsed, overlap float64) {
	s := &l.resources[r]
	forget := math.Exp2(-elapsed / driftTime)
	s.drift.decay(forget)
	drift := s.drift.value(minimumDrift, maximumDrift)
	for _, o := range l.observations {
		f := &o.state.filters[r]
		// Pods that remain on the node since the previous reading keep their part of the shift.
		kept := 0.0
		if f.known > 0 {
			kept = min(o.retained/f.known, 1) * forget
			o.node.Predicted[r] = max(o.mean+kept*f.shift, 0)
		}
		f.shift *= kept
		f.variance = kept*kept*f.variance + max(o.unknown-kept*kept*f.known, 0)
		f.variance = min(f.variance, o.unknown)
		f.known = o.unknown
		residual := o.measured.Mean - o.mean - f.shift
		if o.time > 0 {
			s.drift.add(min(max(residual*residual-f.variance, 0)/o.time, 9*drift)/overlap, 1/overlap)
		}
		noise := drift * o.time * overlap
		gain := gain(f.variance, noise)
		f.shift += gain * residual
		f.variance *= 1 - gain
	}
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
