package lowriskovercommitment

import (
	"math"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// prepare evaluates all nodes for a snapshot of load that Score does not use yet. It is called by the
// goroutine that reads load.
func (pl *plugin) prepare(snapshot *load.Snapshot) {
	pl.prepared.Prepare(snapshot, func(sums *noderes.Sums, values []uint64) bool {
		result := pl.evaluate(sums.Node(), sums, snapshot)
		return result.pack(values)
	})
}

// The packed values of a node: five values of its CPU and five of its memory.
const (
	packedCPU = 0
	packedMem = packedCPU + packedResource

	packedResource = 5

	packedLength = packedMem + packedResource
)

type packedValues [packedLength]uint64

// The flags of a packed resource.
const (
	flagUnbounded = 1 << iota
	flagMeasured
)

// pack packs the result, unless the load risk depends on the pending pod.
func (n *nodeResult) pack(values []uint64) bool {
	if n.cpu.dependsOnPod || n.memory.dependsOnPod {
		return false
	}
	n.cpu.pack(values[packedCPU:])
	n.memory.pack(values[packedMem:])
	return true
}

func (r *resourceResult) pack(values []uint64) {
	values[0], values[1] = math.Float64bits(r.requests), math.Float64bits(r.limits)
	values[2], values[3] = math.Float64bits(r.capacity), math.Float64bits(r.loadRisk)
	values[4] = 0
	if r.isUnbounded {
		values[4] |= flagUnbounded
	}
	if r.isMeasured {
		values[4] |= flagMeasured
	}
}

func unpack(values []uint64) resourceResult {
	return resourceResult{
		requests: math.Float64frombits(values[0]), limits: math.Float64frombits(values[1]),
		capacity: math.Float64frombits(values[2]), loadRisk: math.Float64frombits(values[3]),
		isUnbounded: values[4]&flagUnbounded != 0, isMeasured: values[4]&flagMeasured != 0,
	}
}

// packedRisk returns the risk of a node with the pending pod from packed values.
func (pl *plugin) packedRisk(values *packedValues, c *cycleData) float64 {
	cpu, memory := unpack(values[packedCPU:]), unpack(values[packedMem:])
	return max(pl.cpu.risk(&cpu, nil, &c.cpu), pl.memory.risk(&memory, nil, &c.memory))
}
