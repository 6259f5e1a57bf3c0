package scaling

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
)

// schedulerProbe implements Probe: with the scheduler for pods that depend on other pods, with
// cached results for the remaining pods. Its changes to the scheduler are reverted by end.
type schedulerProbe struct {
	scaler *Autoscaler
	pods   []probedPod
	nodes  []probedNode
	added  int // number of nodes ever added
	// fitting runs the filters for the pod fitted, which is nil if the scheduler has changed since.
	fitted  *v1.Pod
	fitting func(node string) (bool, error)
	// err is the first error. After an error all calls return immediately.
	err error
}

// probedPod is a pod of a probe.
type probedPod struct {
	object *v1.Pod
	class  int
	// staged is set while the probe has added the pod to the scheduler, and removed is the pod as it ran on its node while the probe
	// has removed it.
	staged  bool
	removed *v1.Pod
}

// probedNode is a node of a probe.
type probedNode struct {
	object *v1.Node
	kind   int
	// inScheduler is set if the scheduler has the node, temporary if the probe added it.
	inScheduler, temporary bool
}

var _ autoscaler.Probe = (*schedulerProbe)(nil)

// add adds a pod of a call.
func (s *schedulerProbe) add(pod *v1.Pod, item autoscaler.Item) {
	s.pods = append(s.pods, probedPod{object: recording.Unbind(pod), class: item.Class})
}

// Fits implements Probe.
func (s *schedulerProbe) Fits(ctx context.Context, pod, node int) bool {
	if s.err != nil {
		return false
	}
	p, n := &s.pods[pod], &s.nodes[node]
	var ok bool
	if p.class != 0 {
		ok, s.err = s.scaler.compatibility.fits(ctx, p, n)
	} else {
		s.stage(ctx, n)
		if s.fitted != p.object {
			s.fitted = p.object
			if s.fitting, s.err = s.scaler.engine.Fitting(ctx, p.object); s.err != nil {
				return false
			}
		}
		ok, s.err = s.fitting(n.object.Name)
	}
	return ok && s.err == nil
}

// stage adds a node to the scheduler if the scheduler does not have it.
func (s *schedulerProbe) stage(ctx context.Context, n *probedNode) {
	if !n.inScheduler {
		s.scaler.engine.AddNode(ctx, n.object)
		n.inScheduler, s.fitted = true, nil
	}
}

// Assign implements Probe.
func (s *schedulerProbe) Assign(ctx context.Context, pod, node int) {
	p, n := &s.pods[pod], &s.nodes[node]
	if s.err != nil || p.class != 0 {
		return
	}
	s.fitted = nil
	if p.removed != nil && p.removed.Spec.NodeName == n.object.Name {
		s.err = s.scaler.engine.AssignPod(ctx, p.removed)
		p.removed = nil
		return
	}
	s.stage(ctx, n)
	p.staged = true
	s.err = s.scaler.engine.AssignPod(ctx, recording.Bind(p.object, n.object.Name))
}

// Unassign implements Probe.
func (s *schedulerProbe) Unassign(ctx context.Context, pod, _ int) {
	p := &s.pods[pod]
	if s.err != nil || p.class != 0 {
		return
	}
	s.fitted = nil
	var removed *v1.Pod
	if removed, s.err = s.scaler.engine.UnassignPod(ctx, p.object); !p.staged {
		p.removed = removed
	}
	p.staged = false
}

// AddNode implements Probe.
func (s *schedulerProbe) AddNode(group int) {
	g := &s.scaler.groups[group]
	s.added++
	s.nodes = append(s.nodes, probedNode{object: g.node(fmt.Sprintf("%s-probe-%d", g.spec.Name, s.added)), kind: g.kind, temporary: true})
}

// RemoveLastNode implements Probe.
func (s *schedulerProbe) RemoveLastNode(ctx context.Context) {
	s.unstage(ctx, &s.nodes[len(s.nodes)-1])
	s.nodes = s.nodes[:len(s.nodes)-1]
}

// unstage removes a node from the scheduler if the probe added it.
func (s *schedulerProbe) unstage(ctx context.Context, n *probedNode) {
	if n.temporary && n.inScheduler && s.err == nil {
		s.fitted = nil
		s.err = s.scaler.engine.RemoveNode(ctx, n.object)
	}
}

// end removes the pods and nodes of the probe from the scheduler, and returns the
// first error.
func (s *schedulerProbe) end(ctx context.Context) error {
	for pod := range s.pods {
		if s.pods[pod].staged && s.err == nil {
			_, s.err = s.scaler.engine.UnassignPod(ctx, s.pods[pod].object)
		}
	}
	for i := range s.nodes {
		s.unstage(ctx, &s.nodes[i])
	}
	return s.err
}
