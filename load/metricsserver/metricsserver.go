// Package metricsserver reads load from the metrics API of Kubernetes, which
// metrics-server provides. The API has only the present; mean and deviation are
// over the samples that came in the last while, so that they say more the
// longer the source runs.
package metricsserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/cluster"
	"github.com/plimsoll-k8s/plimsoll/load/samples"
)

// The defaults of a configuration.
const (
	DefaultWindow = 15 * time.Minute
	// DefaultMaxAge is how old a node's newest sample may be. Of a kubelet that
	// does not answer metrics-server tells nothing; a scrape or two that fail are
	// no reason to forget the node.
	DefaultMaxAge = 3 * time.Minute
)

// Lister lists the metrics of nodes: NodeMetricses() of k8s.io/metrics.
type Lister interface {
	List(ctx context.Context, options metav1.ListOptions) (*metricsv1beta1.NodeMetricsList, error)
}

// Config says where metrics come from.
type Config struct {
	// Metrics of the nodes.
	Metrics Lister
	// Nodes have the capacity that usage is a fraction of.
	Nodes cluster.Inventory
	// Window is what means and deviations are over; 15m if 0.
	Window time.Duration
	// MaxAge is how old the newest sample of a node may be; 3m if 0.
	MaxAge time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Source is the metrics API. It is for one reader.
type Source struct {
	config Config
	window *samples.Window
}

// New returns the source of a configuration.
func New(config Config) (*Source, error) {
	if config.Metrics == nil || config.Nodes == nil {
		return nil, errors.New("metrics-server: wants access to a cluster, for its metrics and its nodes")
	}
	if config.Window == 0 {
		config.Window = DefaultWindow
	}
	if config.Window < time.Second {
		return nil, fmt.Errorf("window: found %s, want at least 1s", config.Window)
	}
	if config.MaxAge == 0 {
		config.MaxAge = DefaultMaxAge
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Source{config: config, window: samples.New(config.Window)}, nil
}

// String names the source in messages.
func (s *Source) String() string { return "the metrics API (metrics.k8s.io)" }

// +kubebuilder:rbac:groups=metrics.k8s.io,resources=nodes,verbs=list

// Read lists the metrics of all nodes and adds them to the samples kept.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	list, err := s.config.Metrics.List(ctx, metav1.ListOptions{})
	if err != nil {
		return load.Reading{}, describe(err)
	}
	machines, err := s.config.Nodes()
	if err != nil {
		return load.Reading{}, err
	}
	capacity := make(map[string]cluster.Machine, len(machines))
	for _, machine := range machines {
		capacity[machine.Name] = machine
	}
	s.window.Retain(func(node string) bool { _, known := capacity[node]; return known })
	now := s.config.Now()
	reading := load.Reading{Source: metricprovider.MetricsServer, Window: s.config.Window, Nodes: make(map[string]load.Node, len(list.Items))}
	for i := range list.Items {
		metrics := &list.Items[i]
		sample, good := fractions(metrics, capacity[metrics.Name])
		at := metrics.Timestamp.Time
		if !good || at.After(now.Add(load.MaxAhead)) {
			reading.Rejected++
			continue
		}
		s.window.Add(metrics.Name, at, sample)
	}
	for name := range capacity {
		newest := s.window.Newest(name)
		if newest.IsZero() {
			continue
		}
		if now.Sub(newest) > s.config.MaxAge {
			reading.Stale++
			continue
		}
		if newest.After(reading.Time) {
			reading.Time = newest
		}
		reading.Nodes[name], _ = s.window.Load(name)
	}
	if len(reading.Nodes) == 0 {
		return load.Reading{}, &load.Error{Reason: load.Empty, Err: fmt.Errorf(
			"no node has fresh metrics: %d listed, %d of them without sense or of no known node, %d older than %s", len(list.Items), reading.Rejected, reading.Stale, s.config.MaxAge)}
	}
	return reading, nil
}

// fractions returns the usage of a node as fractions of what it has, and
// whether it makes sense.
func fractions(metrics *metricsv1beta1.NodeMetrics, machine cluster.Machine) (samples.Sample, bool) {
	usedCPU, hasCPU := metrics.Usage[v1.ResourceCPU]
	usedMemory, hasMemory := metrics.Usage[v1.ResourceMemory]
	cpu := usedCPU.AsApproximateFloat64() / machine.CPU
	memory := usedMemory.AsApproximateFloat64() / machine.Memory
	if !hasCPU || !hasMemory || !(cpu >= 0) || !(memory >= 0) || math.IsInf(cpu, 1) || math.IsInf(memory, 1) {
		return samples.Sample{}, false
	}
	return samples.Sample{CPU: min(cpu, 1), Memory: min(memory, 1)}, true
}

// describe says what the API server's error comes from.
func describe(err error) error {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	failure := &load.Error{Reason: load.ReasonOf(err), RetryAfter: time.Duration(seconds) * time.Second, Err: err}
	switch {
	case apierrors.IsNotFound(err):
		failure.Reason, failure.Err = load.Unreachable, fmt.Errorf("%w; is metrics-server installed?", err)
	case apierrors.IsServiceUnavailable(err):
		failure.Reason, failure.Err = load.Unreachable, fmt.Errorf("%w; is metrics-server running?", err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		failure.Reason, failure.Err = load.Denied, fmt.Errorf("%w; reading load takes the right to list nodes of metrics.k8s.io", err)
	case apierrors.IsTooManyRequests(err):
		failure.Reason = load.Throttled
	case apierrors.IsInternalError(err):
		failure.Reason = load.ServerError
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		failure.Reason = load.Timeout
	}
	return failure
}
