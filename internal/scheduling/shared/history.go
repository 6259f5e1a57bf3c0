package shared

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// historyConfig is the part of a plugin's arguments that configures how the history of the usage of workloads survives a
// restart.
type historyConfig struct {
	// Provider is the metric provider of the usage of pods. The history is rebuilt from it if it has past readings.
	Provider metricprovider.Config
	// ConfigMap is the namespace and the name of the ConfigMap that the history is saved in; it is not saved if it is empty.
	ConfigMap string
}

// keepHistory restores the history of a learner, calls ready, and saves the history until ctx is done. It runs in the
// background, because the informers must have the pods first. In a scheduler that does not read load from the configured sources,
// there is no history: ready is called at once. Learners with a history must not learn from current readings before ready.
func (s *State) keepHistory(ctx context.Context, c historyConfig, h fwk.Handle, learner prediction.Learner, ready func()) error {
	if s.newStore != nil {
		ready()
		return nil
	}
	options := prediction.HistoryOptions{Learner: learner}
	if c.ConfigMap != "" {
		namespace, name, found := strings.Cut(c.ConfigMap, "/")
		if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("historyConfigMap: invalid value %q: must be NAMESPACE/NAME", c.ConfigMap)
		}
		options.ConfigMaps, options.Name = h.ClientSet().CoreV1().ConfigMaps(namespace), name
	}
	if c.Provider.Type == metricprovider.Prometheus {
		source, err := provider.NewPods(c.Provider, provider.Cluster{})
		if err != nil {
			return fmt.Errorf("podUsage.%w", err)
		}
		options.Past, _ = source.(load.PastPodSource)
	}
	if options.Past == nil && options.ConfigMaps == nil {
		s.watchHistory(ctx, learner, func() prediction.History { return prediction.History{} })
		ready()
		return nil
	}
	keeper := prediction.NewHistoryKeeper(options)
	s.watchHistory(ctx, learner, keeper.Saved)
	informers := h.SharedInformerFactory().Core().V1()
	synced := []cache.InformerSynced{informers.Pods().Informer().HasSynced, informers.Nodes().Informer().HasSynced}
	go func() {
		if !cache.WaitForCacheSync(ctx.Done(), synced...) {
			return
		}
		keeper.Start(ctx)
		ready()
		keeper.Run(ctx)
	}()
	return nil
}

// watchHistory exposes the history of a learner and the last save in the metrics.
func (s *State) watchHistory(ctx context.Context, learner prediction.Learner, saved func() prediction.History) {
	s.PredictionMetrics().WatchHistory(ctx, func() prediction.History {
		state := saved()
		state.Workloads, state.Updated = learner.Known()
		return state
	})
}
