package slack

import (
	"errors"
	"slices"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Outcome is the result of a simulation.
type Outcome struct {
	// Waits of the pods that arrive.
	Waits Waits
	// Waited has the number of pods that did not have a node at once, by HistoryPod.Workload.
	Waited map[int32]int64
	// Cost of the nodes, and the part of it that placeholders hold on average: their share of CPU or memory,
	// whichever is higher.
	Cost, SlackCost float64
	// TooLarge is the number of pods that fit no node. They are left out.
	TooLarge int
	// AtMaximum is set if pods waited for nodes that the autoscaler did not add because of NodeType.Max.
	AtMaximum bool
	// Parts have the waits and the cost of consecutive parts of equal length.
	Parts []Part
}

// Part is a part of an outcome.
type Part struct {
	Waits Waits
	Cost  float64
}

// Simulate simulates a history with a policy, nil for none, that mirrors workloads, and an autoscaler. It is a model for
// comparing many policies: a pod takes the first node with enough CPU, memory and pod slots, no other constraint counts, and
// all nodes are of one type. Placeholders are the same as in plans of a Tracker. Pods wait for nodes that boot. It returns
// an error if the policy or the history is invalid.
func Simulate(h *History, node NodeType, policy *v1alpha1.ResourceSlack, parts int, mirrored ...Workload) (Outcome, error) {
	if node.MilliCPU <= 0 || node.Memory <= 0 || node.Slots <= 0 || node.Interval <= 0 || h.Seconds <= 0 || parts < 1 {
		return Outcome{}, errors.New("a node type must have CPU, memory, pod slots and an interval, and a history a length and at least " +
			"one part")
	}
	s := &simulation{
		history: h, node: node, empty: withPods(node.capacity(), node.Slots), shapes: map[resources.Amounts]int{},
		ends: map[int64][]int32{}, nodeOf: make([]int32, len(h.Pods)), lastAdded: -node.AfterAdd, mirrored: mirrored,
	}
	if policy != nil {
		policy = policy.DeepCopy()
		policy.Spec.Default()
		schedule, err := newSchedule(policy)
		if err != nil {
			return Outcome{}, err
		}
		s.policy, s.schedule = policy, schedule
	}
	s.outcome.Waits, s.outcome.Waited = Waits{}, map[int32]int64{}
	for range parts {
		s.outcome.Parts = append(s.outcome.Parts, Part{Waits: Waits{}})
	}
	s.run()
	return s.outcome, nil
}

// nowhere is the index of no node.
const nowhere = -1

// simulation is the state of Simulate. Nodes and pods are numbers.
type simulation struct {
	history  *History
	node     NodeType
	policy   *v1alpha1.ResourceSlack
	schedule activeSchedule
	planner  planner
	// groups are the placeholders, and coolDownEnd the end of their cool-down, 0 if there is none.
	groups      []sizeGroup
	coolDownEnd int64
	// mirrors are the placeholders that mirror the mirrored workloads beside a number of other placeholders.
	mirrored []Workload
	mirrors  []sizeGroup
	beside   int64
	outcome  Outcome

	// empty is the capacity of an empty node, with its pod slots.
	empty resources.Amounts
	nodes []simulatedNode
	// alive is the number of ready nodes, booting has the seconds at which nodes become ready, in order.
	alive   int
	booting []int64
	// pending are the pods without a node in the order of arrival. failed are requests that fit no node since capacity was
	// last released.
	pending []int32
	failed  []resources.Amounts
	// withSlack are the nodes with placeholders.
	withSlack []int
	// ends has the pods that end at a second, nodeOf the node of each pod.
	ends   map[int64][]int32
	nodeOf []int32
	// requested is the sum and shapes the numbers of the requests of the pods with a node.
	requested, largest resources.Amounts
	shapes             map[resources.Amounts]int
	lastAdded          int64
	// changed reports whether pods, nodes or placeholders changed since the last pass. nextRemoval is the next second at which a
	// node may be removed without a change.
	changed     bool
	nextRemoval int64
}

// simulatedNode is a ready node, or the zero value.
type simulatedNode struct {
	// free is the capacity that the pods leave, and slack the requests of the placeholders on the node, both with pod slots.
	free, slack resources.Amounts
	pods        []int32
	// low is the second since which the node has a low utilization, -1 if it has not.
	low   int64
	alive bool
}

// withPods returns amounts with a number of pods.
func withPods(amounts resources.Amounts, n int64) resources.Amounts {
	amounts.Pods = n
	return amounts
}

// requests returns the requests of a pod, with one pod slot.
func (s *simulation) requests(pod int32) resources.Amounts {
	return withPods(s.history.Pods[pod].requests(), 1)
}

// run simulates the history second by second.
func (s *simulation) run() {
	next := s.start()
	for now := int64(0); now < s.history.Seconds; now++ {
		released := s.endPods(now)
		for ; len(s.booting) > 0 && s.booting[0] <= now; s.booting = s.booting[1:] {
			s.addNode()
			released = true
		}
		if released {
			s.placePending(now)
		}
		for ; next < len(s.history.Pods) && s.history.Pods[next].Arrival <= now; next++ {
			switch pod := int32(next); {
			case !s.fitsNode(&s.history.Pods[next]):
			case s.place(pod, now):
				s.recordWait(pod, now)
			default:
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

// start places the pods that have a node at the start and the slack, and returns the first pod that arrives later.
func (s *simulation) start() (next int) {
	for ; next < len(s.history.Pods) && s.history.Pods[next].Arrival < 0; next++ {
		if p := &s.history.Pods[next]; s.fitsNode(p) && !s.place(int32(next), 0) {
			s.addNode()
			s.place(int32(next), 0)
		}
	}
	s.plan(0)
	for range min(s.missing(), max(0, s.node.Max-s.alive)) {
		s.addNode()
	}
	return next
}

// fitsNode reports whether a pod fits an empty node, and counts it otherwise.
func (s *simulation) fitsNode(p *HistoryPod) bool {
	if !p.requests().FitsIn(s.empty) {
		s.outcome.TooLarge++
		return false
	}
	return true
}

// partOf returns the part of a second.
func (s *simulation) partOf(second int64) *Part {
	return &s.outcome.Parts[second*int64(len(s.outcome.Parts))/s.history.Seconds]
}

// recordWait records that a pod waited until now.
func (s *simulation) recordWait(pod int32, now int64) {
	p := &s.history.Pods[pod]
	s.outcome.Waits[now-p.Arrival]++
	s.partOf(p.Arrival).Waits[now-p.Arrival]++
	if now > p.Arrival {
		s.outcome.Waited[p.Workload]++
	}
}

// addNode adds a ready node.
func (s *simulation) addNode() {
	node := simulatedNode{free: s.empty, low: -1, alive: true}
	s.alive++
	s.failed, s.changed = s.failed[:0], true
	if i := slices.IndexFunc(s.nodes, func(n simulatedNode) bool { return !n.alive }); i >= 0 {
		s.nodes[i] = node
	} else {
		s.nodes = append(s.nodes, node)
	}
}

// place places a pod on the first node that it fits on, and reports whether there is one.
func (s *simulation) place(pod int32, now int64) bool {
	i := s.find(s.requests(pod), nowhere, false)
	if i == nowhere {
		return false
	}
	s.assign(pod, i)
	p := &s.history.Pods[pod]
	s.requested = s.requested.Add(p.requests())
	count(s.shapes, p.requests(), 1)
	s.largest = s.largest.Max(p.requests())
	if end := now + max(p.Duration, 1); p.Duration < s.history.Seconds && end < s.history.Seconds {
		s.ends[end] = append(s.ends[end], pod)
	}
	return true
}

// find returns the first node other than one on which requests fit, beside placeholders if they keep their node.
func (s *simulation) find(requests resources.Amounts, other int, besideSlack bool) int {
	for _, failed := range s.failed {
		if !besideSlack && failed.FitsIn(requests) {
			return nowhere
		}
	}
	for i := range s.nodes {
		n := &s.nodes[i]
		if n.alive && i != other && requests.FitsIn(n.free) && (!besideSlack || requests.FitsIn(n.free.Minus(n.slack))) {
			return i
		}
	}
	if !besideSlack {
		s.failed = append(s.failed, requests)
	}
	return nowhere
}

// assign assigns a pod to a node.
func (s *simulation) assign(pod int32, node int) {
	n := &s.nodes[node]
	n.free, n.pods = n.free.Minus(s.requests(pod)), append(n.pods, pod)
	s.nodeOf[pod], s.changed = int32(node), true
}

// endPods ends the pods that end at a second, and reports whether there are any.
func (s *simulation) endPods(now int64) bool {
	pods := s.ends[now]
	for _, pod := range pods {
		n, requests := &s.nodes[s.nodeOf[pod]], s.history.Pods[pod].requests()
		n.free = n.free.Add(s.requests(pod))
		i := slices.Index(n.pods, pod)
		n.pods = slices.Delete(n.pods, i, i+1)
		s.requested = s.requested.Minus(requests)
		if count(s.shapes, requests, -1); s.shapes[requests] == 0 {
			s.largest = resources.Amounts{}
			for shape := range s.shapes {
				s.largest = s.largest.Max(shape)
			}
		}
	}
	delete(s.ends, now)
	if len(pods) == 0 {
		return false
	}
	s.failed, s.changed = s.failed[:0], true
	return true
}

// placePending places the pending pods for which there is capacity.
func (s *simulation) placePending(now int64) {
	remaining := s.pending[:0]
	for _, pod := range s.pending {
		if s.place(pod, now) {
			s.recordWait(pod, now)
		} else {
			remaining = append(remaining, pod)
		}
	}
	s.pending = remaining
}

// plan sets the placeholders that the policy requires at a second, if they may have changed.
func (s *simulation) plan(now int64) {
	if s.policy == nil {
		return
	}
	advanced := s.schedule.advance(s.history.Start.Add(time.Duration(now) * time.Second))
	if !advanced && !s.changed && s.coolDownEnd == 0 {
		return
	}
	nodes := max(s.alive, 1)
	pool := poolTotals{
		Requested: s.requested, Allocatable: s.node.capacity().Multiply(int64(nodes)), Nodes: nodes, Matching: nodes,
		MaxPodRequests: s.largest, LargestByCPU: s.largest, LargestByMemory: s.largest, Shapes: []resources.Amounts{s.node.capacity()},
	}
	plan := s.planner.Next(pool, s.schedule.policy, now)
	s.groups = s.groups[:0]
	for _, size := range plan.Head {
		s.groups = append(s.groups, sizeGroup{withPods(size, 1), 1})
	}
	s.groups = append(s.groups, sizeGroup{withPods(plan.Rest.Size, 1), plan.Rest.Count})
	s.groups = append(s.groups, s.mirrorsBeside(int64(len(plan.Head))+plan.Rest.Count)...)
	s.changed, s.coolDownEnd = true, plan.CoolDownEnd
}

// pass is a pass of the autoscaler.
func (s *simulation) pass(now int64) {
	s.plan(now)
	if s.changed || now >= s.nextRemoval { // else the pass would do nothing
		s.changed = false
		room, missing := max(0, s.node.Max-s.alive-len(s.booting)), s.missing()
		s.outcome.AtMaximum = s.outcome.AtMaximum || missing > room && len(s.pending) > 0
		if added := min(missing, room); added > 0 {
			for range added {
				s.booting = append(s.booting, now+s.node.Boot)
			}
			s.lastAdded = now
		}
		s.removeNodes(now, len(s.pending) > 0 || now-s.lastAdded < s.node.AfterAdd)
	}
	hours := float64(min(s.node.Interval, s.history.Seconds-now)) / 3600
	cost := hours * s.node.Cost * float64(s.alive+len(s.booting))
	s.outcome.Cost += cost
	s.partOf(now).Cost += cost
	var held resources.Amounts
	for _, group := range s.groups {
		held = held.Add(group.total())
	}
	s.outcome.SlackCost += hours * s.node.Cost * held.MaxFraction(s.node.capacity())
}

// missing places placeholders on the ready nodes, and returns how many nodes the pending pods and the other placeholders require
// in addition to the booting nodes.
func (s *simulation) missing() int {
	for _, i := range s.withSlack {
		s.nodes[i].slack = resources.Amounts{}
	}
	s.withSlack = s.withSlack[:0]
	var others []sizeGroup
	for _, group := range s.groups {
		for i := 0; i < len(s.nodes) && group.Count > 0; i++ {
			n := &s.nodes[i]
			if !n.alive || !group.Size.FitsIn(n.free) { // most nodes are full
				continue
			}
			if placed := min(group.Count, group.Size.Copies(n.free.Minus(n.slack))); placed > 0 {
				n.slack, group.Count = n.slack.Add(group.Size.Multiply(placed)), group.Count-placed
				s.withSlack = append(s.withSlack, i)
			}
		}
		if group.Count > 0 {
			others = append(others, group)
		}
	}
	if len(s.pending) == 0 && len(others) == 0 {
		return 0
	}
	return s.newNodes(others)
}

// newNodes returns how many nodes the pending pods and placeholders require in addition to the booting nodes.
func (s *simulation) newNodes(groups []sizeGroup) int {
	bins := make([]resources.Amounts, len(s.booting), len(s.booting)+16)
	for i := range bins {
		bins[i] = s.empty
	}
	first := map[resources.Amounts]int{} // the first bin on which requests may fit
	for _, pod := range s.pending {
		requests := s.requests(pod)
		i := first[requests]
		for i < len(bins) && !requests.FitsIn(bins[i]) {
			i++
		}
		if i == len(bins) {
			bins = append(bins, s.empty)
		}
		bins[i], first[requests] = bins[i].Minus(requests), i
	}
	for _, group := range groups {
		for i := 0; group.Count > 0 && (i < len(bins) || group.Size.FitsIn(s.empty)); i++ {
			if i == len(bins) {
				bins = append(bins, s.empty)
			}
			placed := min(group.Count, group.Size.Copies(bins[i]))
			bins[i], group.Count = bins[i].Minus(group.Size.Multiply(placed)), group.Count-placed
		}
	}
	return len(bins) - len(s.booting)
}
