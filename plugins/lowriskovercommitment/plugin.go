// Package lowriskovercommitment scores nodes by their risk of overcommitment: the fraction of the
// limits beyond the requests that the node could not provide (limit risk), and the probability, given
// its measured load, that pods use more than they request (load risk). Both are computed for CPU and
// for memory by package internal/risk; the riskier resource decides:
//
//	risk  = w x limit risk + (1 - w) x load risk
//	score = round(100 x (1 - risk))
//
// Scores are not normalized. For a node without fresh load the risk is the limit risk.
package lowriskovercommitment

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/risk"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Name is the name of the plugin in the scheduler configuration.
const Name = "LowRiskOverCommitment"

// cycleKey is the key of the plugin's data in the cycle state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// plugin implements the score plugin. It is immutable.
type plugin struct {
	// Cycle implements PreScore.
	*cache.Cycle[cycleData]
	model model
	load  *load.Store
	nodes *cache.Derived[load.Snapshot, nodeRisk]
}

// cycleData is the data of one scheduling cycle.
type cycleData struct {
	pending *cache.Pending
	amounts podAmounts
	load    *load.Snapshot
}

var (
	_ fwk.PreScorePlugin   = &plugin{}
	_ fwk.ScorePlugin      = &plugin{}
	_ fwk.SignPlugin       = &plugin{}
	_ shared.RiskEvaluator = &plugin{}
)

// New returns the plugin. obj is a *config.LowRiskOverCommitmentArgs, or nil for the defaults. Until
// ctx is done, the plugin reads load from the source that the arguments configure.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Arguments[config.LowRiskOverCommitmentArgs](obj)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	state := shared.Of(handle)
	store, err := state.LoadStore(ctx, shared.LoadConfigOf(args), handle)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	model := model{
		cpu: resourceModel{
			resources.CPUResource, riskModel(args, v1.ResourceCPU), risk.NewCPU,
			func(n load.Node) (load.Utilization, bool) { return n.CPU, n.HasCPU },
		},
		memory: resourceModel{
			resources.MemoryResource, riskModel(args, v1.ResourceMemory), risk.NewMemory,
			func(n load.Node) (load.Utilization, bool) { return n.Memory, n.HasMemory },
		},
		countRecent: *args.CountRecentPods,
	}
	pl := &plugin{model: model, load: store, nodes: cache.NewDerived(state.Sums, model.node)}
	pl.Cycle = cache.NewCycle(cycleKey, state.Sums, handle, func(pending *cache.Pending) cycleData {
		return cycleData{pending, amountsOf(&pending.Pod), store.Fresh()}
	})
	return pl, nil
}

func riskModel(args *config.LowRiskOverCommitmentArgs, name v1.ResourceName) risk.Model {
	return risk.Model{Window: float64(*args.SmoothingWindowSize), LimitWeight: args.LimitWeight(name)}
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds requests and limits to the signature of a pod.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return cache.Sign(pod), nil
}

// PreScore computes the data of the cycle and the risk of each candidate. In one loop, the processor reads several nodes from memory at
// the same time.
func (pl *plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	c := pl.Data(state, pod)
	for _, node := range nodes {
		pl.nodes.NodeValue(node, c.pending, c.load)
	}
	return nil
}

// Score returns the score of a node.
func (pl *plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := pl.Data(state, pod)
	return pl.model.score(pl.nodes.NodeValue(node, c.pending, c.load), &c.amounts), nil
}

// Risk returns the risk of a node without a further pod, in [0, 1].
func (pl *plugin) Risk(sums *cache.NodeSums) float64 {
	node := pl.model.node(sums, pl.load.Fresh())
	return pl.model.risk(&node, &podAmounts{})
}

// ScoreExtensions returns nil: scores are not normalized.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }
