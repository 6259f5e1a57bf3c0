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
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/nodemetrics"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/noderes"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Name is the name of the plugin in the scheduler configuration.
const Name = "LowRiskOverCommitment"

// cycleKey is the key of the plugin's data in the cycle state.
const cycleKey fwk.StateKey = "plimsoll.dev/" + Name

// plugin implements the score plugin. It is immutable.
type plugin struct {
	// Scorer implements PreScore and Score by the method score.
	noderes.Scorer[cycleData]

	cpu, memory resourceConfig
	countRecent bool
	load        *load.Store
	sums        *noderes.Cache
	// results are the evaluations of the nodes, prepared the same in arrays.
	results  noderes.Slot[nodeResult]
	prepared *noderes.Prepared[load.Snapshot]
}

// resourceConfig configures the evaluation of one resource.
type resourceConfig struct {
	resources.Resource
	model       risk.Model
	newResource func(allocatable, machine float64) risk.Resource
	utilization func(load.Node) (load.Utilization, bool)
}

// measured returns the load of the resource on a node, and whether it is known and valid.
func (r *resourceConfig) measured(snapshot *load.Snapshot, node string) (risk.Load, bool) {
	all, _ := snapshot.Node(node)
	utilization, known := r.utilization(all)
	return risk.Load(utilization), known && utilization.Valid()
}

var (
	_ fwk.PreScorePlugin        = &plugin{}
	_ fwk.ScorePlugin           = &plugin{}
	_ fwk.SignPlugin            = &plugin{}
	_ nodemetrics.RiskEvaluator = &plugin{}
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
	model := func(name v1.ResourceName) risk.Model {
		return risk.Model{Window: float64(*args.SmoothingWindowSize), LimitWeight: args.LimitWeight(name)}
	}
	pl := &plugin{
		cpu: resourceConfig{
			resources.CPUResource, model(v1.ResourceCPU), risk.NewCPU,
			func(n load.Node) (load.Utilization, bool) { return n.CPU, n.HasCPU },
		},
		memory: resourceConfig{
			resources.MemoryResource, model(v1.ResourceMemory), risk.NewMemory,
			func(n load.Node) (load.Utilization, bool) { return n.Memory, n.HasMemory },
		},
		countRecent: *args.CountRecentPods,
		load:        store,
		sums:        state.Sums,
		results:     noderes.NewSlot[nodeResult](state.Sums),
		prepared:    noderes.NewPrepared[load.Snapshot](state.Sums, packedLength),
	}
	pl.Scorer = noderes.NewScorer(cycleKey, state.Sums, handle, pl.newCycleData, pl.score)
	store.Observe(pl.prepare)
	return pl, nil
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return Name }

// SignPod adds requests and limits to the signature of a pod.
func (pl *plugin) SignPod(_ context.Context, pod *v1.Pod) ([]fwk.SignFragment, *fwk.Status) {
	return noderes.Sign(pod), nil
}

// score returns the score of the node at a place.
func (pl *plugin) score(c *cycleData, place noderes.Place, node fwk.NodeInfo) int64 {
	var values packedValues
	if pl.prepared.Load(place, node, c.load, values[:]) {
		return risk.Score(pl.packedRisk(&values, c))
	}
	sums := pl.sums.SumsAt(place, node, c.inGroup)
	result := pl.results.Get(sums)
	if result == nil || result.load != c.load.Value || result.node != node.Node() {
		evaluated := pl.evaluate(node.Node(), sums, c.load.Value)
		result = &evaluated
		pl.results.Set(sums, result)
	}
	if result.pack(values[:]) {
		pl.prepared.Store(place, sums, c.load, values[:])
	}
	return risk.Score(pl.risk(result, c))
}

// Risk returns the risk of a node without a further pod, in [0, 1].
func (pl *plugin) Risk(node fwk.NodeInfo, sums *noderes.Sums) float64 {
	c := newCycleData(&noderes.Pending{}, noderes.Input[load.Snapshot]{})
	result := pl.evaluate(node.Node(), sums, pl.load.Fresh())
	return pl.risk(&result, &c)
}

// ScoreExtensions returns nil: scores are not normalized.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// cycleData is the data of one scheduling cycle.
type cycleData struct {
	// cpu and memory are the amounts of the pending pod.
	cpu, memory podAmounts
	inGroup     bool
	load        noderes.Input[load.Snapshot]
}

// podAmounts are the amounts of the pending pod for one resource. The limit is at least the request.
type podAmounts struct {
	request, limit float64
	isUnbounded    bool
}

// newCycleData returns the data of a cycle: the amounts of its pod, and the reading of load that it uses.
func (pl *plugin) newCycleData(pending *noderes.Pending) cycleData {
	return newCycleData(pending, pl.prepared.Input(pl.load.Fresh()))
}

func newCycleData(pending *noderes.Pending, snapshot noderes.Input[load.Snapshot]) cycleData {
	of := func(r resources.Resource) podAmounts {
		a := pending.Get(r)
		return podAmounts{float64(a.Request), float64(max(a.Limit, a.Request)), a.Unbounded}
	}
	return cycleData{cpu: of(resources.CPUResource), memory: of(resources.MemoryResource), inGroup: pending.InGroup, load: snapshot}
}
