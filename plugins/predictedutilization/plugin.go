// Package predictedutilization scores nodes by the utilization that is predicted of them with the pending
// pod: the riskier of CPU and memory decides.
//
//	score = round(100 x (1 - min(1, predicted peak / allocatable)))
//
// The prediction is that of package internal/scheduling/predict. Scores are not normalized. Without load,
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
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
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
	// Scorer implements PreScore and Score by the method score.
	noderes.Scorer[cycleData]

	deviations float64
	keeper     *prediction.Keeper
	sums       *noderes.Cache
	// results are the predictions of the nodes, prepared the same in arrays.
	results  noderes.Slot[nodeResult]
	prepared *noderes.Prepared[predict.Model]
	handle   fwk.Handle
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
		keeper:     keeper,
		sums:       state.Sums,
		results:    noderes.NewSlot[nodeResult](state.Sums),
		prepared:   noderes.NewPrepared[predict.Model](state.Sums, packedLength),
		handle:     handle,
	}
	pl.Scorer = noderes.NewScorer(cycleKey, state.Sums, handle, pl.newCycleData, pl.score)
	keeper.Observe(pl.prepare)
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds requests, limits and the workload to the signature of a pod. Pods without a controller are
// alike: nothing is known of the workload of a pod that has not run.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	fragments := noderes.Sign(pod)
	if w := resources.WorkloadOf(pod); w.Kind != resources.KindPod {
		fragments = append(fragments, fwk.SignFragment{Key: signKey, Value: w})
	}
	return fragments, nil
}

// score returns the score of the node at a place.
func (pl *plugin) score(c *cycleData, place noderes.Place, node fwk.NodeInfo) int64 {
	var values packedValues
	if pl.prepared.Load(place, node, c.model, values[:]) && !c.mayHaveWorkload(&values) {
		sums, allocatable := unpack(&values)
		return c.score(&sums, &allocatable, nil, pl.deviations)
	}
	sums := pl.sums.SumsAt(place, node, c.pending.InGroup)
	result := pl.results.Get(sums)
	if result == nil || result.model != c.model.Value || result.node != node.Node() {
		result = predictNode(c.model.Value, node.Node(), sums)
		pl.results.Set(sums, result)
		result.pack(&values)
		pl.prepared.Store(place, sums, c.model, values[:])
	}
	return c.score(&result.use.Sums, &result.allocatable, result.use.Share(c.workload), pl.deviations)
}

// ScoreExtensions returns nil: scores are not normalized.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// cycleData is the data of one scheduling cycle.
type cycleData struct {
	pending  *noderes.Pending
	model    noderes.Input[predict.Model]
	workload resources.WorkloadKey
	// bits are those of the workload in packed values. isAlone is set for a pod without a controller.
	bits     workloadBits
	isAlone  bool
	expected [predict.Resources]predict.Expected
}

// newCycleData returns the data of a cycle: what is expected of its pod, and the model that it uses.
func (pl *plugin) newCycleData(pending *noderes.Pending) cycleData {
	c := cycleData{pending: pending, model: pl.prepared.Input(pl.keeper.Model())}
	declared := prediction.Declared(&c.pending.Pod)
	c.workload, c.bits = declared.Workload, workloadBitsOf(declared.Workload)
	c.isAlone = c.workload.Value().Kind == resources.KindPod
	for r := range c.expected {
		c.expected[r] = c.model.Value.Expect(&declared, r)
	}
	return c
}

// score returns the score of a node with the pending pod. share is the part of the pod's workload in the use of the node,
// nil if it has no pod there.
func (c *cycleData) score(
	sums *[predict.Resources]predict.Sum, allocatable *[predict.Resources]float64, share *[predict.Resources]predict.Share,
	deviations float64,
) int64 {
	utilization := 0.0
	for r := range sums {
		if allocatable[r] > 0 {
			peak := c.model.Value.Peak(&sums[r], share, &c.expected[r], r, deviations)
			utilization = max(utilization, peak/allocatable[r])
		}
	}
	if !(utilization < 1) { // or not a number: the scheduler fails pods whose scores are out of range
		return fwk.MinScore
	}
	return int64(math.Round(float64(fwk.MaxScore) * (1 - utilization)))
}
