package shared

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/plimsoll-k8s/plimsoll/api/config"
	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/resources"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/predict"
	"github.com/plimsoll-k8s/plimsoll/internal/scheduling/prediction"
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
	podStore, err := s.PodStore(ctx, usage, h)
	if err != nil {
		return nil, err
	}
	key := predictionConfig{nodes, args.PodUsage, *args.HistoryWeight, args.HistoryConfigMap}
	s.mu.Lock()
	defer s.mu.Unlock()
	if keeper, ok := s.keepers[key]; ok && s.newStore == nil {
		return keeper, nil
	}
	options := predict.Options{HistoryWeight: *args.HistoryWeight, HalfLife: predict.DefaultHalfLife, Without: s.Without}
	metrics := s.PredictionMetrics()
	keeper := prediction.New(options, s.podsOf(h), func(resource v1.ResourceName, predicted, measured float64) {
		metrics.ObserveError(string(resource), predicted, measured)
	})
	history := historyConfig{Provider: args.PodUsage, ConfigMap: args.HistoryConfigMap}
	if err := s.keepHistory(ctx, history, h, keeper, func() { keeper.Watch(store, podStore) }); err != nil {
		return nil, err
	}
	s.keepers[key] = keeper
	return keeper, nil
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
	return func(visit func(*v1.Node, []*v1.Pod)) {
		all, err := pods.List(labels.Everything())
		if err != nil {
			return
		}
		byNode := map[string][]*v1.Pod{}
		for _, pod := range all {
			if resources.OccupiesNode(pod) {
				byNode[pod.Spec.NodeName] = append(byNode[pod.Spec.NodeName], pod)
			}
		}
		list, err := nodes.List(labels.Everything())
		if err != nil {
			return
		}
		for _, node := range list {
			visit(node, byNode[node.Name])
		}
	}
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
