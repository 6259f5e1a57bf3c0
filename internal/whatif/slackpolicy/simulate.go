package slackpolicy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// Outcome is the result of a simulation.
type Outcome struct {
	// Waits of the pods that arrive.
	Waits result.Waits
	// Cost of the nodes.
	Cost float64
	// TooLarge is the number of pods that fit no node. They are left out.
	TooLarge int
}

// Simulate simulates a history with a policy, nil for none, without its mirrors, and the autoscaler of the what-if with one group of
// nodes. It is a model for comparing many policies: a pod takes the node that is least allocated, as by default, and only amounts count.
// The nodes for the slack exist at the start. It returns an error if the policy or the history is invalid.
func Simulate(h *History, node NodeType, policy *v1alpha1.ResourceSlack) (Outcome, error) {
	size := node.Allocatable
	if size.CPU <= 0 || size.Memory <= 0 || size.Pods <= 0 || node.Interval <= 0 || h.Seconds <= 0 {
		return Outcome{}, errors.New("a node type must have CPU, memory, pod slots and an interval, and a history a length")
	}
	s := &simulation{
		history: h, node: node, shapes: map[resources.Amounts]int{}, ends: map[int64][]int32{}, nodeOf: make([]*simulatedNode, len(h.Pods)),
		lastAdded: -node.AfterAdd,
	}
	if policy != nil {
		forecast, err := slack.NewForecast(policy)
		if err != nil {
			return Outcome{}, err
		}
		s.forecast = forecast
	}
	s.outcome.Waits = result.Waits{}
	s.run()
	return s.outcome, nil
}

// simulation is the state of Simulate. Pods are numbers.
type simulation struct {
	history  *History
	node     NodeType
	forecast *slack.Forecast // nil without a policy
	outcome  Outcome

	// nodes are the ready nodes, scaled the number of those that the autoscaler scales. booting has the seconds at which nodes become
	// ready, in order. costPerHour is of all nodes.
	nodes         []*simulatedNode
	scaled, named int
	booting       []int64
	costPerHour   float64
	// pending are the pods without a node in the order of arrival. failed are requests that fit no node since capacity was
	// last released.
	pending []int32
	failed  []resources.Amounts
	// planned and placeholders are the placeholders of the last plan.
	planned      []slack.Placeholders
	placeholders []placeholder
	// ends has the pods that end at a second, nodeOf the node of each pod.
	ends   map[int64][]int32
	nodeOf []*simulatedNode
	// requested is the sum and shapes the numbers of the requests of the pods with a node, largest their maximum.
	requested, largest resources.Amounts
	shapes             map[resources.Amounts]int
	scaleDown          autoscaler.ScaleDown
	lastAdded          int64
	// changed reports whether pods, nodes or placeholders changed since the last pass. nextRemoval is the next second at which a
	// node may be removed without a change.
	changed     bool
	nextRemoval int64
	// input and items are buffers of a pass.
	input autoscaler.ScaleDownInput
	items []autoscaler.Item
	free  []resources.Amounts
}

// simulatedNode is a ready node.
type simulatedNode struct {
	name              string
	group             int
	allocatable, free resources.Amounts
	costPerHour       float64
	pods              []int32
	// index is the index of the node in the current pass, and isCandidate is set if it may be removed.
	index       int
	isCandidate bool
	isRemoved   bool
}

// placeholder is a placeholder and its node, nil if it has none.
type placeholder struct {
	autoscaler.Item
	node *simulatedNode
}

// run simulates the history second by second.
func (s *simulation) run() {
	next := s.start()
	for now := int64(0); now < s.history.Seconds; now++ {
		released := s.endPods(now)
		for ; len(s.booting) > 0 && s.booting[0] <= now; s.booting = s.booting[1:] {
			s.addNode(s.node.Allocatable, 0, s.node.Cost)
			released = true
		}
		if released {
			s.placePending(now)
		}
		for ; next < len(s.history.Pods) && s.history.Pods[next].Arrival <= now; next++ {
			if pod := int32(next); s.isSmall(pod) && !s.place(pod, now) {
				s.pending, s.changed = append(s.pending, pod), true
			}
		}
		if now%s.node.Interval == 0 {
			s.pass(now)
		}
	}
	for _, pod := range s.pending {
		s.recordWait(pod, s.history.Seconds)
	}
}

// start adds the nodes of the start, the pods that run on them and nodes for the slack, and returns the first pod that arrives later.
func (s *simulation) start() (next int) {
	for i := range s.history.Nodes {
		n, group := &s.history.Nodes[i], autoscaler.NoGroup
		if n.IsScaled {
			group = 0
		}
		s.addNode(n.Allocatable, group, n.Cost)
	}
	for s.scaled < s.node.Min {
		s.addNode(s.node.Allocatable, 0, s.node.Cost)
	}
	initial := s.nodes
	for ; next < len(s.history.Pods) && s.history.Pods[next].Arrival < 0; next++ {
		switch pod, p := int32(next), &s.history.Pods[next]; {
		case p.Node > 0:
			s.assign(pod, initial[p.Node-1], 0)
		case s.isSmall(pod) && !s.place(pod, 0):
			s.addNode(s.node.Allocatable, 0, s.node.Cost)
			s.place(pod, 0)
		}
	}
	s.plan(0)
	if added, _ := s.scaleUp(s.placePlaceholders()); added > 0 {
		for range added {
			s.addNode(s.node.Allocatable, 0, s.node.Cost)
		}
	}
	return next
}

// isSmall reports whether a pod fits an empty node, and counts it otherwise.
func (s *simulation) isSmall(pod int32) bool {
	if !s.history.Pods[pod].Requests.FitsIn(s.node.Allocatable) {
		s.outcome.TooLarge++
		return false
	}
	return true
}

// recordWait records that a pod waited until now, unless it was evicted or ran at the start.
func (s *simulation) recordWait(pod int32, now int64) {
	p := &s.history.Pods[pod]
	if p.Arrival < 0 || s.nodeOf[pod] != nil {
		return
	}
	s.outcome.Waits[now-p.Arrival]++
}

// addNode adds a ready node.
func (s *simulation) addNode(allocatable resources.Amounts, group int, costPerHour float64) {
	s.named++
	s.nodes = append(s.nodes, &simulatedNode{
		name: fmt.Sprint(s.named), group: group, allocatable: allocatable, free: allocatable, costPerHour: costPerHour,
	})
	if group != autoscaler.NoGroup {
		s.scaled++
	}
	s.costPerHour += costPerHour
	s.failed, s.changed = s.failed[:0], true
}

// place places a pod on the node that is least allocated, and reports whether it fits a node.
func (s *simulation) place(pod int32, now int64) bool {
	requests := s.history.Pods[pod].Requests
	if slices.ContainsFunc(s.failed, func(failed resources.Amounts) bool { return failed.FitsIn(requests) }) {
		return false
	}
	var best *simulatedNode
	highest := math.Inf(-1)
	for _, n := range s.nodes {
		if !requests.FitsIn(n.free) {
			continue
		}
		score := float64(n.free.CPU-requests.CPU)/float64(n.allocatable.CPU) +
			float64(n.free.Memory-requests.Memory)/float64(n.allocatable.Memory)
		if score > highest {
			best, highest = n, score
		}
	}
	if best == nil {
		s.failed = append(s.failed, requests)
		return false
	}
	s.recordWait(pod, now)
	s.assign(pod, best, now)
	return true
}

// assign assigns a pod to a node. A pod that was evicted ends when it would have ended.
func (s *simulation) assign(pod int32, n *simulatedNode, now int64) {
	p := &s.history.Pods[pod]
	isNew := s.nodeOf[pod] == nil
	n.free, n.pods = n.free.Minus(p.Requests), append(n.pods, pod)
	s.nodeOf[pod], s.changed = n, true
	s.requested = s.requested.Add(p.Requests)
	s.shapes[p.Requests]++
	s.largest = s.largest.Max(p.Requests)
	if end := now + max(p.Duration, 1); isNew && p.Duration < s.history.Seconds && end < s.history.Seconds {
		s.ends[end] = append(s.ends[end], pod)
	}
}

// remove removes a pod from its node.
func (s *simulation) remove(pod int32) {
	n, requests := s.nodeOf[pod], s.history.Pods[pod].Requests
	n.free = n.free.Add(requests)
	i := slices.Index(n.pods, pod)
	n.pods = slices.Delete(n.pods, i, i+1)
	s.requested = s.requested.Minus(requests)
	if s.shapes[requests]--; s.shapes[requests] == 0 {
		delete(s.shapes, requests)
		s.largest = resources.Amounts{}
		for shape := range s.shapes {
			s.largest = s.largest.Max(shape)
		}
	}
	s.failed, s.changed = s.failed[:0], true
}

// endPods ends the pods that end at a second, and reports whether there are any.
func (s *simulation) endPods(now int64) bool {
	pods := s.ends[now]
	for _, pod := range pods {
		if i := slices.Index(s.pending, pod); i >= 0 { // evicted
			s.pending = slices.Delete(s.pending, i, i+1)
		} else {
			s.remove(pod)
		}
	}
	delete(s.ends, now)
	return len(pods) > 0
}

// placePending places the pending pods for which there is capacity.
func (s *simulation) placePending(now int64) {
	s.pending = slices.DeleteFunc(s.pending, func(pod int32) bool { return s.place(pod, now) })
}

// plan sets the placeholders that the policy requires at a second, if they may have changed. A placeholder keeps its node.
func (s *simulation) plan(now int64) {
	if s.forecast == nil {
		return
	}
	t := s.history.Start.Add(time.Duration(now) * time.Second)
	if isDue := s.forecast.IsDue(t); !isDue && !s.changed {
		return
	}
	planned := s.forecast.Next(t, slack.PoolSums{
		Requested: withoutSlots(s.requested), Largest: withoutSlots(s.largest), Node: s.node.size(), Nodes: max(len(s.nodes), 1),
	})
	if slices.Equal(planned, s.planned) {
		return
	}
	s.planned, s.changed = planned, true
	before := s.placeholders
	s.placeholders = make([]placeholder, 0, len(before)+8)
	for _, group := range planned {
		item := autoscaler.Item{Requests: group.Requests, Class: 1, Placeholder: true}
		item.Requests.Pods = 1
		for range group.Count {
			h := placeholder{Item: item}
			if i := len(s.placeholders); i < len(before) {
				h.node = before[i].node
			}
			s.placeholders = append(s.placeholders, h)
		}
	}
}

// pass is a pass of the autoscaler.
func (s *simulation) pass(now int64) {
	s.plan(now)
	if s.changed || now >= s.nextRemoval { // else the pass would do nothing
		s.changed = false
		added, hold := s.scaleUp(s.placePlaceholders())
		if added > 0 {
			s.booting, s.lastAdded = append(s.booting, slices.Repeat([]int64{now + s.node.Boot}, added)...), now
		}
		s.removeNodes(now, hold || now-s.lastAdded < s.node.AfterAdd)
	}
	hours := float64(min(s.node.Interval, s.history.Seconds-now)) / 3600
	s.outcome.Cost += hours * (s.costPerHour + s.node.Cost*float64(len(s.booting)))
}

// placePlaceholders places placeholders on the ready nodes, and returns those that remain. It sets free.
func (s *simulation) placePlaceholders() (remaining []autoscaler.Item) {
	s.free = s.free[:0]
	for i, n := range s.nodes {
		s.free = append(s.free, n.free)
		n.index = i
	}
	var unplaced []*placeholder
	for i := range s.placeholders {
		h := &s.placeholders[i]
		if h.node != nil && h.Requests.FitsIn(s.free[h.node.index]) {
			s.free[h.node.index] = s.free[h.node.index].Minus(h.Requests)
		} else {
			h.node, unplaced = nil, append(unplaced, h)
		}
	}
	if len(unplaced) == 0 {
		return nil
	}
	s.items = s.items[:0]
	for _, h := range unplaced {
		s.items = append(s.items, h.Item)
	}
	for i, node := range autoscaler.Place(context.Background(), s.items, s.free, autoscaler.NoConstraints{}) {
		if node < 0 {
			remaining = append(remaining, unplaced[i].Item)
			continue
		}
		unplaced[i].node, s.free[node] = s.nodes[node], s.free[node].Minus(unplaced[i].Requests)
	}
	return remaining
}

// scaleUp returns how many nodes the pending pods and placeholders require in addition to the booting nodes, and whether pods wait for
// nodes, so that no node may be removed.
func (s *simulation) scaleUp(placeholders []autoscaler.Item) (added int, hold bool) {
	if len(s.pending)+len(placeholders) == 0 {
		return 0, false
	}
	s.items = s.items[:0]
	for _, pod := range s.pending {
		s.items = append(s.items, autoscaler.Item{Requests: s.history.Pods[pod].Requests, Class: 1})
	}
	s.items = append(s.items, placeholders...)
	group := autoscaler.Group{
		Allocatable: s.node.Allocatable, Headroom: max(0, s.node.Max-s.scaled-len(s.booting)), Cost: s.node.Cost,
	}
	plan := autoscaler.ScaleUp(context.Background(), s.items, make([]int, len(s.booting)), []autoscaler.Group{group},
		autoscaler.NoConstraints{})
	return plan.Nodes[0], len(s.pending) > 0
}

// removeNodes removes unneeded nodes, unless removals are on hold. Their pods take other nodes.
func (s *simulation) removeNodes(now int64, hold bool) {
	in := &s.input
	*in = autoscaler.ScaleDownInput{
		Nodes: in.Nodes[:0], Pods: in.Pods[:0], Removable: append(in.Removable[:0], max(0, s.scaled-s.node.Min)),
		Threshold: s.node.Utilization, UnneededSeconds: s.node.Idle, Hold: hold,
	}
	for i, n := range s.nodes {
		node := autoscaler.PackedNode{
			Name:        n.name,
			Group:       n.group,
			Free:        s.free[i],
			Utilization: autoscaler.Utilization(n.allocatable.Minus(s.free[i]), n.allocatable),
		}
		if n.isCandidate = in.IsCandidate(&node); n.isCandidate {
			for _, pod := range n.pods {
				node.Pods = append(node.Pods, len(in.Pods))
				in.Pods = append(in.Pods, autoscaler.Item{Requests: s.history.Pods[pod].Requests, Class: 1})
			}
		}
		in.Nodes = append(in.Nodes, node)
	}
	for _, h := range s.placeholders {
		if h.node != nil && h.node.isCandidate {
			in.Nodes[h.node.index].Pods = append(in.Nodes[h.node.index].Pods, len(in.Pods))
			in.Pods = append(in.Pods, h.Item)
		}
	}
	removed := s.scaleDown.Next(context.Background(), now, *in, autoscaler.NoConstraints{})
	s.nextRemoval = s.scaleDown.NextRemoval(s.node.Idle)
	if due := s.lastAdded + s.node.AfterAdd; s.nextRemoval != math.MaxInt64 {
		s.nextRemoval = max(s.nextRemoval, due)
	}
	if s.nextRemoval <= now { // a removal, or the end of a hold by pods, is a change
		s.nextRemoval = math.MaxInt64
	}
	for _, i := range removed {
		n := s.nodes[i]
		evicted := slices.Clone(n.pods)
		for _, pod := range evicted {
			s.remove(pod)
		}
		n.isRemoved = true
		s.pending = append(s.pending, evicted...)
		s.scaled--
		s.costPerHour -= n.costPerHour
	}
	if len(removed) > 0 {
		for i := range s.placeholders {
			if h := &s.placeholders[i]; h.node != nil && h.node.isRemoved {
				h.node = nil
			}
		}
		s.nodes = slices.DeleteFunc(s.nodes, func(n *simulatedNode) bool { return n.isRemoved })
		s.changed = true
		s.placePending(now)
	}
}
