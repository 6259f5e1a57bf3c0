package autoscaler

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// NoGroup is the group of a node that belongs to no group.
const NoGroup = -1

// PackedNode is a running node.
type PackedNode struct {
	Name string
	// Group of the node, NoGroup for a node that is never removed.
	Group int
	// Free amounts; an unschedulable node has none.
	Free resources.Amounts
	// Utilization of the node.
	Utilization float64
	// Pods are the pods and placeholders that would have to be rescheduled, without
	// DaemonSet pods.
	Pods []int
	// Fixed is set if a pod on the node must not be evicted.
	Fixed bool
}

// Limits per pass: Cluster Autoscaler's defaults of max-scale-down-parallelism and
// max-drain-parallelism.
const (
	maxRemoved = 10
	maxDrained = 1
)

// ScaleDown removes nodes that have been unneeded for a while. The zero value is
// ready to use.
type ScaleDown struct {
	// unneededSince is the second since when each node has been unneeded.
	unneededSince map[string]int64
}

// ScaleDownInput is the state of the cluster in one pass.
type ScaleDownInput struct {
	Nodes []PackedNode
	Pods  []Item
	// Removable is how many nodes may be removed, by group.
	Removable []int
	// Threshold is the utilization below which a node can be unneeded, UnneededSeconds
	// how long it must have been unneeded to be removed.
	Threshold       float64
	UnneededSeconds int64
	// Hold prevents removal in this pass, while the time is still counted.
	Hold bool
}

// Next returns the nodes to remove at a second. A node is unneeded if it belongs to a
// group, its utilization is below the threshold, and all its pods fit on other nodes:
// nodes that are needed, and in addition to the pods of other unneeded nodes. Nodes
// with fewer pods to reschedule are considered first. The probe has the nodes with
// their pods, and is unchanged when Next returns.
func (s *ScaleDown) Next(ctx context.Context, now int64, in ScaleDownInput, probe Probe) []int {
	unneeded := in.unneeded(ctx, probe)
	unneededSince := make(map[string]int64, len(unneeded))
	var removed []int
	drained := 0
	for _, node := range unneeded {
		name := in.Nodes[node].Name
		since, known := s.unneededSince[name]
		if !known {
			since = now
		}
		unneededSince[name] = since
		drain := in.evictions(node) > 0
		if now-since < in.UnneededSeconds || in.Hold || len(removed) == maxRemoved || drain && drained == maxDrained {
			continue
		}
		if drain {
			drained++
		}
		removed = append(removed, node)
		delete(unneededSince, name)
	}
	s.unneededSince = unneededSince
	return removed
}

// IsCandidate reports whether a node can be unneeded.
func (in *ScaleDownInput) IsCandidate(node *PackedNode) bool {
	return node.Group != NoGroup && !node.Fixed && in.Removable[node.Group] > 0 && node.Utilization < in.Threshold
}

// evictions returns how many pods would be evicted from a node, without placeholders.
func (in *ScaleDownInput) evictions(node int) (pods int) {
	for _, pod := range in.Nodes[node].Pods {
		if !in.Pods[pod].Placeholder {
			pods++
		}
	}
	return pods
}

// unneeded returns the unneeded nodes in the order in which they are removed.
func (in *ScaleDownInput) unneeded(ctx context.Context, probe Probe) (unneeded []int) {
	var candidates []int
	for i := range in.Nodes {
		if in.IsCandidate(&in.Nodes[i]) {
			candidates = append(candidates, i)
		}
	}
	slices.SortStableFunc(candidates, in.CompareCandidates)
	for _, removal := range in.Remove(ctx, probe, candidates, false) {
		if removal.Succeeds() {
			unneeded = append(unneeded, removal.Node)
		}
	}
	return unneeded
}

// CompareCandidates orders nodes as their removal is considered: those with fewer pods to reschedule first.
func (in *ScaleDownInput) CompareCandidates(a, b int) int {
	return cmp.Or(cmp.Compare(in.evictions(a), in.evictions(b)), cmp.Compare(in.Nodes[a].Utilization, in.Nodes[b].Utilization))
}

// Removal is the result of an attempt to remove a node.
type Removal struct {
	Node int
	// IsNeeded is set if the node gets pods of nodes that are removed before, so that it stays.
	IsNeeded bool
	// Unfit are the pods that fit on no other node. Without them, Moves are the nodes of the pods of the node, in their order.
	Unfit, Moves []int
}

// Succeeds reports whether the node is removed.
func (r *Removal) Succeeds() bool { return !r.IsNeeded && len(r.Unfit) == 0 }

// Remove tries to remove nodes in their order, each in addition to the nodes that are removed before: its pods must fit on other nodes.
// The nodes of groups of which no more nodes can be removed have no result. If all is set, Unfit has all pods that do not fit beside
// the pods that do, otherwise only the first one. The probe has the nodes with their pods, and is unchanged when Remove returns.
func (in *ScaleDownInput) Remove(ctx context.Context, probe Probe, nodes []int, all bool) (results []Removal) {
	if len(nodes) == 0 {
		return nil
	}
	p := newPacking(in.Pods, probe)
	free := make([]resources.Amounts, len(in.Nodes))
	for i := range in.Nodes {
		free[i] = in.Nodes[i].Free
	}
	p.capacity = newCapacity(free)
	removable, needed := slices.Clone(in.Removable), make([]bool, len(in.Nodes))
	for _, node := range nodes {
		group, r := in.Nodes[node].Group, Removal{Node: node, IsNeeded: needed[node]}
		if removable[group] == 0 {
			continue
		}
		if !r.IsNeeded {
			r.Unfit, r.Moves = in.drain(ctx, p, node, all)
		}
		for _, to := range r.Moves {
			needed[to] = true // for the pods of the removed node
		}
		if r.Succeeds() {
			removable[group]--
		}
		results = append(results, r)
	}
	// Revert in reverse order, so that the probe is unchanged.
	p.undo(ctx, 0)
	for _, r := range slices.Backward(results) {
		if r.Succeeds() {
			in.restore(ctx, probe, r.Node)
		}
	}
	return results
}

// drain assigns the pods of a node to other nodes. It returns their nodes or, without a change, pods that do not fit: all or the first.
func (in *ScaleDownInput) drain(ctx context.Context, p *packing, node int, all bool) (unfit, moves []int) {
	free, assigned := p.free(node), len(p.assignments)
	p.set(node, resources.Amounts{})
	for _, pod := range in.Nodes[node].Pods {
		p.probe.Unassign(ctx, pod, node)
	}
	for _, pod := range in.Nodes[node].Pods {
		if !p.place(ctx, pod, 0) {
			if unfit = append(unfit, pod); !all {
				break
			}
		}
	}
	if len(unfit) > 0 {
		p.undo(ctx, assigned)
		in.restore(ctx, p.probe, node)
		p.set(node, free)
		return unfit, nil
	}
	for _, a := range p.assignments[assigned:] {
		moves = append(moves, a.node)
	}
	return nil, moves
}

// restore assigns the pods of a node to it again.
func (in *ScaleDownInput) restore(ctx context.Context, probe Probe, node int) {
	for _, pod := range in.Nodes[node].Pods {
		probe.Assign(ctx, pod, node)
	}
}

// Utilization returns the fraction of a node's allocatable amounts, less its DaemonSet pods, that
// its pods request: the fraction of GPUs for a node with GPUs, otherwise the higher fraction of CPU
// and memory. This is the rule of Cluster Autoscaler, which also counts DaemonSet pods unless
// --ignore-daemonsets-utilization is set.
func Utilization(requested, allocatable resources.Amounts) float64 {
	for name, all := range allocatable.Extended.All() {
		if strings.Contains(string(name), "/gpu") {
			return float64(requested.Extended.Get(name)) / float64(all)
		}
	}
	requested.Extended, requested.Pods = resources.ExtendedAmounts{}, 0
	return requested.MaxFraction(allocatable)
}

// Loop has the settings that apply to all groups. Times are in seconds.
type Loop struct {
	// Interval between passes.
	Interval int64 `json:"interval" range:"1,86400"`
	// Idle is how long a node must be unneeded before it is removed.
	Idle int64 `json:"idle" range:"0,86400"`
	// AfterAdd is how long no node is removed after one was added.
	AfterAdd int64 `json:"after-add" range:"0,86400"`
	// Utilization is the threshold below which a node can be unneeded.
	Utilization float64 `json:"utilization" range:"0,1"`
}

// DefaultLoop has the defaults of Cluster Autoscaler: scan-interval, scale-down-unneeded-time, scale-down-delay-after-add and
// scale-down-utilization-threshold.
var DefaultLoop = Loop{Interval: 10, Idle: 600, AfterAdd: 600, Utilization: 0.5}
