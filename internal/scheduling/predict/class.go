package predict

// classState has the estimates for the pods of a class, for one resource.
type classState struct {
	prior Prior
	// mean is the mean of the workloads; workload, pod and time are squared coefficients of variation.
	mean, workload, pod, time float64
	// correlation is the number of readings for which the usage of a pod remains the same. The variance of
	// the mean of readings is larger by this factor than the variance of the mean of independent readings.
	correlation float64
	// together is the correlation over time of the pods of a workload.
	together float64
	// isMeasured is set while the variances are from measured pods, isFixed if the mean stays the mean of the prior.
	isMeasured, isFixed bool
}

// settle sets the mean and, unless pods are measured, sets the variances to the variances of the prior times factors.
func (s *classState) settle(mean, spread, timeScale float64) {
	s.setMean(mean)
	s.correlation = priorCorrelation
	if s.isMeasured {
		return
	}
	s.workload = s.prior.Workload * s.prior.Workload * spread
	s.pod = s.prior.Pod * s.prior.Pod * spread
	s.time = s.prior.Time * s.prior.Time * timeScale
}

// setMean sets the mean of the workloads, unless it is fixed.
func (s *classState) setMean(mean float64) {
	s.mean = mean
	if s.isFixed {
		s.mean = s.prior.Mean
	}
}

// Pseudo-counts of the prior: with this number of workloads, pods, readings or blocks, the measured
// variance has the same weight as the variance of the prior.
const (
	priorWorkloads = 4
	priorPods      = 10
	priorReadings  = 20
	priorBlocks    = 5
	// priorCorrelation is the assumed number of readings for which the usage of a pod remains the same.
	priorCorrelation = 3
)

// moments are sums over the workloads of a class. Squares are multiples of the squared mean of the workload.
type moments struct {
	pods, inverse                                     float64
	long, longReadings, squares, blocks, blockSquares float64
	freedom, between                                  float64
	weight, squaredWeight, sum, excess                float64
}

// add adds the variation of a workload's pods.
func (m *moments) add(p *pool) {
	if p.pods == 0 || p.mean < negligible {
		return
	}
	scale := 1 / (p.mean * p.mean)
	m.pods += p.pods
	m.inverse += p.inverse
	m.long += p.long
	m.longReadings += p.longReadings
	m.squares += p.squares * scale
	m.blocks += p.blocks
	m.blockSquares += p.blockSquares * scale
	if p.present > 1 {
		m.freedom += p.present - 1
		m.between += p.between * scale
	}
}

// negligible is the ratio below which a workload is idle: its pods do not count for the variances of the class.
const negligible = 1e-6

// estimateVariances computes the variances over time and between the pods of a workload.
func (s *classState) estimateVariances(m *moments) {
	s.isMeasured = m.pods > 0
	if !s.isMeasured {
		return
	}
	priorTime, priorPod := s.prior.Time*s.prior.Time, s.prior.Pod*s.prior.Pod
	blockVariance := (m.blockSquares + priorBlocks*priorTime*priorCorrelation/blockSize) / (m.blocks + priorBlocks)
	// The squared differences of n readings from their own mean are too small by the variance of that
	// mean, which is about one block per pod: add it.
	s.time = (m.squares + m.long*blockSize*blockVariance + priorReadings*priorTime) / (m.longReadings + priorReadings)
	s.correlation = min(max(blockSize*blockVariance/s.time, 1), blockSize)
	noise := s.time * s.correlation * m.inverse / m.pods
	s.pod = (max(m.between-m.freedom*noise, 0) + priorPods*priorPod) / (m.freedom + priorPods)
}

// error returns the variance of the estimated mean of a workload, which decreases with the number of its
// pods and readings, as a multiple of the squared mean of the workload.
func (s *classState) error(p *pool) float64 {
	return (s.pod + s.time*s.correlation*p.inverse/p.pods*s.repeated(p.pods)) / p.pods
}

// repeated returns the average number of pods that show the same variation over time.
func (s *classState) repeated(pods float64) float64 { return 1 + max(pods-1, 0)*s.together }

// addMean adds the mean of a workload.
func (m *moments) addMean(p *pool, s *classState) {
	if p.pods == 0 {
		return
	}
	relative := 1.0
	if s.mean > 0 {
		relative = p.mean / s.mean
	}
	noise := s.error(p)
	weight := 1 / (s.workload + noise)
	m.weight += weight
	m.sum += weight * p.mean
	m.squaredWeight += weight * weight
	m.excess += weight * weight * ((relative-1)*(relative-1) - noise)
}

// estimateMeans computes the mean of the class and the variance between its workloads. fitted is the
// mean that was fitted to the load of nodes.
func (s *classState) estimateMeans(m *moments, fitted float64) {
	prior := priorWorkloads / s.workload
	s.setMean((m.sum + prior*fitted) / (m.weight + prior))
	priorSquared := prior * prior / priorWorkloads
	s.workload = max((m.excess+priorSquared*s.prior.Workload*s.prior.Workload)/(m.squaredWeight+priorSquared), minimumVariance)
}

// minimumVariance keeps precisions finite.
const minimumVariance = 1e-4

// ratio returns the expected ratio of a workload.
func (s *classState) ratio(p *pool, historyWeight float64, class int8) Ratio {
	q := Ratio{Mean: s.mean, Unknown: s.workload * s.mean * s.mean, class: class}
	time := s.time
	if p.pods > 0 && historyWeight > 0 {
		noise := s.error(p) * s.mean * s.mean / historyWeight
		gain := gain(q.Unknown, noise)
		q.Mean += gain * (p.mean - q.Mean)
		q.Unknown *= 1 - gain
		q.Pods = p.pods
		if p.mean >= negligible {
			alike := s.correlation * s.repeated(p.long)
			time = (p.squares/(p.mean*p.mean)/alike + priorReadings*s.time) / (p.longReadings/alike + priorReadings)
		}
	}
	q.Pod = s.pod * q.Mean * q.Mean
	q.Time = time * q.Mean * q.Mean
	return q
}

// estimateWorkloads computes the ratio of every workload for one resource.
func (l *Learner) estimateWorkloads(r int) {
	state := &l.resources[r]
	for _, w := range l.workloads {
		w.now[r] = pool{}
	}
	for _, p := range l.found {
		p.workload.now[r].add(&p.own[r])
	}
	var moments [classes]moments
	for _, w := range l.workloads {
		w.now[r].addPast(&w.past[r])
		moments[w.now[r].class].add(&w.now[r])
	}
	for c := range state.classes {
		state.classes[c].together = l.together()
		state.classes[c].estimateVariances(&moments[c])
	}
	for _, w := range l.workloads {
		moments[w.now[r].class].addMean(&w.now[r], &state.classes[w.now[r].class])
	}
	for c := range state.classes {
		if s := &state.classes[c]; s.isMeasured {
			s.estimateMeans(&moments[c], state.fit.mean[c])
		}
	}
	for _, w := range l.workloads {
		w.ratio[r] = state.classes[w.now[r].class].ratio(&w.now[r], l.options.HistoryWeight, w.now[r].class)
	}
}
