// Package shared holds the state that the score plugins of one scheduler share: the sums per node,
// the stores of load, and the metrics of the nodes. It is passed to the constructors of the plugins
// with the framework handle, so that a plugin has the same constructor alone and with other plugins.
package shared

import (
	"context"
	"sync"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/cache"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// State is the state that the plugins of one scheduler share.
type State struct {
	// Sums are the sums per node.
	Sums *cache.Cache

	// newStore, if set, provides load in place of the sources that the arguments configure.
	newStore    func(maxAge time.Duration) (*load.Store, error)
	newPodStore func(maxAge time.Duration) (*load.PodStore, error)
	mu          sync.Mutex
	stores      map[LoadConfig]*load.Store
	podStores   map[LoadConfig]*load.PodStore
	keepers     map[predictionConfig]*prediction.Keeper
}

// New returns the state of a scheduler that reads load from the configured sources.
func New() *State {
	return &State{
		Sums: cache.New(), stores: map[LoadConfig]*load.Store{}, podStores: map[LoadConfig]*load.PodStore{},
		keepers: map[predictionConfig]*prediction.Keeper{},
	}
}

// NewWithLoad returns the state of a scheduler whose stores of load are created by newStore, and whose stores of the usage of
// pods are created by newPodStore, given the age up to which readings count. The configured sources are ignored. Plugins that
// are configured to read the usage of pods get no store if newPodStore is nil.
func NewWithLoad(
	newStore func(maxAge time.Duration) (*load.Store, error), newPodStore func(maxAge time.Duration) (*load.PodStore, error),
) *State {
	return &State{
		Sums: cache.New(), newStore: newStore, newPodStore: newPodStore, keepers: map[predictionConfig]*prediction.Keeper{},
	}
}

// handle is a framework handle that carries the state.
type handle struct {
	fwk.Handle
	state *State
}

// Of returns the state that the handle carries, or a new state for a plugin that is used alone.
func Of(h fwk.Handle) *State {
	if h, ok := h.(handle); ok {
		return h.state
	}
	return New()
}

// Share returns a plugin constructor that passes the state to the plugin. If the scheduler has
// informers and reads load from the configured sources, its nodes are exposed in the metrics of the
// process, with the risk if the plugin evaluates it.
func (s *State) Share(factory runtime.PluginFactory) runtime.PluginFactory {
	return func(ctx context.Context, args apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
		plugin, err := factory(ctx, args, handle{h, s})
		if informers := h.SharedInformerFactory(); err == nil && s.newStore == nil && informers != nil {
			evaluator, _ := plugin.(RiskEvaluator)
			nodeCollector().Watch(ctx, informers, h.ProfileName(), evaluator)
		}
		return plugin, err
	}
}

// nodeCollector exposes the nodes of the scheduler among its metrics.
var nodeCollector = sync.OnceValue(func() *Collector {
	c := &Collector{}
	legacyregistry.RawMustRegister(c)
	return c
})

// predictionMetrics are the metrics of predictions of the process.
var predictionMetrics = sync.OnceValue(func() *prediction.Metrics {
	m := prediction.NewMetrics(nil)
	legacyregistry.RawMustRegister(m)
	return m
})

// predictionMetrics returns the metrics of predictions, which are exposed with the metrics of the process; nil if the load is
// not read from the configured sources, as in a simulation.
func (s *State) predictionMetrics() *prediction.Metrics {
	if s.newStore != nil {
		return nil
	}
	return predictionMetrics()
}
