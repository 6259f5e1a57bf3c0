package lowriskovercommitment

import (
	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// nodeResult is the part of a node's evaluation that does not depend on the pending pod. It stays
// valid while the pods of the node, its resources and its load are unchanged. Fitting the
// distributions takes most of the time of a score, and only one node changes from one pod to the next.
//
// What every score reads is in the first two cache lines: 112 of 128 bytes.
type nodeResult struct {
	// load and node identify, with the sums that the result is stored in, the state it is valid for.
	load *load.Snapshot
	node *v1.Node

	cpu, memory resourceResult

	// measuredCPU and measuredMemory are the load of a node without requests, whose load risk depends on
	// the pending pod.
	measuredCPU, measuredMemory *measuredResource
}

// resourceResult is the part of one resource's evaluation that does not depend on the pending pod.
type resourceResult struct {
	// requests, limits and capacity are those of risk.Resource.
	requests, limits, capacity float64
	// loadRisk is the load risk of the node, unless it depends on the pending pod.
	loadRisk float64
	// isUnbounded is set if a pod on the node has a container without a limit.
	isUnbounded bool
	// isMeasured is set if the load is known, and dependsOnPod if the load risk depends on the pending pod.
	isMeasured, dependsOnPod bool
}

// measuredResource is a resource with its load.
type measuredResource struct {
	resource risk.Resource
	load     risk.Load
}

// evaluate computes the result of a node. It reads no NodeInfo, so that any goroutine may call it.
func (pl *plugin) evaluate(node *v1.Node, sums *noderes.Sums, snapshot *load.Snapshot) nodeResult {
	var recent amounts
	if pl.countRecent && snapshot != nil {
		recent = unmeasured(sums, snapshot.Reading())
	}
	result := nodeResult{load: snapshot, node: node}
	result.cpu, result.measuredCPU = pl.cpu.evaluate(node, sums, snapshot, recent.cpu)
	result.memory, result.measuredMemory = pl.memory.evaluate(node, sums, snapshot, recent.memory)
	return result
}

// evaluate computes the result of one resource of a node. The load is returned only if the load risk
// depends on the pending pod.
func (r *resourceConfig) evaluate(
	node *v1.Node, sums *noderes.Sums, snapshot *load.Snapshot, recent float64,
) (resourceResult, *measuredResource) {
	sum := sums.Get(r.Resource)
	resource := r.newResource(float64(r.AllocatableOf(node)), float64(r.Amount(node.Status.Capacity[r.Name()])))
	resource.AddPod(float64(sum.Request), float64(sum.FlooredLimit), sum.Unbounded > 0)
	resource.Recent = recent
	result := resourceResult{
		requests: resource.Requests, limits: resource.Limits, capacity: resource.Capacity, isUnbounded: resource.Unbounded,
	}
	measured, known := r.measured(snapshot, node.Name)
	result.isMeasured = known
	switch {
	case !known:
	case sum.Request == 0: // the threshold is the request of the pending pod
		result.dependsOnPod = true
		return result, &measuredResource{resource, measured}
	default:
		result.loadRisk = resource.LoadRisk(measured, r.model.Window)
	}
	return result, nil
}

// risk returns the risk of a node with the pending pod: that of its riskier resource.
func (pl *plugin) risk(result *nodeResult, c *cycleData) float64 {
	return max(
		pl.cpu.risk(&result.cpu, result.measuredCPU, &c.cpu),
		pl.memory.risk(&result.memory, result.measuredMemory, &c.memory))
}

// risk returns the risk of one resource of a node with the pending pod.
func (r *resourceConfig) risk(result *resourceResult, measured *measuredResource, pod *podAmounts) float64 {
	if result.dependsOnPod {
		resource := measured.resource
		resource.PodRequest, resource.PodLimit, resource.PodUnbounded = pod.request, pod.limit, pod.isUnbounded
		return r.model.Risk(resource, measured.load, true)
	}
	limitRisk := risk.LimitRisk(
		result.requests+pod.request, result.limits+pod.limit, result.capacity, result.isUnbounded || pod.isUnbounded)
	if !result.isMeasured {
		return limitRisk
	}
	return r.model.Combine(limitRisk, result.loadRisk)
}
