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
	if len(candidates) == 0 {
		return nil
	}
	slices.SortStableFunc(candidates, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.evictions(a), in.evictions(b)), cmp.Compare(in.Nodes[a].Utilization, in.Nodes[b].Utilization))
	})
	removals, removable := NewRemovals(in.Nodes, in.Pods, probe), slices.Clone(in.Removable)
	for _, node := range candidates {
		if group := in.Nodes[node].Group; removable[group] > 0 && removals.Try(ctx, node, true, false).Succeeds() {
			removable[group]--
			unneeded = append(unneeded, node)
		}
	}
	removals.Revert(ctx)
	return unneeded
}

// Removals are nodes that are removed together: the pods of each fit on other nodes, in addition to the pods of the nodes before.
type Removals struct {
	nodes   []PackedNode
	packing *packing
	// removed are the nodes that are removed, needed those that have pods of removed nodes.
	removed []int
	needed  []bool
}

// Removal is the result of an attempt to remove a node.
type Removal struct {
	// IsNeeded is set if the node has pods of nodes that are removed, so that it stays.
	IsNeeded bool
	// Unfit are the pods that fit on no other node. Without them, Moves are the nodes of the pods of the node, in their order.
	Unfit, Moves []int
}

// Succeeds reports whether the node can be removed.
func (r Removal) Succeeds() bool { return !r.IsNeeded && len(r.Unfit) == 0 }

// NewRemovals returns no removals of nodes. The probe has the nodes with their pods.
func NewRemovals(nodes []PackedNode, pods []Item, probe Probe) *Removals {
	r := &Removals{nodes: nodes, packing: newPacking(pods, probe), needed: make([]bool, len(nodes))}
	free := make([]resources.Amounts, len(nodes))
	for i := range nodes {
		free[i] = nodes[i].Free
	}
	r.packing.capacity = newCapacity(free)
	return r
}

// Try tries whether the pods of a node fit on other nodes. If they do and remove is set, the node is removed. If they do not, it finds the
// first pod that does not fit or, with all, all pods that do not fit beside the others.
func (r *Removals) Try(ctx context.Context, node int, remove, all bool) (result Removal) {
	if r.needed[node] {
		return Removal{IsNeeded: true}
	}
	p := r.packing
	free, assigned := p.free(node), len(p.assignments)
	p.set(node, resources.Amounts{})
	for _, pod := range r.nodes[node].Pods {
		p.probe.Unassign(ctx, pod, node)
	}
	for _, pod := range r.nodes[node].Pods {
		if !p.place(ctx, pod, 0) {
			if result.Unfit = append(result.Unfit, pod); !all {
				break
			}
		}
	}
	for _, a := range p.assignments[assigned:] {
		result.Moves = append(result.Moves, a.node)
	}
	if remove && result.Succeeds() {
		r.removed = append(r.removed, node)
		for _, to := range result.Moves {
			r.needed[to] = true
		}
		return result
	}
	p.undo(ctx, assigned)
	r.restore(ctx, node)
	p.set(node, free)
	return result
}

// Revert restores the nodes that are removed, in reverse order, so that the probe is unchanged.
func (r *Removals) Revert(ctx context.Context) {
	r.packing.undo(ctx, 0)
	for _, node := range slices.Backward(r.removed) {
		r.restore(ctx, node)
	}
}

// restore assigns the pods of a node to it again.
func (r *Removals) restore(ctx context.Context, node int) {
	for _, pod := range r.nodes[node].Pods {
		r.packing.probe.Assign(ctx, pod, node)
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
