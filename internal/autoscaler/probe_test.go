package autoscaler

import (
	"context"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
)

// fakeProbe fits pods on groups by a rule, records the assignments, and fails the
// test on an impossible call.
type fakeProbe struct {
	t interface {
		Helper()
		Fatalf(format string, args ...any)
	}
	groups   []int // of the nodes
	rule     func(pod, group int) bool
	assigned map[int]int // pods to nodes
}

func newFakeProbe(t *testing.T) *fakeProbe {
	return &fakeProbe{t: t, assigned: map[int]int{}, rule: func(int, int) bool { return true }}
}

func (p *fakeProbe) Fits(_ context.Context, pod, node int) bool { return p.rule(pod, p.groups[node]) }

func (p *fakeProbe) Assign(_ context.Context, pod, node int) {
	p.t.Helper()
	if current, ok := p.assigned[pod]; ok {
		p.t.Fatalf("pod %d is assigned to node %d, but is on %d", pod, node, current)
	}
	p.assigned[pod] = node
}

func (p *fakeProbe) Unassign(_ context.Context, pod, node int) {
	p.t.Helper()
	if current, ok := p.assigned[pod]; !ok || current != node {
		p.t.Fatalf("pod %d is unassigned from node %d, but is on %d (%t)", pod, node, current, ok)
	}
	delete(p.assigned, pod)
}

func (p *fakeProbe) AddNode(group int) { p.groups = append(p.groups, group) }

func (p *fakeProbe) RemoveLastNode(context.Context) {
	last := len(p.groups) - 1
	for pod, node := range p.assigned {
		if node == last {
			p.t.Fatalf("node %d is removed with pod %d", node, pod)
		}
	}
	p.groups = p.groups[:last]
}

// cores returns amounts of CPU cores and pod slots.
func cores(n, slots int64) resources.Amounts {
	return resources.Amounts{CPU: n, Pods: slots}
}
