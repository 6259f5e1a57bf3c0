package scaling

import (
	"context"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/autoscaler"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/slack"
)

// pass is the state of one pass.
type pass struct {
	scaler  *Autoscaler
	cluster Cluster
	// free has, for each ready node, the amounts that neither pods nor placeholders
	// use; index has the index of each ready node by name.
	free  []resources.Amounts
	index map[string]int
	// plan and its placeholders.
	plan         slack.Plan
	placeholders []placeholder
	// add are the nodes to add, and remove the numbers of the nodes to remove.
	add    []recording.Node
	remove []int32
}

// placeholder is a placeholder of the slack policy. Its pod names its node, if it has one.
type placeholder struct {
	autoscaler.Item
	pod *v1.Pod
}

func newPass(a *Autoscaler, c Cluster) *pass {
	p := &pass{scaler: a, cluster: c, index: make(map[string]int, len(c.Ready)), free: make([]resources.Amounts, len(c.Ready))}
	for i := range c.Ready {
		n := &c.Ready[i]
		p.index[c.Nodes[n.Number].Object.Name] = i
		p.free[i] = n.Free
	}
	return p
}

// scale places placeholders, adds nodes and removes nodes.
func (p *pass) scale(ctx context.Context) error {
	if err := p.placePlaceholders(ctx); err != nil {
		return err
	}
	if p.scaler.placeholders != nil {
		p.scaler.placeholders.kept.update(p.cluster.Now, resources.CPUAndMemory(p.plan.Target), p.placeholders)
	}
	hold, err := p.scaleUp(ctx)
	if err != nil {
		return err
	}
	return p.removeUnneeded(ctx, hold)
}

// assignPlaceholders computes the placeholders, and assigns the ones that keep their node.
func (p *pass) assignPlaceholders(ctx context.Context) error {
	if p.scaler.placeholders == nil {
		return nil
	}
	var pods []*v1.Pod
	pods, p.plan = p.scaler.placeholders.next(&p.cluster)
	p.placeholders = make([]placeholder, len(pods))
	for i, pod := range pods {
		if i > 0 && sameGroup(pod, pods[i-1]) {
			p.placeholders[i].Item = p.placeholders[i-1].Item
		} else {
			requests := recording.PodAmounts(pod)
			p.placeholders[i].Item = autoscaler.Item{
				Requests: requests, Class: p.scaler.compatibility.podClass(pod, requests), Placeholder: true,
			}
		}
		p.placeholders[i].pod = pod
		if node, assigned := p.index[pod.Spec.NodeName]; assigned {
			if err := p.assign(ctx, &p.placeholders[i], node); err != nil {
				return err
			}
		}
	}
	return nil
}

// assign subtracts a placeholder from the free amounts of its node, which is ready. A placeholder that depends on other pods is added
// to the scheduler for the duration of the pass.
func (p *pass) assign(ctx context.Context, h *placeholder, node int) error {
	p.free[node] = p.free[node].Minus(h.Requests)
	if h.Class != 0 {
		return nil
	}
	return p.scaler.engine.AssignPod(ctx, h.pod)
}

// sameGroup reports whether two consecutive placeholders are of one group, and
// therefore equal.
func sameGroup(a, b *v1.Pod) bool {
	group := func(name string) string { return strings.TrimRight(name, "0123456789") }
	return a.Namespace == b.Namespace && group(a.Name) == group(b.Name)
}

// releasePlaceholders removes the placeholders from the scheduler.
func (p *pass) releasePlaceholders(ctx context.Context) error {
	for _, h := range p.placeholders {
		if _, assigned := p.index[h.pod.Spec.NodeName]; assigned && h.Class == 0 {
			if _, err := p.scaler.engine.UnassignPod(ctx, h.pod); err != nil {
				return err
			}
		}
	}
	return nil
}

// newProbeOfReady returns a probe that has the ready nodes.
func (p *pass) newProbeOfReady() *schedulerProbe {
	probe := &schedulerProbe{scaler: p.scaler}
	for i := range p.cluster.Ready {
		number := p.cluster.Ready[i].Number
		probe.nodes = append(probe.nodes, probedNode{
			object: p.cluster.Nodes[number].Object, kind: p.scaler.nodes[number].kind, inScheduler: true,
		})
	}
	return probe
}

// addPod adds a pod of the run to the pods of a probe, and returns its amounts.
func (p *pass) addPod(probe *schedulerProbe, number int32) autoscaler.Item {
	pod := &p.cluster.Pods[number]
	item := autoscaler.Item{Requests: pod.Requests, Class: p.scaler.compatibility.numberedPodClass(number, pod.Object, pod.Requests)}
	probe.add(pod.Object, item)
	return item
}

// placePlaceholders places the placeholders without a node on ready nodes.
func (p *pass) placePlaceholders(ctx context.Context) error {
	if len(p.placeholders) == 0 {
		return nil
	}
	probe := p.newProbeOfReady()
	var items []autoscaler.Item
	var unplaced []*placeholder
	for i := range p.placeholders {
		if h := &p.placeholders[i]; h.pod.Spec.NodeName == "" {
			probe.add(h.pod, h.Item)
			items, unplaced = append(items, h.Item), append(unplaced, h)
		}
	}
	nodes := autoscaler.Place(ctx, items, p.free, probe)
	if err := probe.end(ctx); err != nil {
		return err
	}
	for i, node := range nodes {
		if node < 0 {
			continue
		}
		unplaced[i].pod.Spec.NodeName = p.cluster.Nodes[p.cluster.Ready[node].Number].Object.Name
		if err := p.assign(ctx, unplaced[i], node); err != nil {
			return err
		}
	}
	return nil
}

// scaleUp adds nodes for pending pods and for placeholders without a node. It returns
// whether no node may be removed in this pass.
func (p *pass) scaleUp(ctx context.Context) (hold bool, err error) {
	probe := &schedulerProbe{scaler: p.scaler}
	var pods []autoscaler.Item
	for _, number := range p.cluster.Pending {
		pods = append(pods, p.addPod(probe, number))
	}
	for _, h := range p.placeholders {
		if h.pod.Spec.NodeName == "" {
			probe.add(h.pod, h.Item)
			pods = append(pods, h.Item)
		}
	}
	clear(p.scaler.podOutcomes)
	if len(pods) == 0 {
		return false, nil
	}
	var booting []int
	for _, number := range p.cluster.Booting {
		if int(number) >= p.scaler.inputSize {
			booting = append(booting, p.scaler.nodes[number].group)
		}
	}
	groups := make([]autoscaler.Group, len(p.scaler.groups))
	for i := range p.scaler.groups {
		g := &p.scaler.groups[i]
		groups[i] = autoscaler.Group{Allocatable: g.allocatable, Headroom: max(g.spec.Max-g.size, 0), Cost: g.spec.Cost}
	}
	plan := autoscaler.ScaleUp(ctx, pods, booting, groups, probe)
	if err := probe.end(ctx); err != nil {
		return false, err
	}
	for i, number := range p.cluster.Pending {
		p.scaler.podOutcomes[number] = plan.Outcomes[i]
		hold = hold || plan.Outcomes[i] != autoscaler.FitsNoGroup
	}
	for group, nodes := range plan.Nodes {
		for range nodes {
			p.add = append(p.add, p.scaler.newNode(group, p.cluster.Now, p.cluster.Now+p.scaler.groups[group].spec.Boot))
		}
		p.scaler.totals.NodesAdded += nodes
	}
	if len(p.add) == 0 {
		return hold, nil
	}
	p.scaler.lastAdded = p.cluster.Now
	p.scaler.totals.ScaleUps++
	return true, nil
}

// removeUnneeded removes unneeded nodes.
func (p *pass) removeUnneeded(ctx context.Context, hold bool) error {
	loop := p.scaler.config.Spec.Loop
	in := autoscaler.ScaleDownInput{
		Threshold: loop.Utilization, UnneededSeconds: loop.Idle,
		Hold: hold || p.scaler.lastAdded > -recording.Never && p.cluster.Now-p.scaler.lastAdded < loop.AfterAdd,
	}
	for i := range p.scaler.groups {
		in.Removable = append(in.Removable, max(p.scaler.groups[i].size-p.scaler.groups[i].spec.Min, 0))
	}
	probe := p.newProbeOfReady()
	candidates := make([]bool, len(p.cluster.Ready))
	for i := range p.cluster.Ready {
		state := &p.cluster.Ready[i]
		info := &p.scaler.nodes[state.Number]
		node := autoscaler.PackedNode{
			Name: p.cluster.Nodes[state.Number].Object.Name, Group: info.group, Free: p.free[i],
			Utilization: autoscaler.Utilization(info.allocatable.Minus(p.free[i]), info.allocatable),
		}
		if candidates[i] = in.IsCandidate(&node); candidates[i] {
			p.addEvictablePods(state, &node, &in, probe)
		}
		in.Nodes = append(in.Nodes, node)
	}
	for _, h := range p.placeholders {
		if node, assigned := p.index[h.pod.Spec.NodeName]; assigned && candidates[node] {
			probe.add(h.pod, h.Item)
			in.Nodes[node].Pods = append(in.Nodes[node].Pods, len(in.Pods))
			in.Pods = append(in.Pods, h.Item)
		}
	}
	removed := p.scaler.scaleDown.Next(ctx, p.cluster.Now, in, probe)
	if err := probe.end(ctx); err != nil {
		return err
	}
	for _, node := range removed {
		number := p.cluster.Ready[node].Number
		p.scaler.groups[p.scaler.nodes[number].group].size--
		p.scaler.nodes[number].removed = p.cluster.Now
		p.scaler.totals.NodesRemoved++
		p.remove = append(p.remove, number)
	}
	return nil
}

// addEvictablePods adds the pods that would have to be rescheduled if a node were
// removed.
func (p *pass) addEvictablePods(state *NodeState, node *autoscaler.PackedNode, in *autoscaler.ScaleDownInput, probe *schedulerProbe) {
	now := p.scaler.engine.Now()
	for _, number := range state.Pods {
		object := p.cluster.Pods[number].Object
		if resources.IsNodeBound(object) || resources.HasFixedNode(object) {
			continue
		}
		node.Fixed = node.Fixed || forbidsEviction(object, clusterAutoscaler, now) || forbidsEviction(object, karpenter, now)
		node.Pods = append(node.Pods, len(in.Pods))
		in.Pods = append(in.Pods, p.addPod(probe, number))
	}
}
