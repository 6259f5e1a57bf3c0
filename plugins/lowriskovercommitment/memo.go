package lowriskovercommitment

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// memo is what does not depend on the pending pod: the load risk of a node as
// long as its pods, its amounts and its load are the same. Most of the time of
// a score goes into fitting and integrating the distributions, and from one pod
// to the next a single node changes.
type memo struct {
	// What it holds for, beside the sums that it is kept with.
	plugin *Plugin
	load   *load.Snapshot
	node   *v1.Node

	cpu, memory nodeRisk
}

// nodeRisk is one resource of a node.
type nodeRisk struct {
	// resource has all but what the pending pod asks for.
	resource risk.Resource
	// measured is the load, if isMeasured.
	measured   load.Utilisation
	isMeasured bool
	// loadRisk holds unless the pending pod has a say in it.
	loadRisk float64
	byPod    bool
}

// remember returns the memo of a node, made if there is none that holds.
func (pl *Plugin) remember(node fwk.NodeInfo, sums *noderes.Sums, snapshot *load.Snapshot) *memo {
	if kept := sums.Memo.Load(); kept != nil {
		if m, ok := (*kept).(*memo); ok && m.plugin == pl && m.load == snapshot && m.node == node.Node() {
			return m
		}
	}
	measured, _ := snapshot.Node(node.Node().Name)
	m := &memo{
		plugin: pl, load: snapshot, node: node.Node(),
		cpu:    pl.nodeRisk(node, &pl.cpu, sums, measured.CPU, measured.HasCPU),
		memory: pl.nodeRisk(node, &pl.memory, sums, measured.Memory, measured.HasMemory),
	}
	kept := any(m)
	sums.Memo.Store(&kept)
	return m
}

func (pl *Plugin) nodeRisk(node fwk.NodeInfo, judged *judged, sums *noderes.Sums, measured load.Utilisation, isMeasured bool) nodeRisk {
	sum := sums.Of(judged.Resource)
	n := nodeRisk{
		resource: risk.Resource{
			Capacity:  float64(judged.Allocatable(node)),
			Machine:   float64(judged.Capacity(node)),
			Requests:  float64(sum.Request),
			Limits:    float64(sum.FlooredLimit),
			Unbounded: sum.Unbounded > 0,
			Idle:      judged.idle,
		},
		measured:   measured,
		isMeasured: isMeasured && measured.Valid(),
		byPod:      sum.Request == 0,
	}
	if n.isMeasured && !n.byPod {
		n.loadRisk = n.resource.LoadRisk(measured, pl.window)
	}
	return n
}

// with returns the risk of the resource if the node took the pod.
func (n *nodeRisk) with(pod noderes.Amount, limitWeight, window float64) float64 {
	r := n.resource
	r.PodRequest, r.PodLimit, r.PodUnbounded = float64(pod.Request), float64(max(pod.Limit, pod.Request)), pod.Unbounded
	limitRisk := r.LimitRisk()
	if !n.isMeasured {
		return limitRisk
	}
	loadRisk := n.loadRisk
	if n.byPod {
		loadRisk = r.LoadRisk(n.measured, window)
	}
	return risk.Combine(limitRisk, loadRisk, limitWeight)
}
