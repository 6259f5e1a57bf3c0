package slack

import (
	v1 "k8s.io/api/core/v1"

	algo "github.com/plimsoll-k8s/plimsoll/internal/algo/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
)

// seats are the nodes of one iteration, as placeholders take what real pods
// leave.
type seats struct {
	*Loop
	pods []*v1.Pod
	// spare is what nodes have, once somebody has asked.
	spare map[string]*algo.Spare
	// scalars are what they have of devices and the like, once somebody has asked.
	scalars map[string]v1.ResourceList
}

func (l *Loop) newSeats(pods []*v1.Pod) *seats {
	return &seats{Loop: l, pods: pods, spare: map[string]*algo.Spare{}}
}

// of returns what tells whether a placeholder of a group may stay on a node, and
// takes the room if so.
func (s *seats) of(group *Group) func(placeholder *v1.Pod, node string) bool {
	size := amountsOf(group.Requests)
	if group.Mirror == nil {
		return func(_ *v1.Pod, name string) bool {
			spare := s.at(name)
			if !spare.InPool || !holds(spare, size) {
				return false
			}
			take(spare, size)
			return true
		}
	}
	admitted := admits(group.Mirror)
	anti := newApart(group.Mirror)
	if len(anti.terms) > 0 {
		for _, pod := range s.pods {
			if node := s.tracker.nodes[pod.Spec.NodeName]; node != nil && observePod(pod).Node != "" {
				anti.add(pod, node)
			}
		}
	}
	return func(placeholder *v1.Pod, name string) bool {
		spare, node := s.at(name), s.tracker.nodes[name]
		if node == nil || !holds(spare, size) || !admitted(node) || !anti.from(node) || !s.takeScalars(name, group.Requests) {
			return false
		}
		anti.add(placeholder, node)
		take(spare, size)
		return true
	}
}

// at returns what a node has left.
func (s *seats) at(name string) *algo.Spare {
	spare := s.spare[name]
	if spare == nil {
		is := s.tracker.ledger.Spare(name)
		spare = &is
		s.spare[name] = spare
	}
	return spare
}

// holds reports whether there is room for a placeholder of a size.
func holds(spare *algo.Spare, size algo.Amounts) bool {
	return spare.Usable && spare.Slots >= 1 && size.FitsIn(spare.Free)
}

// take takes it.
func take(spare *algo.Spare, size algo.Amounts) {
	spare.Free = spare.Free.Minus(size)
	spare.Slots--
}

// takeScalars takes what a placeholder requests beside CPU and memory, if it is
// there.
func (s *seats) takeScalars(name string, requests v1.ResourceList) bool {
	wanted := v1.ResourceList{}
	for resource, quantity := range requests {
		if resource != v1.ResourceCPU && resource != v1.ResourceMemory && quantity.Sign() > 0 {
			wanted[resource] = quantity
		}
	}
	if len(wanted) == 0 {
		return true
	}
	if s.scalars == nil {
		s.countScalars()
	}
	left := s.scalars[name]
	for resource, quantity := range wanted {
		if there := left[resource]; there.Cmp(quantity) < 0 {
			return false
		}
	}
	for resource, quantity := range wanted {
		there := left[resource]
		there.Sub(quantity)
		left[resource] = there
	}
	return true
}

// countScalars adds up what real pods leave of everything.
func (s *seats) countScalars() {
	s.scalars = make(map[string]v1.ResourceList, len(s.tracker.nodes))
	for name, node := range s.tracker.nodes {
		s.scalars[name] = node.Status.Allocatable.DeepCopy()
	}
	for _, pod := range s.pods {
		left := s.scalars[pod.Spec.NodeName]
		if left == nil || observePod(pod).Node == "" {
			continue
		}
		for resource, quantity := range noderes.Requests(pod) {
			if there, ok := left[resource]; ok {
				there.Sub(quantity)
				left[resource] = there
			}
		}
	}
}
