// Package predictedutilization scores nodes by their predicted utilization with the pending pod, for which the higher of CPU and memory
// decides, and by requests, as the in-tree plugins do: one plugin that computes all three terms costs less than three plugins.
//
//	utilization = 100 x (1 - predicted peak / allocatable), in mode Pack highest at a target
//	raw score   = weighted mean of utilization and of the scores of NodeResourcesFit and NodeResourcesBalancedAllocation
//	score       = 100 - 7/3 x (highest raw score - raw score), at least 0
//
// Package internal/scheduling/predict computes the prediction. Without load, pods are expected to use their requests.
package predictedutilization

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
)

// Name is the name of the plugin in the scheduler configuration.
const Name = "PredictedUtilization"

// cycleKey is the key of the plugin's data in the cycle state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// signKey is the key of the workload in the signature of a pod.
const signKey = "plimsoll.dev/v1.Pod.Workload()"

// plugin implements the score plugin. It is immutable.
type plugin struct {
	// Cycle implements PreScore.
	*cache.Cycle[cycleData]
	deviations float64
	// target of mode Pack, 0 in mode Spread.
	target  float64
	weights termWeights
	learner prediction.Learner
	nodes   *cache.Derived[predict.Model, nodeUse]
}

// cycleData is the data of one scheduling cycle.
type cycleData struct {
	pending  *cache.Pending
	model    *predict.Model
	workload resources.WorkloadKey
	bit      predict.WorkloadBit
	requests cache.Requests
	expected [predict.Resources]predict.Expected
}

var (
	_ fwk.PreScorePlugin = &plugin{}
	_ fwk.ScorePlugin    = &plugin{}
	_ fwk.SignPlugin     = &plugin{}
)

// New returns the plugin. obj is a *config.PredictedUtilizationArgs, or nil for the defaults. Until ctx is
// done, the plugin learns from the sources that the arguments configure.
func New(ctx context.Context, obj runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	args, err := config.Arguments[config.PredictedUtilizationArgs](obj)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	state := shared.Of(handle)
	keeper, err := state.Prediction(ctx, args, handle)
	if err != nil {
		return nil, fmt.Errorf("args of %s: %w", Name, err)
	}
	pl := &plugin{
		deviations: *args.Deviations,
		weights:    termWeightsOf(&args.TermWeights),
		learner:    keeper,
		nodes:      cache.NewDerived(state.Sums, predictNode),
	}
	if args.Mode == config.ModePack {
		pl.target = *args.Target
	}
	pl.Cycle = cache.NewCycle(cycleKey, state.Sums, handle, func(pending *cache.Pending) cycleData {
		c := newCycleData(pending, keeper.Model())
		if pl.weights.least+pl.weights.balanced > 0 {
			c.requests = pending.Requests()
		}
		return c
	})
	return pl, nil
}

// newCycleData returns the data of a cycle: the expected use of its pod, and the model.
func newCycleData(pending *cache.Pending, model *predict.Model) cycleData {
	declared := prediction.Declared(&pending.Pod)
	c := cycleData{pending: pending, model: model, workload: declared.Workload, bit: predict.BitOf(declared.Workload)}
	for r := range c.expected {
		c.expected[r] = model.Expect(&declared, r)
	}
	return c
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// Learner returns what learns the usage of workloads, for simulations.
func (pl *plugin) Learner() prediction.Learner { return pl.learner }

// SignPod adds requests, limits and the workload to the signature of a pod. Pods without a controller have no
// workload in the signature: each is its own workload, which has no history before the pod has run.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	fragments := cache.Sign(pod)
	if w := resources.WorkloadOf(pod); w.Kind != resources.KindPod {
		fragments = append(fragments, fwk.SignFragment{Key: signKey, Value: w})
	}
	return fragments, nil
}

// PreScore computes the data of the cycle and the prediction of each candidate. In one loop, the processor reads several nodes from
// memory at the same time, but one at a time between the scores of other plugins.
func (pl *plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo) *fwk.Status {
	c := pl.Data(state, pod)
	for _, node := range nodes {
		pl.nodes.NodeValue(node, c.pending, c.model)
	}
	return nil
}

// Score returns the raw score of a node.
func (pl *plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := pl.Data(state, pod)
	return pl.weights.rawScore(pl.terms(c, pl.nodes.NodeValue(node, c.pending, c.model))), nil
}

// ScoreExtensions returns the plugin.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return pl }

// NormalizeScore replaces raw scores with scores in [0, 100].
func (pl *plugin) NormalizeScore(_ context.Context, _ fwk.CycleState, _ *v1.Pod, nodes fwk.NodeScoreList) *fwk.Status {
	normalize(nodes)
	return nil
}
