package predict

import (
	"hash/maphash"
	"math"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Model has the estimates of a Learner after a reading. It is immutable.
type Model struct {
	classes   [Resources][classes]classEstimate
	workloads map[resources.WorkloadKey]*[Resources]workloadEstimate
	nodes     map[string]*[Resources]Shift
	measured  bool
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
		workloads: make(map[resources.WorkloadKey]*[Resources]workloadEstimate, len(l.workloads)),
		nodes:     make(map[string]*[Resources]Shift, len(l.nodes)),
	}
	for r := range l.resources {
		m.classes[r] = l.resources[r].known
	}
	estimates := make([][Resources]workloadEstimate, 0, len(l.workloads))
	for key, w := range l.workloads {
		if w.estimate[CPU].pods > 0 || w.estimate[Memory].pods > 0 {
			estimates = append(estimates, w.estimate)
			m.workloads[key] = &estimates[len(estimates)-1]
		}
	}
	shifts := make([][Resources]Shift, 0, len(l.nodes))
	for name, state := range l.nodes {
		var shift [Resources]Shift
		for r := range shift {
			f := &state.filters[r]
			m.measured = m.measured || f.seconds > 0
			shift[r] = Shift{f.shift + state.own[r].Mean, f.known + state.own[r].Known}
		}
		shifts = append(shifts, shift)
		m.nodes[name] = &shifts[len(shifts)-1]
	}
	return m
}

// IsMeasured reports whether the load of a node or the usage of a pod was measured. Before, requests are all that is known.
func (m *Model) IsMeasured() bool { return m.measured || len(m.workloads) > 0 }

// Workloads returns the number of workloads whose usage is known.
func (m *Model) Workloads() int { return len(m.workloads) }

// Estimate returns the expected use of a pod of a workload with a request.
func (m *Model) Estimate(key resources.WorkloadKey, r int, request float64) Estimate {
	return m.estimate(m.workload(key), r, request)
}

// workload returns the estimates of a workload, nil if it is not known.
func (m *Model) workload(key resources.WorkloadKey) *[Resources]workloadEstimate {
	if key == (resources.WorkloadKey{}) {
		return nil
	}
	return m.workloads[key]
}

func (m *Model) estimate(workload *[Resources]workloadEstimate, r int, request float64) Estimate {
	if workload == nil {
		return estimateOf(&m.classes[r], nil, request)
	}
	return estimateOf(&m.classes[r], &workload[r], request)
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
func (m *Model) Expect(p *Declared, r int) Expected {
	return m.expectedUsage(p, m.workload(p.Workload), r)
}

func (m *Model) expectedUsage(p *Declared, workload *[Resources]workloadEstimate, r int) Expected {
	amount := p.Amounts[r].checked()
	q := m.estimate(workload, r, amount.Request)
	e := Expected{q.Mean, math.Sqrt(q.Time), math.Sqrt(q.Unknown), math.Sqrt(q.Pod), math.Inf(1)}
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
	// bits has the bit of each workload: most nodes have no pod of a workload, which one bit shows without a search.
	bits [maxBit/64 + 1]uint64
}

// WorkloadBit is a small hash of a workload.
type WorkloadBit uint8

const maxBit = math.MaxUint8

var bitSeed = maphash.MakeSeed()

// BitOf returns the bit of a workload.
func BitOf(key resources.WorkloadKey) WorkloadBit {
	return WorkloadBit(maphash.Comparable(bitSeed, key))
}

// Sum is the expected use of one resource by all pods of a node.
type Sum struct {
	// Mean includes Shift, the correction by the measured load of the node. Variance is the variance over
	// time plus the variance of the estimate.
	Mean, Shift, Variance float64
	// Limit is the sum of the limits, infinite if a pod has none.
	Limit float64
}

// Share is the share of one workload in the use of one resource on a node: the sum of Expected.Shared of its pods, on which the variance
// of a further pod of the workload depends.
type Share float64

// Node returns the expected use of the pods of a node.
func (m *Model) Node(name string, pods []Declared) NodeUse {
	workloads := min(len(pods), 16) // more are rare
	use := NodeUse{Workloads: make([]resources.WorkloadKey, 0, workloads), Shares: make([][Resources]Share, 0, workloads)}
	var own [Resources]float64
	for i := range pods {
		workload, share := m.workload(pods[i].Workload), use.share(pods[i].Workload)
		for r := range Resources {
			e := m.expectedUsage(&pods[i], workload, r)
			use.Sums[r].Mean += e.Mean
			use.Sums[r].Limit += e.Limit
			own[r] += e.Own * e.Own
			use.Sums[r].Variance += e.Deviation * e.Deviation
			share[r] += Share(e.Shared)
		}
	}
	shift := m.nodes[name]
	for r := range Resources {
		sum, unknown := &use.Sums[r], own[r]
		for i := range use.Shares {
			shared := float64(use.Shares[i][r])
			unknown += shared * shared
		}
		if shift != nil {
			expected := sum.Mean
			sum.Mean = max(expected+shift[r].Mean, 0)
			sum.Shift = sum.Mean - expected
			unknown -= shift[r].Known
		}
		sum.Variance = max(sum.Variance+unknown, 0)
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
	bit := BitOf(key)
	u.bits[bit/64] |= 1 << (bit % 64)
	u.Workloads, u.Shares = append(u.Workloads, key), append(u.Shares, [Resources]Share{})
	return &u.Shares[len(u.Shares)-1]
}

// Share returns the share of a workload with its bit, nil if it has no pod on the node.
func (u *NodeUse) Share(key resources.WorkloadKey, bit WorkloadBit) *[Resources]Share {
	if u.bits[bit/64]&(1<<(bit%64)) == 0 {
		return nil
	}
	if i := slices.Index(u.Workloads, key); i >= 0 {
		return &u.Shares[i]
	}
	return nil
}

// Peak returns the predicted peak of a resource of a node with one more pod, k deviations above the predicted mean.
// share is the share of the pod's workload on the node, nil if the workload has no pod there.
func (m *Model) Peak(sum *Sum, share *[Resources]Share, pod *Expected, r int, k float64) float64 {
	variance := sum.Variance + pod.Deviation*pod.Deviation + pod.Own*pod.Own + pod.Shared*pod.Shared
	if share != nil {
		variance += 2 * float64(share[r]) * pod.Shared
	}
	return min(sum.Mean+pod.Mean+k*math.Sqrt(variance), sum.Limit+pod.Limit)
}
