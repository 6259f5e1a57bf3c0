package node

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/nodeexporter"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/prometheus"
	"github.com/plimsoll-k8s/plimsoll/load"
	loadprometheus "github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// Intervals of the Prometheus server, much shorter than in a cluster, so that the demo does not wait.
const (
	scrapeInterval = 200 * time.Millisecond
	loadWindow     = 4 * time.Second
	rateWindow     = time.Second
	// pollInterval is the interval of polling the server and the scheduler for a change.
	pollInterval = 50 * time.Millisecond
)

// prometheusSource is a Prometheus server that scrapes simulated machines with the load of a scenario.
type prometheusSource struct {
	exporter *nodeexporter.Exporter
	server   *prometheus.Server
	// reader reads what the scheduler reads.
	reader *loadprometheus.Source
	// loaded are the names of the machines that have a load.
	loaded []string
}

// startPrometheus starts the server and the machines, which run until ctx ends.
func startPrometheus(ctx context.Context) (*prometheusSource, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &prometheusSource{exporter: nodeexporter.New(loadWindow)}
	machines := &http.Server{Handler: s.exporter, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = machines.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = machines.Close() })
	var targets []prometheus.Target
	for _, scenario := range append(slices.Clip(Scenarios), playground) {
		for _, node := range scenario.Nodes {
			targets = append(targets, prometheus.Target{
				Address: listener.Addr().String(), Path: "/" + node.Name, Labels: map[string]string{"instance": node.Name + ":9100"},
			})
		}
	}
	if s.server, err = prometheus.Start(ctx, targets, scrapeInterval); err != nil {
		return nil, err
	}
	s.reader, err = loadprometheus.New(metricprovider.Config{
		Address: s.server.Address,
		Window:  metav1.Duration{Duration: loadWindow}, Step: metav1.Duration{Duration: time.Second},
		RateWindow: metav1.Duration{Duration: rateWindow},
	}, nil)
	return s, err
}

// Arguments implements OwnSource.
func (s *prometheusSource) Arguments() string {
	return fmt.Sprintf("metricProvider: {type: Prometheus, address: %q, window: %s, step: 1s, rateWindow: %s}",
		s.server.Address, loadWindow, rateWindow)
}

// Reading implements LoadSource.
func (s *prometheusSource) Reading(ctx context.Context) load.Reading {
	reading, err := s.reader.Read(ctx)
	if err != nil {
		return load.Reading{}
	}
	return reading
}

// Set implements LoadSource.
func (s *prometheusSource) Set(ctx context.Context, load *Measurements) error {
	for _, name := range s.loaded {
		s.exporter.Remove(name)
	}
	s.loaded = nil
	if load == nil {
		return demo.Await(ctx, pollInterval, demo.Timeout, "the load to become too old", func(ctx context.Context) (bool, error) {
			degraded, err := schedulerMetric("plimsoll_load_degraded")
			return degraded == 1, err
		})
	}
	if load.Message != "" {
		return errors.New("the Prometheus source cannot report a message of a load-watcher service")
	}
	for name, node := range load.Nodes {
		s.exporter.Set(name, nodeexporter.Load{CPU: nodeexporter.Utilization(node.CPU), Memory: nodeexporter.Utilization(node.Memory)})
		s.loaded = append(s.loaded, name)
	}
	err := demo.Await(ctx, pollInterval, demo.Timeout, "Prometheus to return the load", func(ctx context.Context) (bool, error) {
		return isNear(s.Reading(ctx), load.Nodes), nil
	})
	if err != nil {
		return err
	}
	before, err := schedulerMetric("plimsoll_load_reads_total")
	if err != nil {
		return err
	}
	// The first of two reads may have begun before the change.
	return demo.Await(ctx, pollInterval, demo.Timeout, "the scheduler to read the load", func(ctx context.Context) (bool, error) {
		now, err := schedulerMetric("plimsoll_load_reads_total")
		return now >= before+2, err
	})
}

// isNear reports whether a reading has exactly these nodes with about these means and standard
// deviations. CPU samples are averages over the rate window, which lowers their deviation.
func isNear(reading load.Reading, want map[string]load.Node) bool {
	if len(reading.Nodes) != len(want) || len(reading.Lost) > 0 {
		return false
	}
	for name, node := range want {
		got := reading.Nodes[name]
		if math.Abs(got.CPU.Mean-node.CPU.Mean) > 0.03 || math.Abs(got.Memory.Mean-node.Memory.Mean) > 0.03 ||
			got.CPU.StdDev < 0.7*node.CPU.StdDev || got.CPU.StdDev > 1.1*node.CPU.StdDev+0.01 {
			return false
		}
	}
	return true
}

// schedulerMetric returns a metric of the scheduler, which runs in this process, about its reading of
// Prometheus.
func schedulerMetric(name string) (float64, error) {
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetName() == "source" && strings.HasPrefix(label.GetValue(), "Prometheus") {
					return metric.GetGauge().GetValue() + metric.GetCounter().GetValue(), nil
				}
			}
		}
	}
	return 0, fmt.Errorf("the scheduler has no metric %s for Prometheus", name)
}
