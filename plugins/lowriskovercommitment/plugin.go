// Package lowriskovercommitment scores nodes by how little they risk: how much
// of what limits promise beyond requests the node could not deliver, and how
// probable its measured load makes it that pods use more than they requested.
// Both are worked out for CPU and for memory as package internal/algo/risk
// says; the riskier resource decides:
//
//	risk  = w x limit risk + (1 - w) x load risk
//	score = round(100 x (1 - risk))
//
// The score needs no normalising. Of a node without fresh load only the limit
// risk counts.
package lowriskovercommitment

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Name of the plugin in the scheduler's configuration.
const Name = "LowRiskOverCommitment"

// cycleKey is where the load that a cycle reckons with stands in its state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// Plugin scores nodes. It does not change once made.
type Plugin struct {
	window      float64
	cpu, memory judged
	countRecent bool
	load        *load.Store
	cache       *noderes.Cache
	nodes       fwk.SharedLister
}

// judged is a resource, how much its limits count against its load, and what
// of it an idle node may use.
type judged struct {
	noderes.Resource
	limitWeight, idle float64
}

// measured returns the load of the resource on a node, and whether it can be
// reckoned with.
func (j *judged) measured(snapshot *load.Snapshot, node fwk.NodeInfo) (load.Utilization, bool) {
	all, _ := snapshot.Node(node.Node().Name)
	utilization, known := all.CPU, all.HasCPU
	if j.Resource == noderes.Memory {
		utilization, known = all.Memory, all.HasMemory
	}
	return utilization, known && utilization.Valid()
}

var (
	_ fwk.PreScorePlugin = &Plugin{}
	_ fwk.ScorePlugin    = &Plugin{}
	_ fwk.SignPlugin     = &Plugin{}
)

// New returns the plugin with these arguments, a
// *config.LowRiskOverCommitmentArgs or nil for the defaults. Until ctx ends it
// reads load from the source that the arguments name.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return NewShared(noderes.NewCache(), NewStores())(ctx, obj, handle)
}

// NewShared returns a constructor of plugins that share a cache of sums with
// other plugins of the same scheduler, and the reading of load with each other.
func NewShared(cache *noderes.Cache, stores *Stores) func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
	return func(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		args, err := config.Arguments[config.LowRiskOverCommitmentArgs](obj)
		if err != nil {
			return nil, fmt.Errorf("args of %s: %w", Name, err)
		}
		store, err := stores.get(ctx, args, handle)
		if err != nil {
			return nil, fmt.Errorf("args of %s: %w", Name, err)
		}
		return &Plugin{
			window: float64(*args.SmoothingWindowSize),
			cpu:    judged{noderes.CPU, args.LimitWeight(v1.ResourceCPU), risk.IdleCPU},
			memory: judged{noderes.Memory, args.LimitWeight(v1.ResourceMemory), risk.IdleMemory},
			load:   store,

			countRecent: *args.CountRecentPods,

			cache: cache,
			nodes: handle.SnapshotSharedLister(),
		}, nil
	}
}

// Name returns the name of the plugin.
func (pl *Plugin) Name() string { return Name }

// SignPod adds requests and limits to a pod's signature.
func (pl *Plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return noderes.Sign(pod), nil
}

// PreScore reads the pending pod's requests and limits, and settles which load
// all nodes of this cycle are judged by.
func (pl *Plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	pl.begin(state, pod)
	return nil
}

// Score returns the score of a node.
func (pl *Plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := pl.begin(state, pod)
	sums := pl.cache.Sums(node, pl.nodes, c.pending.InGroup)
	m := pl.remember(node, sums, c.load)
	cpu := pl.risk(&m.cpu, &pl.cpu, node, c)
	memory := pl.risk(&m.memory, &pl.memory, node, c)
	return risk.Score(max(cpu, memory)), nil
}

// Risk returns the risk of a node as it is, without a further pod, in [0, 1].
func (pl *Plugin) Risk(node fwk.NodeInfo, sums *noderes.Sums) float64 {
	c := &cycle{pending: &noderes.Pending{}, load: pl.load.Fresh()}
	m := pl.remember(node, sums, c.load)
	return max(pl.risk(&m.cpu, &pl.cpu, node, c), pl.risk(&m.memory, &pl.memory, node, c))
}

// ScoreExtensions returns nil: scores are not normalised.
func (pl *Plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// cycle is what one scheduling cycle reckons with.
type cycle struct {
	pending *noderes.Pending
	load    *load.Snapshot
}

// Clone returns the same state, which does not change.
func (c *cycle) Clone() fwk.StateData { return c }

// begin returns the cycle's state, worked out by the first who asks: PreScore,
// or Score where the profile enables the plugin for score alone.
func (pl *Plugin) begin(state fwk.CycleState, pod *v1.Pod) *cycle {
	if data, err := state.Read(cycleKey); err == nil {
		if c, ok := data.(*cycle); ok {
			return c
		}
	}
	c := &cycle{pending: pl.cache.Pending(state, pod, pl.nodes), load: pl.load.Fresh()}
	state.Write(cycleKey, c)
	return c
}
