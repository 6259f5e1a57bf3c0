package predict

import "math"

// classEstimate is what is known of the pods of a class, for one resource.
type classEstimate struct {
	class int8
	// mean is the mean of the workloads, as a multiple of the request in class requested.
	mean float64
	// workload is the variance between workloads, as a multiple of the squared unit.
	workload float64
	// pod is the variance between the pods of a workload, and time the variance of a pod over time, in the unit of square.
	pod, time float64
}

// unit returns the amount that a pod is expected to use if nothing but its request is known.
func (s *classEstimate) unit(request float64) float64 {
	if s.class == unrequested {
		return s.mean
	}
	return s.mean * max(request, 1)
}

// leastRelative is the lowest usage of a pod, as a fraction of its unit, that lowers its variances.
const leastRelative = 0.2

// square returns the unit of the variances of a pod. In usage of real machines the variance grows with the mean, not with its
// square: a pod that uses four times as much deviates by twice as much.
func (s *classEstimate) square(unit, mean float64) float64 {
	return max(unit*max(mean, leastRelative*unit), tiny)
}

// Estimate is the expected use of a pod, in millicores or bytes.
type Estimate struct {
	// Mean is the mean of the pods of the workload, Unknown the variance of its estimate.
	Mean, Unknown float64
	// Pod is the variance between the pods of the workload, Time the variance of a pod over time.
	Pod, Time float64
	// Pods is the number of pods behind the estimate; 0 if only the request is known.
	Pods   float64
	class  int8
	square float64
}

// estimateOf returns the expected use of a pod with a request. w is nil if nothing is known of its workload.
func estimateOf(known *[classes]classEstimate, w *workloadEstimate, request float64) Estimate {
	isKnown := w != nil && w.pods > 0
	class := &known[requested]
	if request <= 0 || isKnown && w.class == unrequested {
		class = &known[unrequested]
	}
	unit := class.unit(request)
	if !isKnown {
		square := unit * unit
		return Estimate{
			Mean:    unit,
			Unknown: class.workload * square,
			Pod:     class.pod * square,
			Time:    class.time * square,
			class:   class.class,
		}
	}
	mean := unit + w.gain*(w.mean-unit)
	return Estimate{
		Mean:    mean,
		Unknown: w.unknown,
		Pod:     w.pod,
		Time:    w.time,
		Pods:    w.pods,
		class:   class.class,
		square:  w.square,
	}
}

// classState estimates what is known of a class.
type classState struct {
	*classEstimate
	prior Prior
	// scales is the variance over time.
	scales scales
}

// usePrior sets the mean and the variances of the prior.
func (s *classState) usePrior() {
	s.mean = s.prior.Mean
	s.workload = s.prior.Workload * s.prior.Workload
	s.pod = s.prior.Pod * s.prior.Pod
	s.usePriorScales()
}

// usePriorScales computes the variances over time.
func (s *classState) usePriorScales() {
	s.scales.usePrior(s.prior.Time * s.prior.Time)
	s.time = s.scales.after[0]
}

const (
	// priorWorkloads and priorPods are the weights of the variances of the prior: with this number of workloads or pods, the
	// measured variance has the same weight.
	priorWorkloads = 4
	priorPods      = 5
	// leastMean is the lowest mean of a class in relation to the mean of its prior.
	leastMean = 1e-4
	// minimumVariance keeps precisions finite, maximumVariance bounds what a few workloads or pods can do to the others.
	minimumVariance = 1e-4
	maximumVariance = 9
	// outlier is the number of deviations above which the influence of a workload or node stays constant (Huber's function).
	outlier = 2.5
)

// moments are sums over the workloads of a class.
type moments struct {
	pods, freedom, between       float64
	weight, sum, squared, excess float64
}

// add adds the variation between the pods of a workload.
func (m *moments) add(p *pool, s *classState) {
	m.pods += p.pods
	if p.present < 2 {
		return
	}
	freedom := p.present - 1
	found := p.between/s.square(s.unit(p.base), p.unweightedMean) - freedom*p.presentUncertain/p.present
	// As each workload has few pods, the mean over many is robust if each is bounded.
	m.freedom += freedom
	m.between += min(found, freedom*extreme*s.pod)
}

// relative returns the mean of a workload as a multiple of what its class expects.
func (s *classState) relative(p *pool) float64 {
	if unit := s.unit(p.base); unit > 0 {
		return p.mean / unit
	}
	return 1
}

// addMean adds the mean of a workload.
func (m *moments) addMean(p *pool, s *classState) {
	relative := s.relative(p)
	noise := max(relative, leastRelative) / p.precision
	variance := s.workload + noise
	bound := outlier * math.Sqrt(variance)
	difference := min(max(relative-1, -bound), bound)
	weight := 1 / variance
	m.weight += weight
	m.sum += weight * (1 + difference)
	m.squared += weight * weight
	m.excess += weight * weight * (difference*difference - noise)
}

// estimate computes the mean of the class and the variance between its workloads.
func (s *classState) estimate(m *moments) {
	s.pod = min((max(m.between, 0)+priorPods*s.prior.Pod*s.prior.Pod)/(m.freedom+priorPods), maximumVariance)
	prior := priorWorkloads / s.workload
	squared := prior * prior / priorWorkloads
	workload := (m.excess + squared*s.prior.Workload*s.prior.Workload) / (m.squared + squared)
	s.mean = max((m.sum*s.mean+prior*s.prior.Mean)/(m.weight+prior), leastMean*s.prior.Mean)
	s.workload = min(max(workload, minimumVariance), maximumVariance)
}

// workloadEstimate is what is known of a workload.
type workloadEstimate struct {
	// mean is the mean of its pods, and gain how much of the difference between mean and unit is believed, in [0, 1].
	mean, gain float64
	// unknown is the variance of the estimate, pod and time are the variances between pods and over time, in the unit square.
	unknown, pod, time, square float64
	// volatility is the variance over time in relation to the variance of the class, pods the number of pods behind the estimate, and
	// class the class of the workload.
	volatility, pods float64
	class            int8
}

// estimateWorkload computes the estimate of a workload.
func (s *classState) estimateWorkload(w *workloadState, r int, historyWeight float64) workloadEstimate {
	p := &w.now[r]
	e := workloadEstimate{volatility: min(w.volatility[r].value(0.1, 10), 10), class: p.class}
	unit := s.unit(p.base)
	mean := unit
	e.unknown = s.workload * unit * unit
	if p.pods > 0 && historyWeight > 0 {
		noise := s.square(unit, p.mean) / p.precision / historyWeight
		e.mean, e.pods, e.gain = p.mean, p.pods, gain(e.unknown, noise)
		e.unknown *= 1 - e.gain
		mean += e.gain * (p.mean - unit)
	}
	e.square = s.square(unit, mean)
	e.pod = s.pod * e.square
	e.time = s.time * e.volatility * e.square
	return e
}

// largestRatio is the multiple of its request above which the usage of a workload says nothing about other workloads with
// requests: the workload counts as one without a request.
const largestRatio = 10

// pool adds up the pods of the workloads, for one resource.
func (l *Learner) pool(r int) {
	state := &l.resources[r]
	for _, w := range l.workloads {
		w.now[r] = pool{class: classOf(w, r)}
	}
	for _, p := range l.found {
		w, own := p.workload, &p.own[r]
		if own.seconds == 0 {
			continue
		}
		class := &state.classes[w.now[r].class]
		uncertain := class.scales.varianceOver(own.seconds) * w.volatility[r].value(0.1, 10)
		if counted := l.counted(p); counted > 0 {
			w.now[r].add(counted, own.mean, p.base[r], uncertain, class.pod)
		}
		w.now[r].addPresent(own.mean, uncertain)
	}
	for _, w := range l.workloads {
		if past := &w.past[r]; past.pods >= 0.01 {
			class := &state.classes[w.now[r].class]
			w.now[r].add(past.pods, past.mean, past.base, class.scales.varianceOver(past.seconds), class.pod)
		}
	}
}

// classOf returns the class of a workload by its request and the usage in the previous reading.
func classOf(w *workloadState, r int) int8 {
	request, mean := w.request[r], w.now[r].mean
	if w.now[r].pods == 0 {
		mean = w.past[r].mean
	}
	if request > 0 && mean <= largestRatio*request {
		return requested
	}
	return unrequested
}

// estimateWorkloads estimates the classes and workloads for one resource.
func (l *Learner) estimateWorkloads(r int) {
	state := &l.resources[r]
	l.pool(r)
	var moments [classes]moments
	for _, w := range l.workloads {
		if p := &w.now[r]; p.pods > 0 {
			moments[p.class].add(p, &state.classes[p.class])
			moments[p.class].addMean(p, &state.classes[p.class])
		}
	}
	for c := range state.classes {
		s := &state.classes[c]
		if moments[c].pods == 0 {
			s.usePrior()
			continue
		}
		s.estimate(&moments[c])
		s.usePriorScales()
	}
	for _, w := range l.workloads {
		w.estimate[r] = state.classes[w.now[r].class].estimateWorkload(w, r, l.options.HistoryWeight)
	}
}
