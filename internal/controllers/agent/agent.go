// Package agent tells a hub about the cluster that it runs in: scores for the
// placement of workloads, and what the nodes have, where nobody else tells that.
package agent

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/dynamic"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-k8s/plimsoll/internal/algo/clusterscore"
	"github.com/plimsoll-k8s/plimsoll/load"
)

const (
	// firstPause and longestPause bound the time from a failed report to the next
	// attempt. With the timeout of a request and jitter, a hub that is back has the
	// newest report within 30 s.
	firstPause   = time.Second
	longestPause = 15 * time.Second
	// resync is the time after which resources are reported again though they are
	// the same: somebody may have changed or removed them on the hub, or have
	// stopped reporting them.
	resync = 10 * time.Minute
)

// Options say what an agent reports, and where.
type Options struct {
	// Cluster is the name of the cluster on the hub, and of its namespace there.
	Cluster string
	// Hub gives access to the hub.
	Hub *Hub
	// Interval is the time between two reports, at least 1 s.
	Interval time.Duration
	// ValidFor is how long the scores hold if no report follows, at least twice the
	// interval.
	ValidFor time.Duration
	// Resources says when the cluster's resources are reported.
	Resources ReportResources
	// Load is what is measured, nil if nothing is.
	Load *load.Store
}

// Agent reports about one cluster.
type Agent struct {
	options  Options
	observer *observer
	policies *policies
	hub      receiver
	metrics  *metrics
	now      func() time.Time
	// synced say whether all nodes and pods that there were have been counted.
	synced []toolscache.InformerSynced
	sent   sent
	// told is what kind of failure was logged last.
	told string
}

// receiver is what takes reports.
type receiver interface {
	scores(ctx context.Context, scores []clusterscore.Score, validUntil time.Time) error
	resources(ctx context.Context, capacity, allocatable v1.ResourceList, force bool) error
}

// sent is what the hub has.
type sent struct {
	scores                []clusterscore.Score
	validUntil            time.Time
	capacity, allocatable v1.ResourceList
	resourcesAt           time.Time
	// foreign: resources are somebody else's.
	foreign bool
}

// New returns an agent that asks the member's API server for policies of
// resource slack. Its metrics are in the registry.
func New(options Options, member dynamic.Interface, registry prometheus.Registerer) *Agent {
	return &Agent{
		options: options, observer: newObserver(), policies: &policies{client: member},
		hub: options.Hub.of(options.Cluster), metrics: newMetrics(registry), now: time.Now,
	}
}

// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks,verbs=list

// Register makes a manager of the member cluster run the agent. Its cache should
// be made with CacheOptions.
func (a *Agent) Register(ctx context.Context, m ctrl.Manager) error {
	synced, err := a.observer.watch(ctx, m.GetCache())
	if err != nil {
		return err
	}
	a.synced = synced
	return m.Add(manager.RunnableFunc(a.run))
}

// run reports until ctx ends.
func (a *Agent) run(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), a.synced...) {
		return nil
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for failures := 0; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		err := a.report(ctx)
		if ctx.Err() != nil {
			return nil
		}
		a.tell(err)
		if err == nil {
			failures = 0
			timer.Reset(scaled(a.options.Interval, 0.05))
			continue
		}
		failures++
		timer.Reset(scaled(backOff(failures, a.options.Interval), 0.2))
	}
}

// backOff returns the pause after so many failures in a row. It is no longer than
// the interval, after which there may be something new to report.
func backOff(failures int, interval time.Duration) time.Duration {
	pause := firstPause << min(failures-1, 10)
	return min(pause, longestPause, interval)
}

// scaled returns a duration with so much of jitter to either side, so that the
// agents of many clusters do not come at once.
func scaled(d time.Duration, jitter float64) time.Duration {
	return time.Duration(float64(d) * (1 + jitter*(2*rand.Float64()-1)))
}

// report tells the hub what it does not know yet.
func (a *Agent) report(ctx context.Context) error {
	// What is reported of a cluster that does not answer is old: it is not
	// refreshed, and its scores expire.
	pools, err := a.policies.list(ctx)
	if err != nil {
		return err
	}
	scores := clusterscore.Scores(a.observer.state(pools, a.options.Load))
	capacity, allocatable := a.observer.resources()
	a.metrics.scored(scores)
	err = a.reportScores(ctx, scores)
	if reasonOf(err) == reasonUnreachable {
		return err // nor would the rest get there, but it would take its time
	}
	if err := errors.Join(err, a.reportResources(ctx, capacity, allocatable)); err != nil {
		return err
	}
	a.metrics.upToDate(a.now())
	return nil
}

// reportScores writes scores that are new, or will soon have expired.
func (a *Agent) reportScores(ctx context.Context, scores []clusterscore.Score) error {
	now := a.now()
	if slices.Equal(scores, a.sent.scores) && a.sent.validUntil.Sub(now) > a.options.ValidFor/2 {
		return nil
	}
	validUntil := now.Add(a.options.ValidFor)
	if err := a.hub.scores(ctx, scores, validUntil); err != nil {
		return err
	}
	a.sent.scores, a.sent.validUntil = scores, validUntil
	a.metrics.wrote(scoreKind, validUntil)
	return nil
}

// reportResources writes resources that are new, or have not been written for
// long.
func (a *Agent) reportResources(ctx context.Context, capacity, allocatable v1.ResourceList) error {
	if a.options.Resources == Never {
		return nil
	}
	now := a.now()
	same := equality.Semantic.DeepEqual(capacity, a.sent.capacity) && equality.Semantic.DeepEqual(allocatable, a.sent.allocatable)
	if (same || a.sent.foreign) && now.Sub(a.sent.resourcesAt) < resync {
		return nil
	}
	err := a.hub.resources(ctx, capacity, allocatable, a.options.Resources == Always)
	if owner, ok := errors.AsType[*ownedError](err); ok {
		// Somebody else reports them, and does so as well: that is no failure.
		if !a.sent.foreign {
			klog.InfoS("The resources of the cluster are reported by somebody else and left to them", "cluster", a.options.Cluster, "details", owner.Error())
		}
		a.metrics.yielded(true)
		a.sent.foreign, a.sent.resourcesAt = true, now
		return nil
	}
	if err != nil {
		return err
	}
	a.metrics.yielded(false)
	a.sent.foreign, a.sent.capacity, a.sent.allocatable, a.sent.resourcesAt = false, capacity, allocatable, now
	a.metrics.wrote(clusterKind, time.Time{})
	return nil
}

// tell logs when reporting begins to fail, fails in another way, or is well
// again, and not for every attempt.
func (a *Agent) tell(err error) {
	reason := reasonOf(err)
	if err != nil {
		a.metrics.failed(reason)
	}
	switch {
	case reason == a.told:
	case err != nil:
		line := errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
		klog.ErrorS(line, "Reporting fails and is tried again", "cluster", a.options.Cluster, "reason", reason)
	case a.told != "":
		klog.InfoS("Reporting goes on", "cluster", a.options.Cluster)
	}
	a.told = reason
}
