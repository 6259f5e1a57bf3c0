package replay

import (
	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// maxRisks is how often in a run the risk of all nodes is worked out, at most: an
// integral for each node and resource, which takes as long as scoring a pod.
const maxRisks = 60

// risks are the risk of the nodes with pods over time.
type risks struct {
	every          int64
	means, highest []float64
}

// risksDue reports whether risks are to be worked out at a second.
func (c *course) risksDue(second int64) bool {
	return c != nil && second >= 0 && second%c.risks.every == 0
}

// add takes in the risks of the nodes of a run as it is.
func (s *risks) add(r *run) {
	var sum, highest, nodes float64
	for i := range r.nodes {
		n := &r.nodes[i]
		if !n.up || len(n.pods) == 0 {
			continue
		}
		value := r.riskOf(n)
		sum, highest, nodes = sum+value, max(highest, value), nodes+1
	}
	s.means, s.highest = append(s.means, part(sum, nodes)), append(s.highest, highest)
}

// riskOf returns the risk of a node: that of its riskier resource.
func (r *run) riskOf(n *node) float64 {
	cpu := risk.Resource{Capacity: n.has.CPU, Machine: n.machineCPU, Idle: risk.IdleCPU}
	memory := risk.Resource{Capacity: n.has.Memory, Machine: n.has.MachineMemory, Idle: risk.IdleMemory}
	for _, number := range n.pods {
		p := &r.Pods[number].Wants
		add(&cpu, p.CPURequest, p.CPULimit)
		add(&memory, p.MemoryRequest, p.MemoryLimit)
	}
	measured := r.load.newest.Nodes[n.name]
	return max(combined(cpu, measured.CPU, measured.HasCPU), combined(memory, measured.Memory, measured.HasMemory))
}

// add adds what a pod asks for to a resource of its node. A limit of 0 is none.
func add(to *risk.Resource, request, limit float64) {
	to.Requests += request
	to.Limits += max(limit, request)
	to.Unbounded = to.Unbounded || limit == 0
}

// combined returns the risk of a resource: of limits alone while its load is not
// known.
func combined(of risk.Resource, measured load.Utilization, known bool) float64 {
	if !known || !measured.Valid() {
		return of.LimitRisk()
	}
	return risk.Combine(of.LimitRisk(), of.LoadRisk(measured, float64(config.DefaultSmoothingWindowSize)), config.DefaultRiskLimitWeight)
}
