package replay

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/autoscale"
)

// site is what an autoscaler tries things out on: the scheduler itself, for pods
// that are not plain. What was tried is undone in the end.
type site struct {
	ctx    context.Context
	run    *run
	pods   []candidate
	nodes  []place
	opened int
	// staged are pods that the scheduler has for the trial only, by their numbers.
	staged map[int]*v1.Pod
	err    error
}

// candidate is a pod that is tried.
type candidate struct {
	object *v1.Pod
	class  int
	// home is where it runs, if it does; its object there, while it was taken off.
	home  int
	there *v1.Pod
}

// place is a node that pods are tried on.
type place struct {
	object *v1.Node
	kind   int
	// known: the scheduler has it.
	known, trial bool
}

var _ autoscale.Site = (*site)(nil)

func newSite(ctx context.Context, r *run) *site {
	return &site{ctx: ctx, run: r, staged: map[int]*v1.Pod{}}
}

// Admits implements autoscale.Site.
func (s *site) Admits(pod, node int) bool {
	if s.err != nil {
		return false
	}
	p, at := &s.pods[pod], &s.nodes[node]
	var ok bool
	if p.class != 0 {
		ok, s.err = s.run.scaler.fit.admits(s.ctx, p.class, at.kind)
	} else {
		s.stage(at)
		ok, s.err = s.run.engine.Fits(s.ctx, p.object, at.object.Name)
	}
	return ok && s.err == nil
}

// stage lets the scheduler know of a node that is not there yet.
func (s *site) stage(at *place) {
	if !at.known {
		s.run.engine.AddNode(s.ctx, at.object)
		at.known = true
	}
}

// Put implements autoscale.Site.
func (s *site) Put(pod, node int) {
	p, at := &s.pods[pod], &s.nodes[node]
	if s.err != nil || p.class != 0 {
		return
	}
	if p.there != nil && p.home == node {
		s.err = s.run.engine.Put(s.ctx, p.there)
		p.there = nil
		return
	}
	s.stage(at)
	s.staged[pod] = bound(p.object, at.object.Name)
	s.err = s.run.engine.Put(s.ctx, s.staged[pod])
}

// Take implements autoscale.Site.
func (s *site) Take(pod, node int) {
	p := &s.pods[pod]
	if s.err != nil || p.class != 0 {
		return
	}
	lifted, err := s.run.engine.Lift(s.ctx, p.object)
	s.err = err
	if _, trial := s.staged[pod]; trial {
		delete(s.staged, pod)
		return
	}
	p.home, p.there = node, lifted
}

// Open implements autoscale.Site.
func (s *site) Open(number int) {
	g := &s.run.scaler.groups[number]
	s.opened++
	s.nodes = append(s.nodes, place{object: g.node(fmt.Sprintf("%s on trial %d", g.Name, s.opened)), kind: g.kind, trial: true})
}

// Close implements autoscale.Site.
func (s *site) Close() {
	s.forget(&s.nodes[len(s.nodes)-1])
	s.nodes = s.nodes[:len(s.nodes)-1]
}

func (s *site) forget(at *place) {
	if at.trial && at.known && s.err == nil {
		s.err = s.run.engine.RemoveNode(s.ctx, at.object)
	}
}

// end undoes what was tried, and returns what went wrong.
func (s *site) end() error {
	for pod := range s.pods {
		if _, trial := s.staged[pod]; trial && s.err == nil {
			_, s.err = s.run.engine.Lift(s.ctx, s.pods[pod].object)
		}
	}
	for i := range s.nodes {
		s.forget(&s.nodes[i])
	}
	return s.err
}
