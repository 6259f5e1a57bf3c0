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
		if due := max(n.low+s.node.Idle, s.lastAdded+s.node.AfterAdd); now < due { // later, only a change makes a removal possible
			s.nextRemoval = min(s.nextRemoval, due)
		}
		hasPods := len(n.pods) > 0
		if hold || now-n.low < s.node.Idle || drained && hasPods || !s.move(i) {
			continue
		}
		drained = drained || hasPods
		*n = simulatedNode{}
		s.alive--
		s.changed = true
	}
}

// move moves the pods and placeholders of a node to other nodes. If they do not fit, it moves none and returns false.
func (s *simulation) move(node int) bool {
	n, moved, changed := &s.nodes[node], 0, s.changed
	for ; moved < len(n.pods); moved++ {
		i := s.find(s.requests(n.pods[moved]), node, true)
		if i == nowhere {
			break
		}
		s.assign(n.pods[moved], i)
	}
	fits := moved == len(n.pods)
	if fits && !n.slack.IsZero() {
		i := s.find(n.slack, node, true)
		if fits = i != nowhere; fits {
			s.nodes[i].slack, s.withSlack = s.nodes[i].slack.Add(n.slack), append(s.withSlack, i)
		}
	}
	if fits {
		return true
	}
	for _, pod := range n.pods[:moved] {
		other := &s.nodes[s.nodeOf[pod]]
		other.free, other.pods = other.free.Add(s.requests(pod)), other.pods[:len(other.pods)-1]
		s.nodeOf[pod] = int32(node)
	}
	s.changed = changed
	return false
}
