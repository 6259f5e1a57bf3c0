package replay

import "github.com/plimsoll-k8s/plimsoll/internal/algo/risk"

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
	cpu, memory := risk.NewCPU(n.has.CPU, n.machineCPU), risk.NewMemory(n.has.Memory, n.has.MachineMemory)
	for _, number := range n.pods {
		p := &r.Pods[number].Wants
		cpu.AddPod(p.CPURequest, p.CPULimit, p.CPULimit == 0)
		memory.AddPod(p.MemoryRequest, p.MemoryLimit, p.MemoryLimit == 0)
	}
	measured := r.load.newest.Nodes[n.name]
	return max(risk.DefaultModel.Risk(cpu, risk.Load(measured.CPU), measured.HasCPU), risk.DefaultModel.Risk(memory, risk.Load(measured.Memory), measured.HasMemory))
}
