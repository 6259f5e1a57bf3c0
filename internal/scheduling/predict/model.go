package predict

import (
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Model has the estimates of a Learner after a reading. It is immutable.
type Model struct {
	classes   [Resources][classes]Ratio
	together  float64
	workloads map[resources.WorkloadKey]*[Resources]Ratio
	nodes     map[string]*[Resources]Shift
}

// Shift is the usage of the pods of a node minus the usage expected of their workloads.
type Shift struct {
	// Mean is the mean of the shift. Known is the variance by which the shift reduces the variance of the
	// expectation.
	Mean, Known float64
}

// NewModel returns the model before the first reading.
func NewModel() *Model { return NewLearner(Options{HistoryWeight: 1, HalfLife: 1}).model() }

// model returns the model of the current estimates.
func (l *Learner) model() *Model {
	m := &Model{
		together:  l.together(),
		workloads: make(map[resources.WorkloadKey]*[Resources]Ratio, len(l.workloads)),
		nodes:     make(map[string]*[Resources]Shift, len(l.nodes)),
	}
	for r := range l.resources {
		s := &l.resources[r]
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
	if l.options.Without&Blending != 0 {
		return m
	}
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

// Ratio returns the expected ratio of the pods of a workload, given the declared amount of one of them.
func (m *Model) Ratio(key resources.WorkloadKey, r int, amount Amount) Ratio {
	return m.ratio(m.workload(key), r, amount)
}

// workload returns the ratios of a workload, nil if it is not known.
func (m *Model) workload(key resources.WorkloadKey) *[Resources]Ratio {
	if key == (resources.WorkloadKey{}) {
		return nil
	}
	return m.workloads[key]
}

func (m *Model) ratio(workload *[Resources]Ratio, r int, amount Amount) Ratio {
	_, class := amount.base()
	if workload != nil && workload[r].Pods > 0 && int(workload[r].class) == class {
		return workload[r]
	}
	return m.classes[r][class]
}

// Expected is the expected use of a pod.
type Expected struct {
	// Mean over time, at most the limit.
	Mean float64
	// Deviation over time.
	Deviation float64
	// Shared is the deviation of the estimated mean of the workload, which all its pods have in common; Own
	// is the deviation of the pod from the mean of its workload.
	Shared, Own float64
	// Limit is infinite if the pod has none.
	Limit float64
}

// Expect returns the expected use of a pod.
func (m *Model) Expect(p *Declared, r int) Expected { return m.expect(p, m.workload(p.Workload), r) }

func (m *Model) expect(p *Declared, workload *[Resources]Ratio, r int) Expected {
	amount := p.Amounts[r].checked()
	base, _ := amount.base()
	q := m.ratio(workload, r, amount)
	e := Expected{base * q.Mean, base * math.Sqrt(q.Time), base * math.Sqrt(q.Unknown), base * math.Sqrt(q.Pod), math.Inf(1)}
	if amount.Limit > 0 {
		e.Limit = max(amount.Limit, amount.Request)
		e.Mean = min(e.Mean, e.Limit)
	}
	return e
}

// NodeUse is the expected use of the pods of a node, without the pending pod.
type NodeUse struct {
	Sums [Resources]Sum
	// Workloads are the workloads of the pods. Shares has the share of each workload, in the same order.
	Workloads []resources.WorkloadKey
	Shares    [][Resources]Share
}

// Sum is the expected use of one resource by all pods of a node.
type Sum struct {
	// Mean includes Shift, the correction by the measured load of the node. Variance is the variance over
	// time plus the variance of the estimate.
	Mean, Shift, Variance float64
	// Limit is the sum of the limits, infinite if a pod has none.
	Limit float64
}

// Share is the share of one workload in the use of one resource on a node. The deviation of a further pod of
// the workload depends on it.
type Share struct {
	// Deviation and Shared are the sums over the pods.
	Deviation, Shared float64
	squares           float64
}

// Node returns the expected use of the pods of a node.
func (m *Model) Node(name string, pods []Declared) NodeUse {
	workloads := min(len(pods), 16) // more are rare
	use := NodeUse{Workloads: make([]resources.WorkloadKey, 0, workloads), Shares: make([][Resources]Share, 0, workloads)}
	var own [Resources]float64
	for i := range pods {
		workload, share := m.workload(pods[i].Workload), use.share(pods[i].Workload)
		for r := range Resources {
			e := m.expect(&pods[i], workload, r)
			use.Sums[r].Mean += e.Mean
			use.Sums[r].Limit += e.Limit
			own[r] += e.Own * e.Own
			share[r].Deviation += e.Deviation
			share[r].Shared += e.Shared
			share[r].squares += e.Deviation * e.Deviation
		}
	}
	shift := m.nodes[name]
	for r := range Resources {
		sum, shared := &use.Sums[r], 0.0
		for i := range use.Shares {
			share := &use.Shares[i][r]
			sum.Variance += m.together*share.Deviation*share.Deviation + (1-m.together)*share.squares
			shared += share.Shared * share.Shared
		}
		unknown := shared + own[r]
		if shift != nil {
			expected := sum.Mean
			sum.Mean = max(expected+shift[r].Mean, 0)
			sum.Shift = sum.Mean - expected
			unknown = max(unknown-shift[r].Known, 0)
		}
		sum.Variance += unknown
	}
	return use
}

// share returns the share of a workload, and adds it if it is missing.
func (u *NodeUse) share(key resources.WorkloadKey) *[Resources]Share {
	for i := range u.Workloads {
		if u.Workloads[i] == key {
			return &u.Shares[i]
		}
	}
	u.Workloads, u.Shares = append(u.Workloads, key), append(u.Shares, [Resources]Share{})
	return &u.Shares[len(u.Shares)-1]
}

// Share returns the share of a workload, nil if it has no pod on the node.
func (u *NodeUse) Share(key resources.WorkloadKey) *[Resources]Share {
	if i := slices.Index(u.Workloads, key); i >= 0 {
		return &u.Shares[i]
	}
	return nil
}

// Peak returns the predicted peak of a resource of a node with one more pod, k deviations above the mean.
// share is the share of the pod's workload on the node, nil if the workload has no pod there.
func (m *Model) Peak(sum *Sum, share *[Resources]Share, pod *Expected, r int, k float64) float64 {
	variance := sum.Variance + pod.Deviation*pod.Deviation + pod.Own*pod.Own + pod.Shared*pod.Shared
	if share != nil {
		variance += 2 * (m.together*share[r].Deviation*pod.Deviation + share[r].Shared*pod.Shared)
	}
	return min(sum.Mean+pod.Mean+k*math.Sqrt(variance), sum.Limit+pod.Limit)
}
