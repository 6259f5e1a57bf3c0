// Package predictedutilization scores nodes by the utilization that is predicted of them with the pending
// pod: the riskier of CPU and memory decides.
//
//	score = round(100 x (1 - min(1, predicted peak / allocatable)))
//
// The prediction is that of package internal/algo/predict. Scores are not normalized. Without load,
// pods are expected to use their requests.
package predictedutilization

import (
	"context"
	"fmt"
	"math"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/internal/algo/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/kube/facts"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
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
	deviations float64
	keeper     *prediction.Keeper
	sums       *noderes.Cache
	results    noderes.Slot[nodeResult]
	cycle      noderes.Cycle[cycleData]
	nodes      fwk.SharedLister
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
	return &plugin{
		deviations: *args.Deviations,
		keeper:     keeper,
		sums:       state.Sums,
		results:    noderes.NewSlot[nodeResult](state.Sums),
		cycle:      noderes.NewCycle[cycleData](cycleKey),
		nodes:      handle.SnapshotSharedLister(),
	}, nil
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds requests, limits and the workload to the signature of a pod. Pods without a controller are
// alike: nothing is known of the workload of a pod that has not run.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	fragments := noderes.Sign(pod)
	if w := facts.WorkloadOf(pod); w.Kind != facts.KindPod {
		fragments = append(fragments, fwk.SignFragment{Key: signKey, Value: w})
	}
	return fragments, nil
}

// PreScore computes what is expected of the pending pod, and selects the model that the cycle uses for
// all nodes.
func (pl *plugin) PreScore(_ context.Context, state fwk.CycleState, pod *v1.Pod, _ []fwk.NodeInfo) *fwk.Status {
	pl.cycleData(state, pod)
	return nil
}

// Score returns the score of a node.
func (pl *plugin) Score(_ context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	c := pl.cycleData(state, pod)
	sums := pl.sums.Sums(node, pl.nodes, c.pending.InGroup)
	result := pl.results.Get(sums)
	if result == nil || result.model != c.model || result.node != node.Node() {
		result = newResult(c.model, node, sums)
		pl.results.Set(sums, result)
	}
	return result.score(c, pl.deviations), nil
}

// ScoreExtensions returns nil: scores are not normalized.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// nodeResult is the part of a node's prediction that does not depend on the pending pod.
type nodeResult struct {
	// model and node identify, with the sums that the result is stored in, the state it is valid for.
	model       *predict.Model
	node        *v1.Node
	use         [predict.Resources]predict.NodeUse
	allocatable [predict.Resources]float64
}

// newResult predicts the use of a node without the pending pod.
func newResult(model *predict.Model, node fwk.NodeInfo, sums *noderes.Sums) *nodeResult {
	result := &nodeResult{model: model, node: node.Node()}
	pods := make([]predict.Pod, sums.Len())
	for i := range pods {
		pods[i] = prediction.Declared(sums.Pod(i))
	}
	for r, resource := range prediction.Predicted {
		result.use[r] = model.Node(node.Node().Name, pods, r)
		result.allocatable[r] = float64(resource.Allocatable(node))
	}
	return result
}

// score returns the score of the node with the pending pod.
func (n *nodeResult) score(c *cycleData, deviations float64) int64 {
	utilization := 0.0
	for r := range n.use {
		if n.allocatable[r] > 0 {
			peak := c.model.Peak(&n.use[r], &c.expected[r], c.workload, r, deviations)
			utilization = max(utilization, peak/n.allocatable[r])
		}
	}
	return int64(math.Round(float64(fwk.MaxScore) * (1 - min(1, utilization))))
}

// cycleData is the data of one scheduling cycle.
type cycleData struct {
	pending  *noderes.Pending
	model    *predict.Model
	workload predict.Key
	expected [predict.Resources]predict.Expected
}

// cycleData returns the data of the cycle. The first caller computes it: PreScore, or Score if the
// profile enables the plugin for score only.
func (pl *plugin) cycleData(state fwk.CycleState, pod *v1.Pod) *cycleData {
	if c := pl.cycle.Get(state); c != nil {
		return c
	}
	c := &cycleData{pending: pl.sums.Pending(state, pod, pl.nodes), model: pl.keeper.Model()}
	declared := prediction.Declared(&c.pending.Pod)
	c.workload = declared.Workload
	for r := range c.expected {
		c.expected[r] = c.model.Expect(&declared, r)
	}
	pl.cycle.Set(state, c)
	return c
}
