// Package agent reports the cluster that it runs in to a hub: scores for the placement of workloads,
// and the resources of the nodes unless another component reports them.
//
// # Scores
//
// The agent scores a cluster by properties that the sum of its allocatable resources does
// not show: free resources after requests, overcommitment by limits, the risk that measured load
// exceeds requests, and the available slack. An agent in the cluster publishes the scores for the
// placement of workloads onto clusters.
//
// Every score is an integer in [-100, 100], higher is better. It depends on one cluster only:
// scores of clusters of any size can be compared, and a cluster that joins or leaves the
// fleet does not change the scores of other clusters. A score without data is absent rather than medium.
//
// Only nodes that accept a pod without tolerations count, with the pods on them. Scores are
// truncated toward zero, as in Open Cluster Management.
package agent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/plimsoll-k8s/plimsoll/api/capacity/v1alpha1"
	"github.com/plimsoll-k8s/plimsoll/load"
)

const (
	// minBackoff and maxBackoff limit the time from a failed report to the next attempt. With the
	// timeout of a request and jitter, a hub has the newest report within 30 seconds after an outage.
	minBackoff = time.Second
	maxBackoff = 15 * time.Second
	// resyncPeriod is the time after which unchanged resources are reported again: another client may
	// have changed or removed them on the hub, or have stopped reporting them.
	resyncPeriod = 10 * time.Minute
)

// Options configure an agent.
type Options struct {
	// Hub is the hub to report to.
	Hub *Hub
	// Interval is the time between two reports, at least 1 s.
	Interval time.Duration
	// ValidFor is the time for which scores are valid if no report follows, at least twice Interval.
	ValidFor time.Duration
	// Resources states when the resources of the cluster are reported.
	Resources ReportResources
	// QuotaNamespaces are the namespaces whose quotas are part of the ClusterCapacity.
	QuotaNamespaces []string
	// Load is the measured load of the nodes. It is optional.
	Load *load.Store
}

// Agent reports one cluster.
type Agent struct {
	options  Options
	observer *observer
	member   *member
	hub      receiver
	metrics  *metrics
	now      func() time.Time
	last     report
	capacity capacityReport
}

// receiver receives the reports of one cluster.
type receiver interface {
	writeCapacity(ctx context.Context, status *v1alpha1.ClusterCapacityStatus) error
	writeScores(ctx context.Context, scores []namedScore, validUntil time.Time) error
	writeResources(ctx context.Context, capacity, allocatable v1.ResourceList, force bool) error
}

// report is the last report that the hub has received.
type report struct {
	scores                []namedScore
	validUntil            time.Time
	capacity, allocatable v1.ResourceList
	resourcesAt           time.Time
	// unmanaged reports whether another client owns the resources.
	unmanaged bool
}

// New returns an agent with a client of the member cluster. It registers
// its metrics with the registry.
func New(options Options, client dynamic.Interface, registry prometheus.Registerer) *Agent {
	return &Agent{
		options:  options,
		observer: newObserver(),
		member:   &member{client: client},
		hub:      options.Hub,
		metrics:  newMetrics(registry),
		now:      time.Now,
	}
}

// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch
// +kubebuilder:rbac:groups=plimsoll.dev,resources=resourceslacks,verbs=list

// Register adds the agent to a manager of the member cluster.
func (a *Agent) Register(m ctrl.Manager) error {
	return m.Add(manager.RunnableFunc(func(ctx context.Context) error {
		var group wait.Group
		defer group.Wait()
		if err := a.observer.start(ctx, m.GetConfig(), &group); err != nil {
			return err
		}
		group.StartWithContext(ctx, a.runCapacity)
		a.run(ctx)
		return nil
	}))
}

// run reports scores and resources until ctx ends.
func (a *Agent) run(ctx context.Context) {
	a.repeat(ctx, a.options.Interval, a.reportAll)
}

// repeat calls report at an interval until ctx ends, and earlier after failures. Pauses are longer at random, so that the agents of many
// clusters do not report at the same time. It logs an error when its reason changes, and the first success after a failure.
func (a *Agent) repeat(ctx context.Context, interval time.Duration, report func(context.Context) error) {
	failures, logged := 0, ""
	for ctx.Err() == nil {
		err := report(ctx)
		if ctx.Err() != nil {
			break
		}
		failures++
		pause, reason := wait.Jitter(backoff(failures, interval), 0.2), reasonOf(err)
		switch {
		case err == nil:
			failures, pause = 0, wait.Jitter(interval, 0.05)
			if logged != "" {
				klog.InfoS("Report succeeded again", "cluster", a.options.Hub.cluster)
			}
		case reason != logged:
			oneLine := errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
			klog.ErrorS(oneLine, "Report failed, retrying", "cluster", a.options.Hub.cluster, "reason", reason)
		}
		if err != nil {
			a.metrics.failures.WithLabelValues(reason).Inc()
		}
		logged = reason
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// backoff returns the pause after a number of consecutive failures. It does not exceed the interval,
// after which there may be a new report.
func backoff(failures int, interval time.Duration) time.Duration {
	pause := minBackoff << min(failures-1, 10)
	return min(pause, maxBackoff, interval)
}

// reportAll writes the scores and resources that the hub does not have.
func (a *Agent) reportAll(ctx context.Context) error {
	// If the API server of the cluster does not answer, the state is outdated: the scores expire.
	pools, err := a.member.policies(ctx)
	if err != nil {
		return err
	}
	var fresh *load.Snapshot
	if a.options.Load != nil {
		fresh = a.options.Load.Fresh()
	}
	scores := scoresOf(a.observer.state(pools, fresh))
	capacity, allocatable := a.observer.resources()
	a.metrics.recordScores(scores)
	err = a.reportScores(ctx, scores)
	if reasonOf(err) == reasonUnreachable {
		return err // the next request would time out, too
	}
	if err := errors.Join(err, a.reportResources(ctx, capacity, allocatable)); err != nil {
		return err
	}
	a.metrics.reported.SetToCurrentTime()
	return nil
}

// reportScores writes scores that changed or expire soon.
func (a *Agent) reportScores(ctx context.Context, scores []namedScore) error {
	// The wall clock, as on the hub: after a jump the scores on the hub are valid for too short or too long.
	now := a.now().Round(0)
	remaining := a.last.validUntil.Sub(now)
	if slices.Equal(scores, a.last.scores) && remaining > a.options.ValidFor/2 && remaining <= a.options.ValidFor {
		return nil
	}
	validUntil := now.Add(a.options.ValidFor)
	if err := a.hub.writeScores(ctx, scores, validUntil); err != nil {
		return err
	}
	a.last.scores, a.last.validUntil = scores, validUntil
	a.metrics.validUntil.Set(float64(validUntil.Unix()))
	a.metrics.writes.WithLabelValues(scoreKind).Inc()
	return nil
}

// reportResources writes resources that changed or were written longer than resyncPeriod ago.
func (a *Agent) reportResources(ctx context.Context, capacity, allocatable v1.ResourceList) error {
	if a.options.Resources == Never {
		return nil
	}
	now := a.now()
	same := equality.Semantic.DeepEqual(capacity, a.last.capacity) && equality.Semantic.DeepEqual(allocatable, a.last.allocatable)
	if (same || a.last.unmanaged) && now.Sub(a.last.resourcesAt) < resyncPeriod {
		return nil
	}
	err := a.hub.writeResources(ctx, capacity, allocatable, a.options.Resources == Always)
	if apierrors.IsConflict(err) && a.options.Resources == Auto {
		if !a.last.unmanaged {
			klog.InfoS("Another client reports the resources of the cluster, the agent does not", "cluster", a.options.Hub.cluster,
				"details", err.Error())
		}
		a.metrics.unmanaged.Set(1)
		a.last.unmanaged, a.last.resourcesAt = true, now
		return nil
	}
	if err != nil {
		return err
	}
	a.metrics.unmanaged.Set(0)
	a.last.unmanaged, a.last.capacity, a.last.allocatable, a.last.resourcesAt = false, capacity, allocatable, now
	a.metrics.writes.WithLabelValues(clusterKind).Inc()
	return nil
}

// metrics are the metrics of the agent.
type metrics struct {
	score      *prometheus.GaugeVec
	reported   prometheus.Gauge
	validUntil prometheus.Gauge
	unmanaged  prometheus.Gauge
	writes     *prometheus.CounterVec
	failures   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	const namespace, subsystem = "plimsoll", "agent"
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}
	}
	counter := func(name, help, label string) *prometheus.CounterVec {
		options := prometheus.CounterOpts{Namespace: namespace, Subsystem: subsystem, Name: name, Help: "[ALPHA] " + help}
		return prometheus.NewCounterVec(options, []string{label})
	}
	m := &metrics{
		score: prometheus.NewGaugeVec(gauge("score", "Scores of the cluster, from -100 to 100."), []string{"score"}),
		reported: prometheus.NewGauge(gauge("last_report_timestamp_seconds",
			"Time of the last successful report, or of the last check that found the hub up to date. 0 before the first report.")),
		validUntil: prometheus.NewGauge(gauge("valid_until_timestamp_seconds", "Time until which the scores on the hub are valid.")),
		unmanaged: prometheus.NewGauge(gauge("resources_foreign",
			"1 if another client reports the resources of the cluster, otherwise 0.")),
		writes:   counter("writes_total", "Number of successful reports, by kind.", "kind"),
		failures: counter("failures_total", "Number of failed reports, by reason.", "reason"),
	}
	registry.MustRegister(m.score, m.reported, m.validUntil, m.unmanaged, m.writes, m.failures)
	return m
}

// recordScores sets the scores and deletes absent scores.
func (m *metrics) recordScores(scores []namedScore) {
	for _, name := range scoreNames {
		i := slices.IndexFunc(scores, func(s namedScore) bool { return s.Name == name })
		if i < 0 {
			m.score.DeleteLabelValues(name)
			continue
		}
		m.score.WithLabelValues(name).Set(float64(scores[i].Value))
	}
}
