package lowriskovercommitment

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// nodeResult is the part of a node's evaluation that does not depend on the pending pod. It stays
// valid while the pods of the node, its resources and its load are unchanged. Fitting the
// distributions takes most of the time of a score, and only one node changes from one pod to the next.
type nodeResult struct {
	// load and node identify, with the sums that the result is stored in, the state it is valid for.
	load *load.Snapshot
	node *v1.Node

	cpu, memory resourceResult
}

// resourceResult is the part of one resource's evaluation that does not depend on the pending pod.
type resourceResult struct {
	// resource lacks the amounts of the pending pod.
	resource risk.Resource
	// loadRisk is the load risk of the node, unless it depends on the pending pod.
	loadRisk float64
	// isMeasured is set if the load is known.
	isMeasured bool
	// dependsOnPod is set if the load risk depends on the pending pod: no pod on the node has a request.
	dependsOnPod bool
}

// evaluate computes the result of a node.
func (pl *plugin) evaluate(node fwk.NodeInfo, sums *noderes.Sums, snapshot *load.Snapshot) *nodeResult {
	var recent amounts
	if pl.countRecent && snapshot != nil {
		recent = unmeasured(node, snapshot.Reading())
	}
	return &nodeResult{
		load: snapshot, node: node.Node(),
		cpu:    pl.cpu.evaluate(node, sums, snapshot, recent.cpu),
		memory: pl.memory.evaluate(node, sums, snapshot, recent.memory),
	}
}

// evaluate computes the result of one resource of a node.
func (r *resourceConfig) evaluate(node fwk.NodeInfo, sums *noderes.Sums, snapshot *load.Snapshot, recent float64) resourceResult {
	sum := sums.Get(r.Resource)
	result := resourceResult{
		resource:     r.newResource(float64(r.Allocatable(node)), float64(r.Capacity(node))),
		dependsOnPod: sum.Request == 0,
	}
	result.resource.AddPod(float64(sum.Request), float64(sum.FlooredLimit), sum.Unbounded > 0)
	result.resource.Recent = recent
	measured, known := r.measured(snapshot, node)
	result.isMeasured = known
	if known && !result.dependsOnPod {
		result.loadRisk = result.resource.LoadRisk(measured, r.model.Window)
	}
	return result
}

// risk returns the risk of a node with the pending pod: that of its riskier resource.
func (pl *plugin) risk(result *nodeResult, node fwk.NodeInfo, c *cycleData) float64 {
	return max(pl.cpu.risk(&result.cpu, node, c), pl.memory.risk(&result.memory, node, c))
}

// risk returns the risk of one resource of a node with the pending pod.
func (r *resourceConfig) risk(result *resourceResult, node fwk.NodeInfo, c *cycleData) float64 {
	resource, pod := result.resource, c.pending.Get(r.Resource)
	resource.PodRequest, resource.PodLimit = float64(pod.Request), float64(max(pod.Limit, pod.Request))
	resource.PodUnbounded = pod.Unbounded
	switch {
	case !result.isMeasured:
		return resource.LimitRisk()
	case !result.dependsOnPod:
		return r.model.Combine(resource.LimitRisk(), result.loadRisk)
	}
	measured, known := r.measured(c.load, node)
	return r.model.Risk(resource, measured, known)
}
