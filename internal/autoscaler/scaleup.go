package autoscaler

import (
	"cmp"
	"context"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Group is a group of equal nodes.
type Group struct {
	// Allocatable of a new node, less its DaemonSet pods.
	Allocatable resources.Amounts
	// Headroom is how many nodes may be added.
	Headroom int
	// Cost of a node per hour, at least 0.
	Cost float64
}

// PodOutcome is how a scale-up handles a pending pod.
type PodOutcome uint8

// The outcomes.
const (
	// FitsBootingNode: the pod fits on a node that is booting.
	FitsBootingNode PodOutcome = iota + 1
	// NodeAdded: a node is added for the pod.
	NodeAdded
	// GroupsFull: the pod fits on new nodes only of groups at their maximum size.
	GroupsFull
	// FitsNoGroup: the pod does not fit on a node of any group.
	FitsNoGroup
)

// ScaleUpPlan is the result of ScaleUp.
type ScaleUpPlan struct {
	// Nodes is the number of nodes to add, by group.
	Nodes []int
	// Outcomes of the pods.
	Outcomes []PodOutcome
}

// ScaleUp returns how many nodes the pending pods need in addition to the booting nodes; booting
// has the group of each. The probe starts without nodes and keeps the booting and added nodes.
// Large pods are placed first, as in Cluster Autoscaler's estimate, and placeholders last; each pod
// on the first node that it fits on.
//
// Of several groups, the group with the lowest price is selected:
//
//	price = nodes x cost / sum over the resources of (requests of the pods that fit /
//	        requests of all pods without a node)
//
// If prices are equal, the group with fewer nodes is selected, then the first group. The remaining pods that depend on other pods are
// then tried on all nodes again: with a node in one zone, a pod that is spread over zones may fit on a node in another one. This repeats
// until no group fits any of the remaining pods.
func ScaleUp(ctx context.Context, pods []Item, booting []int, groups []Group, probe Probe) ScaleUpPlan {
	s := &scaleUp{
		packing: newPacking(pods, probe), groups: groups, unfit: make([]map[Item]bool, len(groups)),
		plan: ScaleUpPlan{Nodes: make([]int, len(groups)), Outcomes: make([]PodOutcome, len(pods))},
	}
	for i := range s.unfit {
		s.unfit[i] = map[Item]bool{}
	}
	for _, group := range booting {
		s.addNode(group)
	}
	remaining := s.placeEach(ctx, s.order(), FitsBootingNode, false)
	for len(remaining) > 0 {
		group, nodes := s.cheapestGroup(ctx, remaining), s.nodes
		if group < 0 {
			break
		}
		if remaining = s.commit(ctx, group, remaining); s.nodes == nodes {
			break
		}
		for before := len(remaining) + 1; len(remaining) < before; {
			before = len(remaining)
			remaining = s.placeEach(ctx, remaining, NodeAdded, true)
		}
	}
	for _, pod := range remaining {
		s.plan.Outcomes[pod] = FitsNoGroup
		for group := range groups {
			if s.addNode(group); s.fitsEmpty(ctx, pod, group) {
				s.plan.Outcomes[pod] = GroupsFull
			}
			s.removeLastNode(ctx)
		}
	}
	return s.plan
}

// scaleUp is the state of ScaleUp.
type scaleUp struct {
	*packing
	plan   ScaleUpPlan
	groups []Group
	// unfit has, by group, the pods with a class that do not fit on an empty node.
	unfit []map[Item]bool
}

// placeEach places pods on the nodes, sets their outcome, and returns the pods that remain. With dependent, it places only pods that
// depend on other pods: no other pod fits on a node that it did not fit on before.
func (s *scaleUp) placeEach(ctx context.Context, pods []int, outcome PodOutcome, dependent bool) (remaining []int) {
	for _, pod := range pods {
		if !(dependent && s.pods[pod].Class != 0) && s.place(ctx, pod, 0) {
			s.plan.Outcomes[pod] = outcome
		} else {
			remaining = append(remaining, pod)
		}
	}
	return remaining
}

// order returns the pods in the order in which they are placed: placeholders last,
// otherwise by descending size relative to the largest node of any group.
func (s *scaleUp) order() []int {
	var largest resources.Amounts
	for i := range s.groups {
		largest = largest.Max(s.groups[i].Allocatable)
	}
	order, sizes := make([]int, len(s.pods)), make([]float64, len(s.pods))
	for i := range order {
		order[i], sizes[i] = i, s.pods[i].Requests.MaxFraction(largest)
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case s.pods[a].Placeholder == s.pods[b].Placeholder:
			return cmp.Compare(sizes[b], sizes[a])
		case s.pods[a].Placeholder:
			return 1
		}
		return -1
	})
	return order
}

// addNode adds a node of a group.
func (s *scaleUp) addNode(group int) {
	s.add(s.groups[group].Allocatable)
	s.probe.AddNode(group)
}

// removeLastNode removes the last node.
func (s *scaleUp) removeLastNode(ctx context.Context) {
	s.removeLast()
	s.probe.RemoveLastNode(ctx)
	clear(s.start) // The next node has the same index.
}

// fitsEmpty reports whether a pod fits on the last node, which is an empty node of the group.
func (s *scaleUp) fitsEmpty(ctx context.Context, pod, group int) bool {
	item := s.pods[pod]
	if s.unfit[group][item] {
		return false
	}
	fits := item.Requests.FitsIn(s.groups[group].Allocatable) && s.probe.Fits(ctx, pod, s.nodes-1)
	if !fits && item.Class != 0 {
		s.unfit[group][item] = true
	}
	return fits
}

// fill places pods on new nodes of a group, up to its maximum size, and returns the
// pods that remain.
func (s *scaleUp) fill(ctx context.Context, group int, pods []int) (remaining []int) {
	first, headroom := s.nodes, s.groups[group].Headroom-s.plan.Nodes[group]
	for _, pod := range pods {
		switch item := s.pods[pod]; {
		case s.unfit[group][item] || !item.Requests.FitsIn(s.groups[group].Allocatable):
		case s.place(ctx, pod, first):
			continue
		case s.nodes-first < headroom:
			if s.addNode(group); s.fitsEmpty(ctx, pod, group) {
				s.assign(ctx, pod, s.nodes-1)
				continue
			}
			s.removeLastNode(ctx)
		}
		remaining = append(remaining, pod)
	}
	return remaining
}

// cheapestGroup returns the group with the lowest price, -1 if no group fits any of
// the pods. A single group has no price.
func (s *scaleUp) cheapestGroup(ctx context.Context, pods []int) int {
	if len(s.groups) == 1 {
		return 0
	}
	var all resources.Amounts
	for _, pod := range pods {
		all = all.Add(s.pods[pod].Requests)
	}
	cheapest, lowest, fewest := -1, 0.0, 0
	for group := range s.groups {
		assigned, before := len(s.assignments), s.nodes
		if s.groups[group].Headroom <= s.plan.Nodes[group] {
			continue
		}
		s.fill(ctx, group, pods)
		var fitting resources.Amounts
		for _, a := range s.assignments[assigned:] {
			fitting = fitting.Add(s.pods[a.pod].Requests)
		}
		added := s.nodes - before
		s.undo(ctx, assigned)
		for s.nodes > before {
			s.removeLastNode(ctx)
		}
		if added == 0 {
			continue
		}
		var fraction float64
		for r, amount := range all.All() {
			fraction += float64(fitting.Get(r)) / float64(amount)
		}
		price := float64(added) * s.groups[group].Cost / fraction
		if cheapest < 0 || price < lowest || price == lowest && added < fewest {
			cheapest, lowest, fewest = group, price, added
		}
	}
	return cheapest
}

// commit fills new nodes of a group, adds them to the plan, and returns the pods
// that remain.
func (s *scaleUp) commit(ctx context.Context, group int, pods []int) []int {
	before, assigned := s.nodes, len(s.assignments)
	remaining := s.fill(ctx, group, pods)
	s.plan.Nodes[group] += s.nodes - before
	for _, a := range s.assignments[assigned:] {
		s.plan.Outcomes[a.pod] = NodeAdded
	}
	return remaining
}
