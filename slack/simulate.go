package slack

import (
	"errors"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/slack/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// Outcome is the result of a simulation.
type Outcome struct {
	// Waits of the pods that arrive.
	Waits Waits
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

// Simulate simulates a history with a policy, nil for none, and an autoscaler. It is a model for comparing many
// policies: a pod takes the first node with enough CPU, memory and pod slots, no other constraint counts, and all
// nodes are of one type. Placeholders are those of Tracker, without mirrors. Pods wait for nodes that boot. It returns
// an error if the policy or the history is invalid.
func Simulate(h *History, node NodeType, policy *v1alpha1.ResourceSlack, parts int) (Outcome, error) {
	if node.MilliCPU <= 0 || node.Memory <= 0 || node.Interval <= 0 || h.Seconds <= 0 || parts < 1 {
		return Outcome{}, errors.New("a node type must have CPU, memory and an interval, and a history a length and at least one part")
	}
	s := &simulation{
		history: h, node: node, shapes: map[resources.Amounts]int{}, nextEnd: make([]int32, len(h.Pods)),
		ends: make([]int32, h.Seconds), nodeOf: make([]int32, len(h.Pods)), lastAdded: -node.AfterAdd,
	}
	for i := range s.ends {
		s.ends[i] = nobody
	}
	if policy != nil {
		policy = policy.DeepCopy()
		policy.Spec.Default()
		if _, err := policyOf(policy); err != nil {
			return Outcome{}, err
		}
		calendar, _ := policy.Spec.Calendar() // valid
		s.policy, s.schedule = policy, &activeSchedule{calendar: calendar}
	}
	s.outcome.Waits = Waits{}
	for range parts {
		s.outcome.Parts = append(s.outcome.Parts, Part{Waits: Waits{}})
	}
	s.run()
	return s.outcome, nil
}

// nobody is the index of no pod, and nowhere that of no node.
const (
	nobody  = -1
	nowhere = -1
)

// simulation is the state of Simulate. Nodes and pods are numbers.
type simulation struct {
	history  *History
	node     NodeType
	policy   *v1alpha1.ResourceSlack
	schedule *activeSchedule
	planner  planner
	groups   []sizeGroup
	groupsOf groupsKey
	outcome  Outcome

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
	// ends has the first pod that ends at a second, nextEnd the next one after a pod.
	ends, nextEnd, nodeOf []int32
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
	free  resources.Amounts
	slots int64
	// slack is the requests of the placeholders on the node.
	slack resources.Amounts
	pods  []int32
	// low is the second since which the node has a low utilization, -1 if it has not.
	low   int64
	alive bool
}

// exceeds reports whether the pods of the node leave at least the requests.
func (n *simulatedNode) exceeds(requests resources.Amounts) bool {
	return n.free[resources.CPU] >= requests[resources.CPU] && n.free[resources.Memory] >= requests[resources.Memory]
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
	for range min(s.missing(s.slackGroups(0)), max(0, s.node.Max-s.alive)) {
		s.addNode()
	}
	return next
}

// fitsNode reports whether a pod fits an empty node, and counts it otherwise.
func (s *simulation) fitsNode(p *HistoryPod) bool {
	if p.MilliCPU > s.node.MilliCPU || p.Memory > s.node.Memory {
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
	arrival := s.history.Pods[pod].Arrival
	s.outcome.Waits[now-arrival]++
	s.partOf(arrival).Waits[now-arrival]++
}

// addNode adds a ready node.
func (s *simulation) addNode() {
	node := simulatedNode{free: s.node.capacity(), slots: s.node.Slots, low: -1, alive: true}
	s.alive++
	s.failed, s.changed = s.failed[:0], true
	for i := range s.nodes {
		if !s.nodes[i].alive {
			s.nodes[i] = node
			return
		}
	}
	s.nodes = append(s.nodes, node)
}

// place places a pod on the first node that it fits on, and reports whether there is one.
func (s *simulation) place(pod int32, now int64) bool {
	p := &s.history.Pods[pod]
	i := s.find(p.requests(), nowhere, false)
	if i == nowhere {
		return false
	}
	s.assign(pod, i)
	s.requested = s.requested.Add(p.requests())
	if count(s.shapes, p.requests(), 1); s.shapes[p.requests()] == 1 {
		s.largest = s.largest.Max(p.requests())
	}
	if end := now + max(p.Duration, 1); p.Duration < s.history.Seconds && end < s.history.Seconds {
		s.nextEnd[pod], s.ends[end] = s.ends[end], pod
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
		if !n.exceeds(requests) || n.slots < 1 || !n.alive || i == other || besideSlack && !requests.FitsIn(n.free.Minus(n.slack)) {
			continue
		}
		return i
	}
	if !besideSlack {
		s.failed = append(s.failed, requests)
	}
	return nowhere
}

// assign assigns a pod to a node.
func (s *simulation) assign(pod int32, node int) {
	n := &s.nodes[node]
	n.free, n.slots, n.pods = n.free.Minus(s.history.Pods[pod].requests()), n.slots-1, append(n.pods, pod)
	s.nodeOf[pod], s.changed = int32(node), true
}

// endPods ends the pods that end at a second, and reports whether there are any.
func (s *simulation) endPods(now int64) bool {
	first := s.ends[now]
	for pod := first; pod != nobody; pod = s.nextEnd[pod] {
		n, requests := &s.nodes[s.nodeOf[pod]], s.history.Pods[pod].requests()
		n.free, n.slots = n.free.Add(requests), n.slots+1
		for i := range n.pods {
			if n.pods[i] == pod {
				n.pods[i] = n.pods[len(n.pods)-1]
				n.pods = n.pods[:len(n.pods)-1]
				break
			}
		}
		s.requested = s.requested.Minus(requests)
		if count(s.shapes, requests, -1); s.shapes[requests] == 0 {
			s.largest = resources.Amounts{}
			for shape := range s.shapes {
				s.largest = s.largest.Max(shape)
			}
		}
	}
	if first == nobody {
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

// slackGroups returns the placeholders that the policy requires at a second.
func (s *simulation) slackGroups(now int64) []sizeGroup {
	if s.policy == nil {
		return nil
	}
	s.schedule.advance(&s.policy.Spec, s.history.Start.Add(time.Duration(now)*time.Second))
	nodes := max(s.alive, 1)
	if s.groups != nil && s.groupsOf == (groupsKey{s.requested, s.largest, nodes, s.schedule.from}) {
		return s.groups
	}
	pool := poolTotals{
		Requested: s.requested, Allocatable: s.node.capacity().Multiply(int64(nodes)), Nodes: nodes, Matching: nodes,
		MaxPodRequests: s.largest, LargestByCPU: s.largest, LargestByMemory: s.largest, Shapes: []resources.Amounts{s.node.capacity()},
	}
	plan := s.planner.Next(pool, s.schedule.policy, now)
	s.groups = s.groups[:0]
	for _, size := range plan.Head {
		s.groups = append(s.groups, sizeGroup{size, 1})
	}
	s.groups, s.groupsOf = append(s.groups, plan.Rest), groupsKey{s.requested, s.largest, nodes, s.schedule.from}
	s.changed = true
	if plan.CoolDownEnd != 0 {
		s.groupsOf = groupsKey{}
	}
	return s.groups
}

// groupsKey is the state for which placeholders are planned.
type groupsKey struct {
	requested, largest resources.Amounts
	nodes              int
	scheduled          time.Time
}

// pass is a pass of the autoscaler.
func (s *simulation) pass(now int64) {
	groups := s.slackGroups(now)
	if s.changed || now >= s.nextRemoval { // else the pass would do nothing
		s.changed = false
		room := max(0, s.node.Max-s.alive-len(s.booting))
		missing := s.missing(groups)
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
	for _, group := range groups {
		held = held.Add(group.total())
	}
	s.outcome.SlackCost += hours * s.node.Cost * max(float64(held[resources.CPU])/float64(s.node.MilliCPU),
		float64(held[resources.Memory])/float64(s.node.Memory))
}

// missing places placeholders on the ready nodes, and returns how many nodes the pending pods and the other placeholders require
// in addition to the booting nodes.
func (s *simulation) missing(groups []sizeGroup) int {
	for _, i := range s.withSlack {
		s.nodes[i].slack = resources.Amounts{}
	}
	s.withSlack = s.withSlack[:0]
	var others []sizeGroup
	for _, group := range groups {
		for i := 0; i < len(s.nodes) && group.Count > 0; i++ {
			n := &s.nodes[i]
			if !n.alive || !n.exceeds(group.Size) {
				continue
			}
			if placed := min(group.Count, timesIn(group.Size, n.free.Minus(n.slack))); placed > 0 {
				n.slack, group.Count = n.slack.Add(group.Size.Multiply(placed)), group.Count-placed
				s.withSlack = append(s.withSlack, i)
			}
		}
		if group.Count > 0 && !group.Size.IsZero() {
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
		bins[i] = s.node.capacity()
	}
	first := map[resources.Amounts]int{} // the first bin on which requests may fit
	for _, pod := range s.pending {
		requests := s.history.Pods[pod].requests()
		i := first[requests]
		for i < len(bins) && !requests.FitsIn(bins[i]) {
			i++
		}
		if i == len(bins) {
			bins = append(bins, s.node.capacity())
		}
		bins[i], first[requests] = bins[i].Minus(requests), i
	}
	for _, group := range groups {
		for i := 0; group.Count > 0 && (i < len(bins) || group.Size.FitsIn(s.node.capacity())); i++ {
			if i == len(bins) {
				bins = append(bins, s.node.capacity())
			}
			placed := min(group.Count, timesIn(group.Size, bins[i]))
			bins[i], group.Count = bins[i].Minus(group.Size.Multiply(placed)), group.Count-placed
		}
	}
	return len(bins) - len(s.booting)
}
