// Package metricsserver reads the load of nodes and the usage of pods from the metrics API of Kubernetes, which metrics-server provides.
// The API returns current values only: means and standard deviations are computed from the samples that this process has read.
package metricsserver

import (
	"cmp"
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
)

// The defaults of the configuration.
const (
	defaultWindow = 15 * time.Minute
	// defaultMaxAge is the maximum age of a node's newest sample. It allows for some failed scrapes:
	// metrics-server omits the nodes whose kubelet does not respond.
	defaultMaxAge = 3 * time.Minute
	// defaultResolution is the time that a sample covers if the API does not report it: the resolution of metrics-server.
	defaultResolution = 15 * time.Second
)

// Lister lists the metrics of nodes. NodeMetricses() of k8s.io/metrics implements it.
type Lister interface {
	// List returns the metrics of all nodes.
	List(ctx context.Context, options metav1.ListOptions) (*metricsv1beta1.NodeMetricsList, error)
}

// Config configures a source.
type Config struct {
	// Metrics is the client of the metrics API.
	Metrics Lister
	// Nodes are the nodes of the cluster; usage is a fraction of their capacity.
	Nodes load.Inventory
	// Window is the time that means and standard deviations cover once the source has read for that long; 15m if 0.
	Window time.Duration
	// MaxAge is the maximum age of a node's newest sample; 3m if 0.
	MaxAge time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// Source reads the metrics API. It is not safe for concurrent use.
type Source struct {
	config Config
	window *load.SampleWindow
}

// New returns the source of a configuration.
func New(config Config) (*Source, error) {
	if config.Metrics == nil || config.Nodes == nil {
		return nil, errors.New("metrics-server: requires access to a cluster, for its metrics and nodes")
	}
	config.Window, config.MaxAge = cmp.Or(config.Window, defaultWindow), cmp.Or(config.MaxAge, defaultMaxAge)
	if config.Window < time.Second {
		return nil, fmt.Errorf("window: invalid value %s: must be at least 1s", config.Window)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	return &Source{config: config, window: load.NewSampleWindow(config.Window)}, nil
}

// String returns the name of the source, for messages.
func (s *Source) String() string { return "the metrics API (metrics.k8s.io)" }

// +kubebuilder:rbac:groups=metrics.k8s.io,resources=nodes,verbs=list

// Read lists the metrics of all nodes and adds them to the window of samples.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	list, err := s.config.Metrics.List(ctx, metav1.ListOptions{})
	if err != nil {
		return load.Reading{}, Describe(err, "nodes")
	}
	nodes, err := s.config.Nodes()
	if err != nil {
		return load.Reading{}, err
	}
	capacity, created := make(map[string]v1.ResourceList, len(nodes)), make(map[string]time.Time, len(nodes))
	for _, node := range nodes {
		capacity[node.Name], created[node.Name] = node.Status.Capacity, node.CreationTimestamp.Time
	}
	// Samples from before a node was created belong to another node of the same name.
	s.window.Retain(func(node string) bool { at, known := created[node]; return known && !s.window.Newest(node).Before(at) })
	now := s.config.Now()
	s.window.DropAfter(now.Add(load.MaxAhead))
	reading := load.Reading{
		Source: metricprovider.MetricsServer,
		Nodes:  make(map[string]load.Node, len(list.Items)),
	}
	resolution := time.Duration(0)
	for i := range list.Items {
		metrics := &list.Items[i]
		sample, valid := fractions(metrics, capacity[metrics.Name])
		at := metrics.Timestamp.Time
		if !valid || at.After(now.Add(load.MaxAhead)) || at.Before(created[metrics.Name]) {
			reading.Rejected++
			continue
		}
		s.window.Add(metrics.Name, at, sample)
		resolution = max(resolution, metrics.Window.Duration)
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
		reading.Window = max(reading.Window, s.window.Covered(name, cmp.Or(resolution, defaultResolution)))
	}
	if len(reading.Nodes) == 0 {
		return load.Reading{}, load.Errorf(load.Empty,
			"no node has fresh metrics: %d listed, %d of them invalid or of unknown nodes, %d older than %s",
			len(list.Items), reading.Rejected, reading.Stale, s.config.MaxAge)
	}
	return reading, nil
}

// fractions returns the usage of a node as fractions of its capacity, and whether it is valid.
func fractions(metrics *metricsv1beta1.NodeMetrics, capacity v1.ResourceList) (load.Sample, bool) {
	usedCPU, hasCPU := metrics.Usage[v1.ResourceCPU]
	usedMemory, hasMemory := metrics.Usage[v1.ResourceMemory]
	cpu := usedCPU.AsApproximateFloat64() / capacity.Cpu().AsApproximateFloat64()
	memory := usedMemory.AsApproximateFloat64() / capacity.Memory().AsApproximateFloat64()
	if !hasCPU || !hasMemory || !(cpu >= 0) || !(memory >= 0) || math.IsInf(cpu, 1) || math.IsInf(memory, 1) {
		return load.Sample{}, false
	}
	return load.Sample{CPU: min(cpu, 1), Memory: min(memory, 1)}, true
}

// Describe returns an error of the API server as a *load.Error with its reason and a likely cause.
// kind is the kind of the listed objects, for messages.
func Describe(err error, kind string) error {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	failure := &load.Error{Reason: load.ReasonOf(err), RetryAfter: time.Duration(seconds) * time.Second, Err: err}
	switch {
	case apierrors.IsNotFound(err):
		failure.Reason, failure.Err = load.Unreachable, fmt.Errorf("%w: check that metrics-server is installed", err)
	case apierrors.IsServiceUnavailable(err):
		failure.Reason, failure.Err = load.Unreachable, fmt.Errorf("%w: check that metrics-server is running", err)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		failure.Reason, failure.Err = load.Denied, fmt.Errorf("%w: RBAC must permit list of %s in the group metrics.k8s.io", err, kind)
	case apierrors.IsTooManyRequests(err):
		failure.Reason = load.Throttled
	case apierrors.IsInternalError(err):
		failure.Reason = load.ServerError
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		failure.Reason = load.Timeout
	}
	return failure
}
