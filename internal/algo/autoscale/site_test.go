package autoscale

import "testing"

// fakeSite admits pods to groups by a rule, keeps count of what is where, and
// complains about what cannot be.
type fakeSite struct {
	t interface {
		Helper()
		Fatalf(format string, args ...any)
	}
	groups []int // of the nodes
	rule   func(pod, group int) bool
	on     map[int]int // pods to nodes
}

func newFakeSite(t *testing.T) *fakeSite {
	return &fakeSite{t: t, on: map[int]int{}, rule: func(int, int) bool { return true }}
}

func (s *fakeSite) Admits(pod, node int) bool { return s.rule(pod, s.groups[node]) }

func (s *fakeSite) Put(pod, node int) {
	s.t.Helper()
	if at, there := s.on[pod]; there {
		s.t.Fatalf("pod %d is put on node %d, and is on %d", pod, node, at)
	}
	s.on[pod] = node
}

func (s *fakeSite) Take(pod, node int) {
	s.t.Helper()
	if at, there := s.on[pod]; !there || at != node {
		s.t.Fatalf("pod %d is taken from node %d, and is on %d (%t)", pod, node, at, there)
	}
	delete(s.on, pod)
}

func (s *fakeSite) Open(group int) { s.groups = append(s.groups, group) }

func (s *fakeSite) Close() {
	last := len(s.groups) - 1
	for pod, node := range s.on {
		if node == last {
			s.t.Fatalf("node %d goes with pod %d", node, pod)
		}
	}
	s.groups = s.groups[:last]
}

// cores returns amounts of so many cores, and slots.
func cores(n, slots int64) Amounts { return Amounts{CPU: n, Slots: slots} }
