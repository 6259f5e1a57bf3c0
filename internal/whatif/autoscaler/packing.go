package autoscaler

import (
	"context"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Item is a pod or placeholder that needs a node.
type Item struct {
	// Requests of the pod, including one pod slot.
	Requests resources.Amounts
	// Class is equal for pods that the probe treats alike regardless of the pods on a node. It is 0
	// for a pod that depends on other pods.
	Class int
	// Placeholder pods are placed last.
	Placeholder bool
}

// Probe checks constraints other than amounts, such as affinity and taints. Pods and nodes are the
// indexes of the current call.
type Probe interface {
	// Fits reports whether a pod may run on a node that has enough free resources, with
	// the pods that are assigned to it.
	Fits(ctx context.Context, pod, node int) bool
	// Assign and Unassign add a pod to a node and remove it.
	Assign(ctx context.Context, pod, node int)
	Unassign(ctx context.Context, pod, node int)
	// AddNode adds a node of a group with the next index, RemoveLastNode removes the
	// last node.
	AddNode(group int)
	RemoveLastNode(ctx context.Context)
}

// packing assigns pods to nodes, first fit.
type packing struct {
	capacity
	probe Probe
	pods  []Item
	// start is the first node to consider for the next pod of a kind: the nodes before
	// it did not fit the previous one, and have no more free now.
	start       map[podKind]int
	assignments []assignment
}

// podKind is equal for pods with equal requests and class.
type podKind struct {
	requests resources.Amounts
	class    int
}

// assignment is a pod assigned to a node.
type assignment struct{ pod, node int }

func newPacking(pods []Item, probe Probe) *packing {
	return &packing{probe: probe, pods: pods, start: map[podKind]int{}}
}

// place assigns a pod to the first node at or after an index that it fits on, and
// reports whether there is one.
func (p *packing) place(ctx context.Context, pod, from int) bool {
	kind := podKind{p.pods[pod].Requests, p.pods[pod].Class}
	if kind.class != 0 {
		from = max(from, p.start[kind])
	}
	node := p.first(kind.requests, from, func(node int) bool { return p.probe.Fits(ctx, pod, node) })
	if kind.class != 0 {
		p.start[kind] = node
	}
	if node == p.nodes {
		return false
	}
	p.assign(ctx, pod, node)
	return true
}

// assign assigns a pod to a node.
func (p *packing) assign(ctx context.Context, pod, node int) {
	p.set(node, p.free(node).Minus(p.pods[pod].Requests))
	p.probe.Assign(ctx, pod, node)
	p.assignments = append(p.assignments, assignment{pod, node})
}

// undo reverts all assignments after the given number.
func (p *packing) undo(ctx context.Context, keep int) {
	for len(p.assignments) > keep {
		last := p.assignments[len(p.assignments)-1]
		p.assignments = p.assignments[:len(p.assignments)-1]
		p.probe.Unassign(ctx, last.pod, last.node)
		p.set(last.node, p.free(last.node).Add(p.pods[last.pod].Requests))
	}
	clear(p.start)
}

// Place assigns pods in their order to nodes with the given free amounts. It returns
// the node of each pod, -1 for a pod that does not fit.
func Place(ctx context.Context, pods []Item, free []resources.Amounts, probe Probe) []int {
	p := newPacking(pods, probe)
	for _, amounts := range free {
		p.add(amounts)
	}
	nodes := make([]int, len(pods))
	for i := range pods {
		nodes[i] = -1
		if p.place(ctx, i, 0) {
			nodes[i] = p.assignments[len(p.assignments)-1].node
		}
	}
	return nodes
}
