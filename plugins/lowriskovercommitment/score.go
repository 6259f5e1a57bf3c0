package lowriskovercommitment

import (
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// model computes the risk of nodes.
type model struct {
	cpu, memory resourceModel
	// countRecent is set if the expected use of pods that arrived after the measurement is added to the load.
	countRecent bool
}

// resourceModel computes the risk of one resource of nodes.
type resourceModel struct {
	resources.Resource
	risk.Model
	newResource func(allocatable, machine float64) risk.Resource
	utilization func(load.Node) (load.Utilization, bool)
}

// score returns the score of a node with the pending pod: 100 without risk, 0 with risk 1.
func (m *model) score(node *nodeRisk, pod *podAmounts) int64 { return risk.Score(m.risk(node, pod)) }

// risk returns the risk of a node with the pending pod, which is the risk of its riskier resource.
func (m *model) risk(node *nodeRisk, pod *podAmounts) float64 {
	return max(m.cpu.risk(&node.cpu, &pod.cpu), m.memory.risk(&node.memory, &pod.memory))
}

// risk returns the risk of one resource of a node with the pending pod.
func (m *resourceModel) risk(node *resourceRisk, pod *podAmount) float64 {
	r := node.Resource
	r.PodRequest, r.PodLimit, r.PodUnbounded = pod.request, pod.limit, pod.isUnbounded
	switch {
	case !node.isMeasured:
		return r.LimitRisk()
	case node.dependsOnPod:
		return m.Combine(r.LimitRisk(), r.LoadRisk(node.load, m.Window))
	}
	return m.Combine(r.LimitRisk(), node.loadRisk)
}

// podAmounts are the amounts of a pending pod.
type podAmounts struct{ cpu, memory podAmount }

// podAmount is the amount of one resource. The limit is at least the request.
type podAmount struct {
	request, limit float64
	isUnbounded    bool
}

func amountsOf(pod *resources.Pod) podAmounts {
	of := func(r resources.Resource) podAmount {
		a := pod.Get(r)
		return podAmount{float64(a.Request), float64(max(a.Limit, a.Request)), a.Unbounded}
	}
	return podAmounts{of(resources.CPUResource), of(resources.MemoryResource)}
}

// nodeRisk is the part of the risk of a node that does not depend on the pending pod. Fitting the
// distributions takes most of the time of a score.
type nodeRisk struct{ cpu, memory resourceRisk }

// resourceRisk is the part of the risk of one resource that does not depend on the pending pod.
type resourceRisk struct {
	risk.Resource
	load risk.Load
	// loadRisk is the load risk, unless it depends on the pending pod.
	loadRisk float64
	// isMeasured is set if the load is known, and dependsOnPod if the load risk depends on the pending pod.
	isMeasured, dependsOnPod bool
}

// node computes the risk of a node without a pending pod. snapshot may be nil.
func (m *model) node(sums *cache.NodeSums, snapshot *load.Snapshot) nodeRisk {
	var recentCPU, recentMemory float64
	if m.countRecent && snapshot != nil {
		recentCPU, recentMemory = unmeasured(sums, snapshot.Reading())
	}
	return nodeRisk{m.cpu.node(sums, snapshot, recentCPU), m.memory.node(sums, snapshot, recentMemory)}
}

func (m *resourceModel) node(sums *cache.NodeSums, snapshot *load.Snapshot, recent float64) resourceRisk {
	node, sum := sums.Node(), sums.Get(m.Resource)
	r := resourceRisk{Resource: m.newResource(float64(m.AllocatableOf(node)), float64(m.Amount(node.Status.Capacity[m.Name()])))}
	r.AddPod(float64(sum.Request), float64(sum.FlooredLimit), sum.Unbounded > 0)
	r.Recent = recent
	measured, _ := snapshot.Node(node.Name)
	utilization, known := m.utilization(measured)
	r.load, r.isMeasured = risk.Load(utilization), known && utilization.Valid()
	r.dependsOnPod = sum.Request == 0 // the threshold is then the request of the pending pod
	if r.isMeasured && !r.dependsOnPod {
		r.loadRisk = r.LoadRisk(r.load, m.Window)
	}
	return r
}

// unmeasured returns the expected use of pods that a reading of load does not include, in millicores and bytes: their requests,
// or kube-scheduler's default for containers without requests. Load is an average over a window: for a
// pod that arrived during the window, only the missing fraction counts.
func unmeasured(sums *cache.NodeSums, reading load.Reading) (cpu, memory float64) {
	sums.Pods(func(arrival resources.Arrival, podCPU, podMemory int64) {
		if fraction := arrival.MissingFraction(reading.Time, reading.Window); fraction > 0 {
			cpu += fraction * float64(podCPU)
			memory += fraction * float64(podMemory)
		}
	})
	return cpu, memory
}
