package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/whatif/engine"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/recording"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/result"
	"github.com/plimsoll-k8s/plimsoll/internal/whatif/scaling"
)

// prepare sets up the scheduler and the initial state.
func (r *run) prepare(ctx context.Context) error {
	config := r.options.Config.DeepCopy()
	config.Parallelism = 1
	if err := r.prepareAutoscaler(); err != nil {
		return err
	}
	cluster := engine.Cluster{References: r.input.References}
	r.prepareNodes(&cluster)
	r.preparePods(&cluster)
	if r.options.Record {
		r.overloaded, r.timeSeries = result.NewOverloadTimes(), newTimeSeries(r.horizon)
	}
	if len(cluster.Running) > 0 {
		// The running pods have been measured when the first pod arrives.
		r.warmUpSteps = (r.options.Metrics.WindowSeconds + r.options.Metrics.DelaySeconds + Step - 1) / Step
		r.nextStep = -r.warmUpSteps * Step
	}
	var err error
	r.engine, err = engine.New(ctx, cluster, engine.Options{
		Config: config, Clock: func() time.Time { return recording.Time(r.now) }, History: r.options.History,
	})
	if err != nil {
		return err
	}
	r.monitoring.readsPods, r.hasLoad = r.engine.ReadsPodUsage(), !r.engine.ReadsLoad()
	return r.startAutoscaler(ctx)
}

// prepareNodes sets up the nodes, and adds the nodes that exist from the start to the cluster.
func (r *run) prepareNodes(cluster *engine.Cluster) {
	for i := range r.input.Nodes {
		n := &r.input.Nodes[i]
		r.addNodeState(n.Object)
		if n.Appeared <= 0 {
			cluster.Nodes = append(cluster.Nodes, n.Object)
			r.nodes[i].ready = true
		} else {
			r.boots = append(r.boots, int32(i))
		}
		if n.Gone != recording.Never {
			r.removals = append(r.removals, int32(i))
		}
	}
	slices.SortStableFunc(r.boots, func(a, b int32) int { return cmp.Compare(r.input.Nodes[a].Appeared, r.input.Nodes[b].Appeared) })
	slices.SortStableFunc(r.removals, func(a, b int32) int { return cmp.Compare(r.input.Nodes[a].Gone, r.input.Nodes[b].Gone) })
}

// preparePods sets up the pods, and adds the pods with a node to the cluster.
func (r *run) preparePods(cluster *engine.Cluster) {
	r.pods = make([]pod, len(r.input.Pods))
	isIgnored := engine.IgnoredResources(r.options.Config)
	for i := range r.input.Pods {
		p := &r.input.Pods[i]
		for name := range p.Requests.Extended.All() {
			if isIgnored(name) {
				p.Requests.Extended = p.Requests.Extended.With(name, 0)
			}
		}
		r.pods[i] = newPod(p)
		if p.Recorded != nil && p.Recorded.Deleted > 0 {
			r.completions.add(p.Recorded.Deleted, int32(i))
		}
		if p.Object.Spec.NodeName == "" {
			r.arrivals = append(r.arrivals, int32(i))
			continue
		}
		if number, ok := r.nodeNumbers[p.Object.Spec.NodeName]; ok {
			cluster.Running = append(cluster.Running, p.Object)
			r.place(int32(i), number, 0)
		}
	}
	slices.SortStableFunc(r.arrivals, func(a, b int32) int { return cmp.Compare(r.input.Pods[a].Arrival, r.input.Pods[b].Arrival) })
}

// addNodeState adds the state of the node with the next number.
func (r *run) addNodeState(object *v1.Node) {
	if _, taken := r.nodeNumbers[object.Name]; !taken { // else the number changes when the node is ready
		r.nodeNumbers[object.Name] = int32(len(r.nodes))
	}
	r.nodes = append(r.nodes, newNode(object))
}

// newNode returns the state of a node without pods.
func newNode(object *v1.Node) node {
	allocatable := recording.Amounts(object.Status.Allocatable)
	capacity := allocatable.Max(recording.Amounts(object.Status.Capacity))
	return node{
		name: object.Name,
		kind: fmt.Sprintf("%d %.2g %v %s", allocatable.CPU, float64(allocatable.Memory), allocatable.Extended, scaling.NodeKind(object)),
		allocatable: result.Capacity{
			CPU: float64(allocatable.CPU), Memory: float64(allocatable.Memory),
			MachineMemory: float64(capacity.Memory),
		},
		machineCPU: float64(capacity.CPU),
		free:       allocatable,
	}
}
