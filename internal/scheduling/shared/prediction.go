package shared

import (
	"context"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/provider"
)

// predictionConfig is the part of the arguments of PredictedUtilization that its model depends on.
type predictionConfig struct {
	nodes         LoadConfig
	usage         metricprovider.Config
	historyWeight float64
	history       string
}

// Prediction returns the keeper of the model that the arguments configure. Plugins with the same
// arguments share one.
func (s *State) Prediction(ctx context.Context, args *config.PredictedUtilizationArgs, h fwk.Handle) (*prediction.Keeper, error) {
	nodes := LoadConfigOf(args)
	store, err := s.LoadStore(ctx, nodes, h)
	if err != nil {
		return nil, err
	}
	usage := nodes
	usage.WatcherAddress, usage.Provider = "", args.PodUsage
	podStore, err := s.podStore(ctx, usage, h)
	if err != nil {
		return nil, err
	}
	key := predictionConfig{nodes, args.PodUsage, *args.HistoryWeight, args.HistoryConfigMap}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keeper, ok := s.keepers[key]; ok && s.newStore == nil {
		return keeper, nil
	}
	options := predict.Options{HistoryWeight: *args.HistoryWeight, HalfLife: predict.DefaultHalfLife}
	keeper := prediction.New(options, s.podsOf(h), s.predictionMetrics().ObserveError)
	if err := s.keepHistory(ctx, args, h, keeper, func() { keeper.Watch(store, podStore) }); err != nil {
		return nil, err
	}
	s.keepers[key] = keeper
	return keeper, nil
}

// keepHistory restores the history of a learner, calls ready, and saves the history until ctx is done. It runs in the
// background, because the informers must have the pods first. The history is rebuilt from the metric provider of the usage of
// pods if it has past readings, and saved in the ConfigMap of the arguments. In a scheduler that does not read load from the
// configured sources, there is no history: ready is called at once. Learners with a history must not learn from current readings
// before ready.
func (s *State) keepHistory(
	ctx context.Context, args *config.PredictedUtilizationArgs, h fwk.Handle, learner prediction.Learner, ready func(),
) error {
	if s.newStore != nil {
		ready()
		return nil
	}
	options := prediction.HistoryOptions{Learner: learner}
	if args.HistoryConfigMap != "" {
		namespace, name, _ := strings.Cut(args.HistoryConfigMap, "/")
		options.ConfigMaps, options.Name = h.ClientSet().CoreV1().ConfigMaps(namespace), name
	}
	if args.PodUsage.Type == metricprovider.Prometheus {
		source, err := provider.NewPods(args.PodUsage, provider.Cluster{})
		if err != nil {
			return fmt.Errorf("podUsage.%w", err)
		}
		options.Past, _ = source.(load.PastPodSource)
	}
	keeper := prediction.NewHistoryKeeper(options)
	s.predictionMetrics().WatchHistory(ctx, keeper.State)
	if options.Past == nil && options.ConfigMaps == nil {
		ready()
		return nil
	}
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

// podsOf returns the nodes and pods of the scheduler. In a scheduler that reads load from the configured
// sources they come from its informers, which any goroutine may read. Otherwise the goroutine that schedules
// stores the readings, and they come from its snapshot.
func (s *State) podsOf(h fwk.Handle) prediction.Pods {
	if s.newStore != nil {
		return func(visit func(*v1.Node, []*v1.Pod)) { visitSnapshot(h.SnapshotSharedLister(), visit) }
	}
	factory := h.SharedInformerFactory()
	if factory == nil { // a framework without a cluster
		return func(func(*v1.Node, []*v1.Pod)) {}
	}
	informers := factory.Core().V1()
	nodes, pods := informers.Nodes().Lister(), informers.Pods().Lister()
	return func(visit func(*v1.Node, []*v1.Pod)) { visitNodes(nodes, pods, visit) }
}

// visitSnapshot visits the nodes of a snapshot.
func visitSnapshot(snapshot fwk.SharedLister, visit func(*v1.Node, []*v1.Pod)) {
	infos, err := snapshot.NodeInfos().List()
	if err != nil {
		return
	}
	for _, info := range infos {
		pods := make([]*v1.Pod, 0, len(info.GetPods()))
		for _, p := range info.GetPods() {
			pods = append(pods, p.GetPod())
		}
		if info.Node() != nil {
			visit(info.Node(), pods)
		}
	}
}
