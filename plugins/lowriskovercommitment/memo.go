package lowriskovercommitment

import (
	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
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

// nodeRisk is what is known of one resource of a node before a pod comes.
type nodeRisk struct {
	capacity, requests, limits float64
	// recent is what pods use that came too late to be measured.
	recent float64
	// loadRisk is that of the node, unless the pending pod has a say in it.
	loadRisk  float64
	unbounded bool
	measured  bool
	byPod     bool
}

// remember returns the memo of a node, made if there is none that holds.
func (pl *Plugin) remember(node fwk.NodeInfo, sums *noderes.Sums, snapshot *load.Snapshot) *memo {
	if m, ok := sums.Memo.Load().(*memo); ok && m.plugin == pl && m.load == snapshot && m.node == node.Node() {
		return m
	}
	m := &memo{plugin: pl, load: snapshot, node: node.Node()}
	var recent amounts
	if pl.countRecent && snapshot != nil {
		recent = unmeasured(node, snapshot.Reading())
	}
	m.cpu = pl.judge(node, &pl.cpu, sums, snapshot, recent.cpu)
	m.memory = pl.judge(node, &pl.memory, sums, snapshot, recent.memory)
	sums.Memo.Store(m)
	return m
}

// judge works out one resource of a node.
func (pl *Plugin) judge(node fwk.NodeInfo, judged *judged, sums *noderes.Sums, snapshot *load.Snapshot, recent float64) nodeRisk {
	sum := sums.Of(judged.Resource)
	n := nodeRisk{
		capacity:  float64(judged.Allocatable(node)),
		requests:  float64(sum.Request),
		limits:    float64(sum.FlooredLimit),
		recent:    recent,
		unbounded: sum.Unbounded > 0,
		byPod:     sum.Request == 0,
	}
	var measured load.Utilization
	measured, n.measured = judged.measured(snapshot, node)
	if n.measured && !n.byPod {
		n.loadRisk = pl.loadRisk(n.with(noderes.Amount{}), node, judged, measured)
	}
	return n
}

// loadRisk returns the load risk of a resource of a node.
func (pl *Plugin) loadRisk(r risk.Resource, node fwk.NodeInfo, judged *judged, measured load.Utilization) float64 {
	r.Machine, r.Idle = float64(judged.Capacity(node)), judged.idle
	return r.LoadRisk(measured, pl.window)
}

// with returns the resource with what the pending pod asks of it.
func (n *nodeRisk) with(pod noderes.Amount) risk.Resource {
	return risk.Resource{
		Capacity: n.capacity, Requests: n.requests, Limits: n.limits, Unbounded: n.unbounded, Recent: n.recent,
		PodRequest: float64(pod.Request), PodLimit: float64(max(pod.Limit, pod.Request)), PodUnbounded: pod.Unbounded,
	}
}

// risk returns the risk of a resource of a node if it took the pod.
func (pl *Plugin) risk(n *nodeRisk, judged *judged, node fwk.NodeInfo, c *cycle) float64 {
	r := n.with(c.pending.Of(judged.Resource))
	limitRisk := r.LimitRisk()
	if !n.measured {
		return limitRisk
	}
	loadRisk := n.loadRisk
	if n.byPod {
		measured, _ := judged.measured(c.load, node)
		loadRisk = pl.loadRisk(r, node, judged, measured)
	}
	return risk.Model{LimitWeight: judged.limitWeight}.Combine(limitRisk, loadRisk)
}
