package main

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/tools/cache"
	kevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterclient "open-cluster-management.io/api/client/cluster/clientset/versioned"
	clusterlisterv1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1"
	clusterlisterv1alpha1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1alpha1"
	clusterlisterv1beta1 "open-cluster-management.io/api/client/cluster/listers/cluster/v1beta1"
	"open-cluster-management.io/ocm/pkg/placement/controllers/metrics"
	"open-cluster-management.io/ocm/pkg/placement/controllers/scheduling"
)

// hub has the caches of informers that the scheduler reads besides its arguments.
type hub struct {
	clusters, decisions, scores cache.Indexer
	metrics                     *metrics.ScheduleMetrics
}

func (*hub) EventRecorder() kevents.EventRecorder        { return &kevents.FakeRecorder{} }
func (*hub) ClusterClient() clusterclient.Interface      { return nil }
func (h *hub) MetricsRecorder() *metrics.ScheduleMetrics { return h.metrics }

func (h *hub) DecisionLister() clusterlisterv1beta1.PlacementDecisionLister {
	return clusterlisterv1beta1.NewPlacementDecisionLister(h.decisions)
}

func (h *hub) ScoreLister() clusterlisterv1alpha1.AddOnPlacementScoreLister {
	return clusterlisterv1alpha1.NewAddOnPlacementScoreLister(h.scores)
}

func (h *hub) ClusterLister() clusterlisterv1.ManagedClusterLister {
	return clusterlisterv1.NewManagedClusterLister(h.clusters)
}

// newIndexer returns a cache like the cache of an informer.
func newIndexer() cache.Indexer {
	return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
}

// addPlacements adds a case for each placement: one decision over all clusters.
func addPlacements(ctx context.Context, w *workload, operations map[string]operation) {
	h := &hub{newIndexer(), newIndexer(), newIndexer(), metrics.NewScheduleMetrics(clock.RealClock{})}
	for _, object := range w.Clusters {
		_ = h.clusters.Add(object) // fails only without metadata
	}
	for _, object := range w.Decisions {
		_ = h.decisions.Add(object)
	}
	scheduler := scheduling.NewPluginScheduler(h)
	for name, placement := range w.Placements {
		operations["place/"+name] = func() error {
			// It sorts the list that it is given.
			result, status := scheduler.Schedule(ctx, placement, slices.Clone(w.Clusters))
			if status.IsError() {
				return status.AsError()
			}
			if len(result.Decisions()) != int(*placement.Spec.NumberOfClusters) {
				return errors.New("the decision has another number of clusters")
			}
			return nil
		}
	}
}
