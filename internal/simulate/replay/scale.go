package replay

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/autoscale"
	"github.com/plimsoll-k8s/plimsoll/internal/trace"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// look is what an autoscaler sees when it looks.
type look struct {
	*run
	ctx context.Context
	// up are the nodes that are there, free what they have beside pods and
	// placeholders; at is where each is in up.
	up   []int32
	free []autoscale.Amounts
	at   map[string]int
	// held are the placeholders of the plan, classes and needs theirs.
	plan    slack.Plan
	held    []*v1.Pod
	classes []int
	needs   []trace.Amounts
}

// scale lets the autoscaler look, if it is time.
func (r *run) scale(ctx context.Context) error {
	s := r.scaler
	if s == nil || r.now < s.due || r.interrupted() {
		return nil
	}
	s.due = (r.now/s.Loop.Interval + 1) * s.Loop.Interval
	l := &look{run: r, ctx: ctx, at: map[string]int{}}
	for i := range r.nodes {
		if n := &r.nodes[i]; n.up {
			l.at[n.name] = len(l.up)
			l.up = append(l.up, int32(i))
			free := withSlot(n.free)
			free[autoscale.Slots] = n.slots
			l.free = append(l.free, free)
		}
	}
	if err := l.hold(); err != nil {
		return err
	}
	err := l.scale()
	if released := l.release(); err == nil {
		err = released
	}
	if err != nil {
		return err
	}
	return r.retry(ctx)
}

// scale adds nodes and takes nodes away.
func (l *look) scale() error {
	if err := l.settle(); err != nil {
		return err
	}
	if p := l.scaler.slack; p != nil {
		p.kept.look(l.now, l.plan, l.held, l.needs)
	}
	hold, err := l.grow()
	if err != nil {
		return err
	}
	return l.shrink(hold)
}

// hold finds out what of the slack is where. The scheduler is told of placeholders
// that are not plain, for as long as the look takes.
func (l *look) hold() error {
	p := l.scaler.slack
	if p == nil {
		return nil
	}
	held, plan := p.next(l.run)
	l.held, l.plan, p.held = held, plan, held
	l.classes, l.needs = make([]int, len(held)), make([]trace.Amounts, len(held))
	// Those of a group are equal.
	for i, pod := range held {
		if i > 0 && sameGroup(pod, held[i-1]) {
			l.classes[i], l.needs[i] = l.classes[i-1], l.needs[i-1]
		} else {
			l.classes[i], l.needs[i] = l.scaler.fit.class(pod), requested(pod)
		}
		node, on := l.at[pod.Spec.NodeName]
		if !on {
			continue
		}
		l.free[node] = l.free[node].Minus(withSlot(l.needs[i]))
		if l.classes[i] == 0 {
			if err := l.engine.Put(l.ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// sameGroup reports whether two placeholders, one after the other, are of one group.
func sameGroup(a, b *v1.Pod) bool {
	cut := func(name string) string {
		for len(name) > 0 && name[len(name)-1] >= '0' && name[len(name)-1] <= '9' {
			name = name[:len(name)-1]
		}
		return name
	}
	return a.Namespace == b.Namespace && cut(a.Name) == cut(b.Name)
}

// release takes the placeholders from the scheduler again.
func (l *look) release() error {
	for i, pod := range l.held {
		if _, on := l.at[pod.Spec.NodeName]; on && l.classes[i] == 0 {
			if _, err := l.engine.Lift(l.ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// places returns the nodes that are there.
func (l *look) places() []place {
	places := make([]place, len(l.up))
	for i, number := range l.up {
		places[i] = place{object: l.Nodes[number].Object, kind: l.scaler.nodes[number].kind, known: true}
	}
	return places
}

// settle puts the placeholders that have no node on nodes that are there.
func (l *look) settle() error {
	if len(l.held) == 0 {
		return nil
	}
	at := newSite(l.ctx, l.run)
	at.nodes = l.places()
	var pods []autoscale.Pod
	var numbers []int
	for i, pod := range l.held {
		if pod.Spec.NodeName == "" {
			pods = append(pods, autoscale.Pod{Needs: withSlot(l.needs[i]), Class: l.classes[i], Placeholder: true})
			at.pods = append(at.pods, candidate{object: pod, class: l.classes[i]})
			numbers = append(numbers, i)
		}
	}
	on := autoscale.Place(pods, l.free, at)
	if err := at.end(); err != nil {
		return err
	}
	for i, node := range on {
		if node < 0 {
			continue
		}
		pod := l.held[numbers[i]]
		pod.Spec.NodeName = l.nodes[l.up[node]].name
		l.free[node] = l.free[node].Minus(pods[i].Needs)
		if pods[i].Class == 0 {
			if err := l.engine.Put(l.ctx, pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow makes nodes for what waits. It returns whether nothing may go now.
func (l *look) grow() (hold bool, err error) {
	s := l.scaler
	at := newSite(l.ctx, l.run)
	var pods []autoscale.Pod
	for _, number := range l.queue.waiting {
		p := &l.Pods[number]
		class := s.fit.classOf(l.run, number)
		pods = append(pods, autoscale.Pod{Needs: needsOf(p), Class: class})
		at.pods = append(at.pods, candidate{object: p.Object, class: class})
	}
	for i, pod := range l.held {
		if pod.Spec.NodeName == "" {
			pods = append(pods, autoscale.Pod{Needs: withSlot(l.needs[i]), Class: l.classes[i], Placeholder: true})
			at.pods = append(at.pods, candidate{object: pod, class: l.classes[i]})
		}
	}
	clear(s.fates)
	if len(pods) == 0 {
		return false, nil
	}
	var booting []int
	for _, number := range l.boots[l.booted:] {
		if group := s.nodes[number].group; group != noGroup && int(number) >= s.input() {
			booting = append(booting, group)
		}
	}
	groups := make([]autoscale.Group, len(s.groups))
	for i := range s.groups {
		g := &s.groups[i]
		groups[i] = autoscale.Group{Has: g.has, More: max(g.Max-g.nodes, 0), Cost: g.Cost}
	}
	growth := autoscale.Grow(pods, booting, groups, at)
	if err := at.end(); err != nil {
		return false, err
	}
	for i, number := range l.queue.waiting {
		s.fates[number] = growth.Fates[i]
		hold = hold || growth.Fates[i] != autoscale.Unfit
	}
	if !growth.Added() {
		return hold, nil
	}
	s.added = l.now
	s.done.ScaleUps++
	for group, nodes := range growth.Nodes {
		for range nodes {
			l.order(group)
		}
		s.done.NodesAdded += nodes
	}
	return true, nil
}

// order makes a node that boots.
func (r *run) order(group int) {
	s := r.scaler
	node := s.newNode(group, r.now, r.Nodes)
	node.Boot = r.now + s.groups[group].Boot
	number := int32(len(r.Nodes))
	s.nodes[number].kind = s.groups[group].kind
	r.Nodes = append(r.Nodes, node)
	r.nodes = append(r.nodes, newNode(node.Object))
	r.byName[node.Object.Name] = number
	i := r.booted
	for i < len(r.boots) && r.Nodes[r.boots[i]].Boot <= node.Boot {
		i++
	}
	r.boots = slices.Insert(r.boots, i, number)
}

// shrink takes nodes away that nobody needs.
func (l *look) shrink(hold bool) error {
	s := l.scaler
	in := autoscale.Shrink{
		Threshold: s.Loop.Utilization, Idle: s.Loop.Idle,
		Hold: hold || s.added > -never && l.now-s.added < s.Loop.AfterAdd,
	}
	for i := range s.groups {
		in.Spare = append(in.Spare, max(s.groups[i].nodes-s.groups[i].Min, 0))
	}
	at := newSite(l.ctx, l.run)
	at.nodes = l.places()
	candidates := make([]bool, len(l.up))
	for i, number := range l.up {
		is := &s.nodes[number]
		node := autoscale.Node{Name: l.nodes[number].name, Group: is.group, Free: l.free[i]}
		if is.group != noGroup && in.Spare[is.group] > 0 {
			node.Utilization = autoscale.Utilization(is.has.Minus(l.free[i]), is.has)
			candidates[i] = node.Utilization < in.Threshold
		}
		if candidates[i] {
			l.movable(number, &node, &in, at)
		}
		in.Nodes = append(in.Nodes, node)
	}
	for i, pod := range l.held {
		if node, on := l.at[pod.Spec.NodeName]; on && candidates[node] {
			in.Nodes[node].Pods = append(in.Nodes[node].Pods, len(in.Pods))
			in.Pods = append(in.Pods, autoscale.Pod{Needs: withSlot(l.needs[i]), Class: l.classes[i], Placeholder: true})
			at.pods = append(at.pods, candidate{object: unbound(pod), class: l.classes[i]})
		}
	}
	gone := s.shrinker.Next(l.now, in, at)
	if err := at.end(); err != nil {
		return err
	}
	for _, node := range gone {
		if err := l.remove(l.ctx, l.up[node]); err != nil {
			return err
		}
	}
	return nil
}

// movable adds the pods that would have to move from a node.
func (l *look) movable(number int32, node *autoscale.Node, in *autoscale.Shrink, at *site) {
	for _, pod := range l.nodes[number].pods {
		if l.scaler.daemons[pod] {
			continue
		}
		p, class := &l.Pods[pod], l.scaler.fit.classOf(l.run, pod)
		node.Fixed = node.Fixed || stays(p.Object)
		node.Pods = append(node.Pods, len(in.Pods))
		in.Pods = append(in.Pods, autoscale.Pod{Needs: needsOf(p), Class: class})
		at.pods = append(at.pods, candidate{object: unbound(p.Object), class: class})
	}
}

// unbound returns a pod as one that looks for a node.
func unbound(pod *v1.Pod) *v1.Pod {
	if pod.Spec.NodeName == "" {
		return pod
	}
	free := *pod
	free.Spec.NodeName = ""
	free.Status.Conditions = slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
	return &free
}

// remove takes a node away. Its pods wait for another one, and then go on with
// what is left of their time; its daemons go with it.
func (r *run) remove(ctx context.Context, number int32) error {
	s, n := r.scaler, &r.nodes[number]
	for _, pod := range slices.Clone(n.pods) {
		if err := r.leave(ctx, pod); err != nil {
			return err
		}
		if s.daemons[pod] {
			continue
		}
		p, is := &r.Pods[pod], &r.pods[pod]
		p.Object = unbound(p.Object)
		if p.Runs != trace.Never {
			p.Runs = is.until - r.now
		}
		is.waits = r.now
		r.queue.waiting = append(r.queue.waiting, pod)
		r.queue.why[pod] = "its node was taken away"
		r.queue.changed = true
		r.sums.AddEviction()
	}
	n.up = false
	delete(r.byName, n.name)
	s.groups[s.nodes[number].group].nodes--
	s.nodes[number].to = r.now
	s.done.NodesRemoved++
	return r.engine.RemoveNode(ctx, r.Nodes[number].Object)
}

// addDaemons puts the pods on a node that come with the nodes of its group.
func (r *run) addDaemons(ctx context.Context, number int32) error {
	s := r.scaler
	if s == nil || s.nodes[number].group == noGroup || int(number) < s.input() {
		return nil
	}
	for _, of := range s.groups[s.nodes[number].group].daemons {
		daemon, node := r.Pods[of], r.nodes[number].name
		object := bound(daemon.Object, node)
		object.Name = fmt.Sprintf("%s-%s", daemon.Object.Name, node)
		object.UID = types.UID(fmt.Sprintf("%s on %s", daemon.Object.UID, node))
		object.CreationTimestamp = metav1.NewTime(at(r.now))
		daemon.Object, daemon.Arrival = object, r.now
		pod := int32(len(r.Pods))
		r.Pods = append(r.Pods, daemon)
		r.pods = append(r.pods, newPod(r.Usage, pod, &daemon))
		s.daemons[pod] = true
		if err := r.engine.Put(ctx, object); err != nil {
			return err
		}
		r.place(pod, number, r.now)
	}
	return nil
}
