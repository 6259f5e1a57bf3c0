package slack

import "math"

// removeNodes removes nodes whose pods and placeholders fit on other nodes, unless removals are on hold: nodes without pods,
// and one with pods.
func (s *simulation) removeNodes(now int64, hold bool) {
	drained := false
	s.nextRemoval = math.MaxInt64
	for i := len(s.nodes) - 1; i >= 0; i-- {
		n := &s.nodes[i]
		if !n.alive {
			continue
		}
		used := s.empty.Minus(n.free).Add(n.slack)
		if used.MaxFraction(s.node.capacity()) >= s.node.Utilization {
			n.low = -1
			continue
		}
		if n.low < 0 {
			n.low = now
		}
		s.nextRemoval = min(s.nextRemoval, max(n.low+s.node.Idle, s.lastAdded+s.node.AfterAdd))
		if hold || now-n.low < s.node.Idle || drained && len(n.pods) > 0 || !s.canMove(i) {
			continue
		}
		drained = drained || len(n.pods) > 0
		for _, pod := range n.pods {
			s.assign(pod, s.find(s.requests(pod), i, true))
		}
		if !n.slack.IsZero() {
			other := s.find(n.slack, i, true)
			s.nodes[other].slack = s.nodes[other].slack.Add(n.slack)
			s.withSlack = append(s.withSlack, other)
		}
		*n = simulatedNode{}
		s.alive--
		s.changed = true
	}
}

// canMove reports whether the pods and placeholders of a node fit on other nodes.
func (s *simulation) canMove(node int) bool {
	n := &s.nodes[node]
	var moved []int32
	defer func() {
		for _, pod := range moved {
			other := &s.nodes[s.nodeOf[pod]]
			other.free, other.pods = other.free.Add(s.requests(pod)), other.pods[:len(other.pods)-1]
			s.nodeOf[pod] = int32(node)
		}
	}()
	for _, pod := range n.pods {
		i := s.find(s.requests(pod), node, true)
		if i == nowhere {
			return false
		}
		s.assign(pod, i)
		moved = append(moved, pod)
	}
	return n.slack.IsZero() || s.find(n.slack, node, true) != nowhere
}
