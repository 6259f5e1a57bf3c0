package predict

import "math"

// Model is what a Learner knows after a reading. It is immutable.
type Model struct {
	classes   [Resources][classes]Ratio
	together  [Resources]float64
	workloads map[Key]*[Resources]Ratio
	nodes     map[string]*[Resources]Shift
}

// Shift is what the pods of a node use more than is expected of their workloads.
type Shift struct {
	// Mean of the shift. Known is the variance that the expectation loses by it.
	Mean, Known float64
}

// NewModel returns the model before the first reading.
func NewModel() *Model { return NewLearner(Options{HistoryWeight: 1, HalfLife: 1}).model() }

// model returns what has been learned.
func (l *Learner) model() *Model {
	m := &Model{
		workloads: make(map[Key]*[Resources]Ratio, len(l.workloads)),
		nodes:     make(map[string]*[Resources]Shift, len(l.nodes)),
	}
	for r := range l.resources {
		s := &l.resources[r]
		m.together[r] = l.resources[CPU].together.value(0, 1)
		for c := range s.classes {
			m.classes[r][c] = s.classes[c].ratio(&pool{}, 0, int8(c))
		}
	}
	ratios := make([][Resources]Ratio, 0, len(l.workloads))
	for key, w := range l.workloads {
		if w.ratio[CPU].Pods > 0 || w.ratio[Memory].Pods > 0 {
			ratios = append(ratios, w.ratio)
			m.workloads[key] = &ratios[len(ratios)-1]
		}
	}
	shifts := make([][Resources]Shift, 0, len(l.nodes))
	for name, state := range l.nodes {
		var shift [Resources]Shift
		for r := range shift {
			f := &state.filters[r]
			shift[r] = Shift{f.shift + state.own[r].Mean, max(f.known-f.variance, 0) + state.own[r].Known}
		}
		shifts = append(shifts, shift)
		m.nodes[name] = &shifts[len(shifts)-1]
	}
	return m
}

// Workloads returns the number of workloads whose usage is known.
func (m *Model) Workloads() int { return len(m.workloads) }

// Ratio returns what is expected of the pods of a workload, given what one of them declares.
func (m *Model) Ratio(key Key, r int, amount Amount) Ratio {
	_, class := amount.base()
	if key != (Key{}) {
		if w, ok := m.workloads[key]; ok && w[r].Pods > 0 && int(w[r].class) == class {
			return w[r]
		}
	}
	return m.classes[r][class]
}

// Expected is the expected use of a pod.
type Expected struct {
	// Mean over time, at most the limit.
	Mean float64
	// Deviation over time.
	Deviation float64
	// Shared is the deviation of the workload's mean, which all its pods have in common; Own is that of
	// the pod.
	Shared, Own float64
	// Limit is infinite if the pod has none.
	Limit float64
}

// Expect returns the expected use of a pod.
func (m *Model) Expect(p *Pod, r int) Expected {
	amount := p.Amounts[r].checked()
	base, _ := amount.base()
	q := m.Ratio(p.Workload, r, amount)
	e := Expected{base * q.Mean, base * math.Sqrt(q.Time), base * math.Sqrt(q.Unknown), base * math.Sqrt(q.Pod), math.Inf(1)}
	if amount.Limit > 0 {
		e.Limit = max(amount.Limit, amount.Request)
		e.Mean = min(e.Mean, e.Limit)
	}
	return e
}

// NodeUse is the expected use of the pods of a node, without the pending pod.
type NodeUse struct {
	// Mean includes the shift. Variance is that of the sum over time and of what is not known.
	Mean, Variance float64
	// Limit is the sum of the limits, infinite if a pod has none.
	Limit float64
	// workloads are the sums per workload, which the deviation of a further pod depends on.
	Workloads []WorkloadUse
}

// WorkloadUse is the use of the pods of one workload on a node.
type WorkloadUse struct {
	Key Key
	// Deviation and Shared are the sums over the pods.
	Deviation, Shared float64
	squares           float64
}

// Node returns the expected use of the pods of a node.
func (m *Model) Node(name string, pods []Pod, r int) NodeUse {
	var use NodeUse
	var own float64
	for i := range pods {
		e := m.Expect(&pods[i], r)
		use.Mean += e.Mean
		use.Limit += e.Limit
		own += e.Own * e.Own
		w := use.workload(pods[i].Workload)
		w.Deviation += e.Deviation
		w.Shared += e.Shared
		w.squares += e.Deviation * e.Deviation
	}
	shared := 0.0
	for i := range use.Workloads {
		w := &use.Workloads[i]
		use.Variance += m.together[r]*w.Deviation*w.Deviation + (1-m.together[r])*w.squares
		shared += w.Shared * w.Shared
	}
	unknown := shared + own
	if shift, ok := m.nodes[name]; ok {
		use.Mean = max(use.Mean+shift[r].Mean, 0)
		unknown = max(unknown-shift[r].Known, 0)
	}
	use.Variance += unknown
	return use
}

// workload returns the sums of a workload, which it adds.
func (u *NodeUse) workload(key Key) *WorkloadUse {
	for i := range u.Workloads {
		if u.Workloads[i].Key == key {
			return &u.Workloads[i]
		}
	}
	u.Workloads = append(u.Workloads, WorkloadUse{Key: key})
	return &u.Workloads[len(u.Workloads)-1]
}

// Peak returns the predicted peak of a node with one more pod, k deviations above the mean.
func (m *Model) Peak(use *NodeUse, pod *Expected, key Key, r int, k float64) float64 {
	variance := use.Variance + pod.Deviation*pod.Deviation + pod.Own*pod.Own + pod.Shared*pod.Shared
	for i := range use.Workloads {
		if w := &use.Workloads[i]; w.Key == key {
			variance += 2 * (m.together[r]*w.Deviation*pod.Deviation + w.Shared*pod.Shared)
			break
		}
	}
	return min(use.Mean+pod.Mean+k*math.Sqrt(variance), use.Limit+pod.Limit)
}
