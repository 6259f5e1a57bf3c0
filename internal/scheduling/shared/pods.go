package shared

import (
	"context"
	"fmt"

	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// PodStore returns the store of the usage of pods for a configuration, nil if it has no Provider. WatcherAddress must be
// empty: load-watcher services do not provide the usage of pods. Plugins with the same configuration share one store. It is
// filled until ctx is done.
func (s *State) PodStore(ctx context.Context, c LoadConfig, h fwk.Handle) (*load.PodStore, error) {
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
	loadCollector().WatchPods(ctx, source.String(), store)
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
		reading := store.Last()
		logger.Info("Reading the usage of pods", "source", source.String(), "pods", len(reading.Pods), "rejected", reading.Rejected)
	}
}
