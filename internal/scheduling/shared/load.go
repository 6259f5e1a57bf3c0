package shared

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/metricsserver"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

// LoadConfig is the part of a plugin's arguments that configures where load is read from.
type LoadConfig struct {
	// WatcherAddress is the URL of a load-watcher service. At most one of it and Provider is set.
	WatcherAddress string
	// Provider is the metric provider that the scheduler reads itself.
	Provider metricprovider.Config
	// PollInterval is the time between two reads. Readings older than MaxAge do not count.
	PollInterval, MaxAge time.Duration
}

// LoadConfigOf returns the load configuration in the arguments of a plugin, an empty one if the plugin reads no load.
func LoadConfigOf(args runtime.Object) LoadConfig {
	switch args := args.(type) {
	case *config.LowRiskOverCommitmentArgs:
		return LoadConfig{args.WatcherAddress, args.MetricProvider, args.PollInterval.Duration, args.MaxLoadAge.Duration}
	case *config.PredictedUtilizationArgs:
		return LoadConfig{args.WatcherAddress, args.MetricProvider, args.PollInterval.Duration, args.MaxLoadAge.Duration}
	}
	return LoadConfig{}
}

// Source returns the configuration of the load source, and whether there is one.
func (c LoadConfig) Source() (source metricprovider.Config, configured bool) {
	if c.WatcherAddress != "" {
		return metricprovider.Config{Type: metricprovider.Service, Address: c.WatcherAddress}, true
	}
	return c.Provider, c.Provider != metricprovider.Config{}
}

// LoadStore returns the store of load for a configuration. Plugins with the same configuration share
// one store. It is filled until ctx is done.
func (s *State) LoadStore(ctx context.Context, c LoadConfig, h fwk.Handle) (*load.Store, error) {
	if s.newStore != nil {
		return s.newStore(c.MaxAge)
	}
	source, err := newSource(c, h)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if store, ok := s.stores[c]; ok {
		return store, nil
	}
	store := load.NewStore(c.MaxAge, nil)
	s.stores[c] = store
	logger := klog.FromContext(ctx).WithName("load")
	if source == nil {
		logger.Info("No load source is configured (watcherAddress or metricProvider): nodes are scored without measured load")
		return store, nil
	}
	loadCollector().Watch(ctx, source.String(), store)
	go store.Run(ctx, source, c.PollInterval, func(state load.State) { logState(logger, source, store, state) })
	return store, nil
}

// logState logs a change of the state of a load store.
func logState(logger klog.Logger, source load.Source, store *load.Store, state load.State) {
	switch {
	case state.Degraded:
		logger.Error(state.Err, "No fresh load: nodes are scored without it", "maxLoadAge", store.MaxAge())
	case state.Partial:
		logger.Error(state.Err, "Some load series could not be read: their previous values are used", "maxLoadAge", store.MaxAge())
	case state.Err != nil:
		logger.Error(state.Err, "Load could not be read: the previous reading is used", "maxLoadAge", store.MaxAge())
	default:
		logger.Info("Reading load", "source", source.String(), "nodes", len(store.Fresh().Reading().Nodes))
	}
}

// podStore returns the store of the usage of pods for a configuration, nil if it has no Provider. WatcherAddress must be
// empty: load-watcher services do not provide the usage of pods. Plugins with the same configuration share one store. It is
// filled until ctx is done.
func (s *State) podStore(ctx context.Context, c LoadConfig, h fwk.Handle) (*load.PodStore, error) {
	if c.Provider == (metricprovider.Config{}) {
		return nil, nil
	}
	if s.newStore != nil {
		if s.newPodStore == nil {
			return nil, nil
		}
		return s.newPodStore(c.MaxAge)
	}
	access, err := clusterAccess(h, c.Provider.Type)
	if err != nil {
		return nil, fmt.Errorf("podUsage: %w", err)
	}
	source, err := provider.NewPods(c.Provider, access)
	if err != nil {
		return nil, fmt.Errorf("podUsage.%w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if store, ok := s.podStores[c]; ok {
		return store, nil
	}
	store := load.NewPodStore(c.MaxAge, nil)
	s.podStores[c] = store
	logger := klog.FromContext(ctx).WithName("pod-usage")
	loadCollector().Watch(ctx, source.String(), store)
	go store.Run(ctx, source, c.PollInterval, func(state load.State) { logPodState(logger, source, store, state) })
	return store, nil
}

// logPodState logs a change of the state of a store of the usage of pods.
func logPodState(logger klog.Logger, source load.PodSource, store *load.PodStore, state load.State) {
	switch {
	case state.Degraded:
		logger.Error(state.Err, "No fresh usage of pods", "maxAge", store.MaxAge())
	case state.Err != nil:
		logger.Error(state.Err, "The usage of pods could not be read: the previous reading is used", "maxAge", store.MaxAge())
	default:
		if reading := store.Fresh(); reading != nil {
			logger.Info("Reading the usage of pods", "source", source.String(), "pods", len(reading.Pods), "rejected", reading.Rejected)
		}
	}
}

// loadCollector exposes the state of all stores of the process among the metrics of the scheduler.
var loadCollector = sync.OnceValue(func() *telemetry.Collector {
	c := &telemetry.Collector{}
	legacyregistry.RawMustRegister(c)
	return c
})

// newSource returns the configured load source, or nil if there is none. Errors name the argument.
func newSource(c LoadConfig, h fwk.Handle) (load.Source, error) {
	chosen, configured := c.Source()
	if !configured {
		return nil, nil
	}
	access, err := clusterAccess(h, chosen.Type)
	if err != nil {
		return nil, fmt.Errorf("metricProvider: %w", err)
	}
	source, err := provider.New(chosen, access)
	switch {
	case err != nil && c.WatcherAddress != "":
		return nil, fmt.Errorf("watcherAddress: %w", err)
	case err != nil:
		return nil, fmt.Errorf("metricProvider.%w", err)
	}
	return source, nil
}

// +kubebuilder:rbac:groups=metrics.k8s.io,resources=pods,verbs=list

// clusterAccess returns the access of the scheduler to its own cluster.
func clusterAccess(h fwk.Handle, providerType string) (provider.Cluster, error) {
	var access provider.Cluster
	if factory := h.SharedInformerFactory(); factory != nil {
		access.Nodes = load.FromLister(factory.Core().V1().Nodes().Lister())
	}
	if providerType == metricprovider.MetricsServer && h.KubeConfig() != nil {
		client, err := metricsclient.NewForConfig(h.KubeConfig())
		if err != nil {
			return access, err
		}
		access.Metrics = client.MetricsV1beta1().NodeMetricses()
		access.PodMetrics = metricsserver.OpenPods(client.MetricsV1beta1().RESTClient())
	}
	return access, nil
}
