// Package baselines has the published formulas of other load-aware schedulers as score plugins, for comparisons in the what-if,
// and PredictedUtilization with parts of its model left out. Each formula is an implementation of its own after the source that
// formulas.go names, with its default arguments, and reads the load that the profiles of this project read: means and
// deviations over one window. Pods bound later than a minute before the end of the window count as not yet included in the
// load.
//
// Differences from the sources: filters by load are scores of 0, since they would leave pods pending that the other
// plugins schedule; and the averages of the window replace Crane's averages over 5 minutes.
package baselines

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/shared"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// Names of the plugins in a scheduler configuration.
const (
	TargetLoadPacking          = "TargetLoadPacking"
	LoadVariationRiskBalancing = "LoadVariationRiskBalancing"
	LowRiskOverCommitment      = "OriginalLowRiskOverCommitment"
	LoadAwareScheduling        = "LoadAwareScheduling"
	Dynamic                    = "Dynamic"
)

// reportingSeconds is the time before the end of a window from which on pods count as not measured yet.
const reportingSeconds = 60

// Registry returns the constructors of all plugins. They read the load of shared.Of(handle). The oracle knows the future.
func Registry(future Future) frameworkruntime.Registry {
	return frameworkruntime.Registry{
		TargetLoadPacking:          factory(TargetLoadPacking, scoreTargetLoadPacking),
		LoadVariationRiskBalancing: factory(LoadVariationRiskBalancing, scoreLoadVariation),
		LowRiskOverCommitment:      factory(LowRiskOverCommitment, scoreLowRisk),
		LoadAwareScheduling:        factory(LoadAwareScheduling, scoreLoadAware),
		Dynamic:                    newDynamic,
		Oracle:                     newOracle(future),
	}
}

// node is a node with its load.
type node struct {
	fwk.NodeInfo
	load load.Node
	// measured is the end of the window of the load.
	measured, now time.Time
}

// scorer returns the score of a node with load for a pending pod.
type scorer func(pod *v1.Pod, n node) int64

// plugin scores nodes that have fresh load of both resources; other nodes score 0.
type plugin struct {
	name  string
	store *load.Store
	score scorer
}

var _ fwk.ScorePlugin = &plugin{}

// factory returns the constructor of a plugin.
func factory(name string, score scorer) frameworkruntime.PluginFactory {
	return func(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		store, err := loadStore(ctx, handle)
		return &plugin{name, store, score}, err
	}
}

// newDynamic returns Crane's plugin, which remembers the peaks of each node.
func newDynamic(ctx context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	store, err := loadStore(ctx, handle)
	if err != nil {
		return nil, err
	}
	highest := newPeaks()
	store.Observe(highest.add)
	return &plugin{Dynamic, store, highest.score}, nil
}

func loadStore(ctx context.Context, handle fwk.Handle) (*load.Store, error) {
	return shared.Of(handle).LoadStore(ctx, shared.LoadConfig{MaxAge: metricprovider.DefaultMaxAge}, handle)
}

// Name returns the name of the plugin.
func (pl *plugin) Name() string { return pl.name }

// ScoreExtensions returns nil: scores are not normalized.
func (pl *plugin) ScoreExtensions() fwk.ScoreExtensions { return nil }

// Score returns the score of a node.
func (pl *plugin) Score(_ context.Context, _ fwk.CycleState, pod *v1.Pod, info fwk.NodeInfo) (int64, *fwk.Status) {
	snapshot := pl.store.Fresh()
	measured, known := snapshot.Node(info.Node().Name)
	if !known || !measured.HasCPU || !measured.HasMemory {
		return 0, nil
	}
	age, _ := pl.store.Age()
	end := snapshot.Reading().Time
	return pl.score(pod, node{info, measured, end, end.Add(age)}), nil
}

// unmeasured calls visit for each pod that the load does not include yet.
func (n node) unmeasured(visit func(*v1.Pod)) {
	n.boundSince(n.measured.Add(-reportingSeconds*time.Second), visit)
}

// boundSince calls visit for each pod that was bound to the node after an instant.
func (n node) boundSince(instant time.Time, visit func(*v1.Pod)) {
	for _, info := range n.GetPods() {
		pod := info.GetPod()
		_, condition := podutil.GetPodCondition(&pod.Status, v1.PodScheduled)
		if condition != nil && condition.LastTransitionTime.After(instant) {
			visit(pod)
		}
	}
}

// amounts are millicores of CPU and bytes of memory.
type amounts struct{ cpu, memory int64 }

func amountsOf(list v1.ResourceList) amounts {
	return amounts{list.Cpu().MilliValue(), list.Memory().Value()}
}

func (a *amounts) add(b amounts) { a.cpu, a.memory = a.cpu+b.cpu, a.memory+b.memory }

// requestsAndLimits returns the sums over the containers of a pod. An amount that a container does not specify counts as 0.
func requestsAndLimits(pod *v1.Pod) (requests, limits amounts) {
	for i := range pod.Spec.Containers {
		resources := &pod.Spec.Containers[i].Resources
		requests.add(amountsOf(resources.Requests))
		limits.add(amountsOf(resources.Limits))
	}
	return requests, limits
}
