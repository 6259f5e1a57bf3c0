package agent

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/internal/fleet/summarize"
)

const (
	// capacityInterval is the minimum time between two writes of the ClusterCapacity.
	capacityInterval = 10 * time.Second
	// capacityResync is the time after which an unchanged ClusterCapacity is written again: hubs ignore old ones.
	capacityResync = 5 * time.Minute
)

// capacityReport is the last ClusterCapacity that the hub has received.
type capacityReport struct {
	status    *v1alpha1.ClusterCapacityStatus
	writtenAt time.Time
}

// runCapacity writes the ClusterCapacity until ctx ends.
func (a *Agent) runCapacity(ctx context.Context) {
	a.repeat(ctx, capacityInterval, a.reportCapacity)
}

// reportCapacity writes the ClusterCapacity if it changed or is old.
func (a *Agent) reportCapacity(ctx context.Context) error {
	pools, err := a.member.policies(ctx)
	if err != nil {
		return err
	}
	quotas, err := a.member.quotas(ctx, a.options.QuotaNamespaces)
	if err != nil {
		return err
	}
	status := a.observer.summarize(summarize.Input{
		Cluster: a.options.Hub.cluster, Now: a.now(), Slack: heldBy(pools), Pools: a.member.pools(ctx, a.observer.labelCounts),
		Quotas: quotas,
	})
	last := a.capacity
	if last.status != nil && a.now().Sub(last.writtenAt) < capacityResync && sameCapacity(last.status, status) {
		return nil
	}
	if err := a.hub.writeCapacity(ctx, status); err != nil {
		return err
	}
	a.capacity = capacityReport{status, a.now()}
	a.metrics.writes.WithLabelValues(v1alpha1.Kind).Inc()
	return nil
}

// sameCapacity reports whether two summaries differ in nothing but their times.
func sameCapacity(a, b *v1alpha1.ClusterCapacityStatus) bool {
	x, y := *a, *b
	x.ObservedAt, y.ObservedAt = metav1.Time{}, metav1.Time{}
	return equality.Semantic.DeepEqual(x, y)
}

// heldBy returns the sum of the requests of the placeholders of all policies.
func heldBy(pools []slackAmounts) v1.ResourceList {
	sum := v1.ResourceList{}
	for _, pool := range pools {
		addTo(sum, pool.Total)
	}
	return sum
}
