package lowriskovercommitment

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	metricsclient "k8s.io/metrics/pkg/client/clientset/versioned"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

// Stores are the readers of load of one scheduler: profiles that name the same
// source in the same way share one.
type Stores struct {
	mu    sync.Mutex
	byKey map[storeKey]*load.Store
	make  func(maxAge time.Duration) (*load.Store, error)
}

type storeKey struct {
	watcherAddress       string
	provider             metricprovider.Config
	pollInterval, maxAge time.Duration
}

// NewStores returns an empty set, which starts a reader for every source that
// is named.
func NewStores() *Stores { return &Stores{byKey: map[storeKey]*load.Store{}} }

// StoresMadeBy returns a set whose stores are made and filled by the caller,
// whatever source the arguments name, and no reader: for those who bring load
// of their own, such as a simulation.
func StoresMadeBy(make func(maxAge time.Duration) (*load.Store, error)) *Stores {
	return &Stores{make: make}
}

// get returns the store for these arguments; it is filled until ctx ends.
func (s *Stores) get(ctx context.Context, args *config.LowRiskOverCommitmentArgs, handle fwk.Handle) (*load.Store, error) {
	if s.make != nil {
		return s.make(args.MaxLoadAge.Duration)
	}
	source, err := newSource(args, handle)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := storeKey{args.WatcherAddress, args.MetricProvider, args.PollInterval.Duration, args.MaxLoadAge.Duration}
	if store, ok := s.byKey[key]; ok {
		return store, nil
	}
	store := load.NewStore(args.MaxLoadAge.Duration, nil)
	s.byKey[key] = store
	logger := klog.FromContext(ctx).WithName(Name)
	if source == nil {
		logger.Info("No source of load is configured (watcherAddress or metricProvider): nodes are judged by limits only")
		return store, nil
	}
	collector().Watch(source.String(), store)
	go store.Run(ctx, source, args.PollInterval.Duration, func(state load.State) { logState(logger, source, store, state) })
	return store, nil
}

// logState tells people how reading load goes. It is called when that changes.
func logState(logger klog.Logger, source load.Source, store *load.Store, state load.State) {
	switch {
	case state.Degraded:
		logger.Error(state.Err, "There is no fresh load: nodes are judged by limits only", "maxLoadAge", store.MaxAge())
	case state.Partial:
		logger.Error(state.Err, "Part of the load cannot be read; what was known of it is used until it is too old", "maxLoadAge", store.MaxAge())
	case state.Err != nil:
		logger.Error(state.Err, "Load cannot be read; the last reading is used until it is too old", "maxLoadAge", store.MaxAge())
	default:
		logger.Info("Load is read", "source", source.String(), "nodes", len(store.Fresh().Reading().Nodes))
	}
}

// collector has the metrics of all stores of the process, among those of the
// scheduler.
var collector = sync.OnceValue(func() *telemetry.Collector {
	c := &telemetry.Collector{}
	legacyregistry.RawMustRegister(c)
	return c
})

// SourceConfig returns the source that the arguments name, and false if they
// name none.
func SourceConfig(args *config.LowRiskOverCommitmentArgs) (metricprovider.Config, bool) {
	if args.WatcherAddress != "" {
		return metricprovider.Config{Type: metricprovider.Service, Address: args.WatcherAddress}, true
	}
	return args.MetricProvider, args.MetricProvider != metricprovider.Config{}
}

// newSource returns the source that the arguments name, nil if they name none.
func newSource(args *config.LowRiskOverCommitmentArgs, handle fwk.Handle) (load.Source, error) {
	chosen, any := SourceConfig(args)
	if !any {
		return nil, nil
	}
	access, err := accessTo(handle, chosen.Type)
	if err != nil {
		return nil, err
	}
	source, err := provider.New(chosen, access)
	switch {
	case err != nil && args.WatcherAddress != "":
		return nil, fmt.Errorf("watcherAddress: %w", err)
	case err != nil:
		return nil, fmt.Errorf("metricProvider.%w", err)
	}
	return source, nil
}

// accessTo returns the scheduler's own view of its cluster.
func accessTo(handle fwk.Handle, providerType string) (provider.Cluster, error) {
	var access provider.Cluster
	if factory := handle.SharedInformerFactory(); factory != nil {
		access.Nodes = cluster.FromLister(factory.Core().V1().Nodes().Lister())
	}
	if providerType == metricprovider.MetricsServer && handle.KubeConfig() != nil {
		client, err := metricsclient.NewForConfig(handle.KubeConfig())
		if err != nil {
			return access, fmt.Errorf("metricProvider: %w", err)
		}
		access.Metrics = client.MetricsV1beta1().NodeMetricses()
	}
	return access, nil
}
