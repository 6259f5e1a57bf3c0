package replay

import (
	"context"
	"slices"

	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// prepareAutoscaler creates the autoscaler, and adds its initial nodes to the input.
func (r *run) prepareAutoscaler() error {
	if r.options.Autoscaler == nil {
		return nil
	}
	if r.input.Part != nil { // the autoscaler replaces the recorded autoscaler
		r.input.Nodes = slices.Clone(r.input.Nodes)
		r.input.Nodes = slices.DeleteFunc(r.input.Nodes, func(n recording.Node) bool { return n.Appeared > 0 })
		for i := range r.input.Nodes {
			r.input.Nodes[i].Gone = recording.Never
		}
	}
	var err error
	if r.autoscaler, err = scaling.New(*r.options.Autoscaler, r.input); err != nil {
		return err
	}
	r.input.Nodes = slices.Concat(r.input.Nodes, r.autoscaler.InitialNodes())
	return nil
}

// startAutoscaler starts the autoscaler on the initial state.
func (r *run) startAutoscaler(ctx context.Context) error {
	if r.autoscaler == nil {
		return nil
	}
	r.autoscaler.Start(r.engine, r.clusterState())
	for i := range r.nodes {
		if r.nodes[i].ready {
			if err := r.addDaemonPods(ctx, int32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// clusterState returns the state that the autoscaler reads.
func (r *run) clusterState() scaling.Cluster {
	c := scaling.Cluster{
		Now: r.now, Nodes: r.input.Nodes, Pods: r.input.Pods, Booting: r.boots, Pending: r.queue.pending,
		Ready: make([]scaling.NodeState, 0, len(r.nodes)),
	}
	for i := range r.nodes {
		if n := &r.nodes[i]; n.ready {
			c.Ready = append(c.Ready, scaling.NodeState{Number: int32(i), Free: n.free, Pods: n.pods})
		}
	}
	return c
}

// autoscale runs a pass of the autoscaler if it is due, and executes its changes.
func (r *run) autoscale(ctx context.Context) error {
	if r.autoscaler == nil || r.now < r.autoscaler.NextPass() || r.interrupted() {
		return nil
	}
	add, remove, err := r.autoscaler.Pass(ctx, r.clusterState())
	if err != nil {
		return err
	}
	for _, n := range add {
		r.addNode(n)
	}
	for _, number := range remove {
		if err := r.removeNode(ctx, number); err != nil {
			return err
		}
	}
	return r.retryPending(ctx)
}

// addNode adds a node that boots.
func (r *run) addNode(n recording.Node) {
	number := int32(len(r.input.Nodes))
	r.input.Nodes = append(r.input.Nodes, n)
	r.addNodeState(n.Object)
	i := 0
	for i < len(r.boots) && r.input.Nodes[r.boots[i]].Appeared <= n.Appeared {
		i++
	}
	r.boots = slices.Insert(r.boots, i, number)
}

// removeNode removes a node. Its pods become pending, and run for the rest of their
// duration on another node; its DaemonSet pods end.
func (r *run) removeNode(ctx context.Context, number int32) error {
	n := &r.nodes[number]
	for _, podNumber := range slices.Clone(n.pods) {
		if err := r.removeFromNode(ctx, podNumber); err != nil {
			return err
		}
		p, state := &r.input.Pods[podNumber], &r.pods[podNumber]
		if resources.IsNodeBound(p.Object) || resources.HasFixedNode(p.Object) {
			continue
		}
		p.Object = recording.Unbind(p.Object)
		if p.Duration != recording.Never {
			p.Duration = state.end - r.now
		}
		state.pendingSince = r.now
		r.queue.add(podNumber, "evicted from a removed node")
		r.queue.retry = true
		r.count(r.now, (*result.Totals).AddEviction)
	}
	n.ready = false
	delete(r.nodeNumbers, n.name)
	return r.engine.RemoveNode(ctx, r.input.Nodes[number].Object)
}

// addDaemonPods adds the DaemonSet pods of a node of the autoscaler.
func (r *run) addDaemonPods(ctx context.Context, number int32) error {
	if r.autoscaler == nil {
		return nil
	}
	for _, daemon := range r.autoscaler.DaemonPods(scaling.Cluster{Now: r.now, Nodes: r.input.Nodes, Pods: r.input.Pods}, number) {
		podNumber := int32(len(r.input.Pods))
		daemon.Usage = daemon.Usage.OfCopy(int(podNumber))
		r.input.Pods = append(r.input.Pods, daemon)
		r.pods = append(r.pods, newPod(&daemon))
		if err := r.engine.AssignPod(ctx, daemon.Object); err != nil {
			return err
		}
		r.place(podNumber, number, r.now)
	}
	return nil
}
