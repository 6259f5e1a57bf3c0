package demo

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
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/nodeexporter"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/prometheus"
	"github.com/plimsoll-k8s/plimsoll/load"
	loadprometheus "github.com/plimsoll-k8s/plimsoll/load/prometheus"
)

// Far shorter than a cluster needs, so that the demo need not wait.
const (
	scrapeInterval = 200 * time.Millisecond
	loadWindow     = 4 * time.Second
	rateWindow     = time.Second
	// scrapedInterval is that of asking whether something has come through.
	scrapedInterval = 50 * time.Millisecond
)

// scraped is a Prometheus server that scrapes machines which do what a scenario
// wants.
type scraped struct {
	exporter *nodeexporter.Exporter
	server   *prometheus.Server
	// own reads what the scheduler reads, to know when it is there.
	own  *loadprometheus.Source
	said []string
}

// startPrometheus starts the server and the machines until ctx ends.
func startPrometheus(ctx context.Context) (*scraped, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &scraped{exporter: nodeexporter.New(loadWindow)}
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
	s.own, err = loadprometheus.New(metricprovider.Config{
		Address: s.server.Address,
		Window:  metav1.Duration{Duration: loadWindow}, Step: metav1.Duration{Duration: time.Second}, RateWindow: metav1.Duration{Duration: rateWindow},
	}, nil)
	return s, err
}

// source returns the arguments of LowRiskOverCommitment that name the server.
func (s *scraped) source() string {
	return fmt.Sprintf("metricProvider: {type: Prometheus, address: %q, window: %s, step: 1s, rateWindow: %s}", s.server.Address, loadWindow, rateWindow)
}

// Reading returns what the server says now, nothing if it cannot be asked.
func (s *scraped) Reading(ctx context.Context) load.Reading {
	reading, err := s.own.Read(ctx)
	if err != nil {
		return load.Reading{}
	}
	return reading
}

// Say makes the machines have a load, or fall silent, and waits until the
// server's answers and the scheduler's reading say so.
func (s *scraped) Say(ctx context.Context, feed *Feed) error {
	for _, name := range s.said {
		s.exporter.Remove(name)
	}
	s.said = nil
	if feed == nil {
		return await(ctx, scrapedInterval, patience, "the load to become too old", func(ctx context.Context) (bool, error) {
			degraded, err := schedulerMetric("plimsoll_load_degraded")
			return degraded == 1, err
		})
	}
	if feed.Message != "" {
		return errors.New("a message of a load watcher cannot be told through Prometheus")
	}
	for name, node := range feed.Nodes {
		s.exporter.Set(name, node)
		s.said = append(s.said, name)
	}
	err := await(ctx, scrapedInterval, patience, "Prometheus to tell the load", func(ctx context.Context) (bool, error) {
		return near(s.Reading(ctx), feed.Nodes), nil
	})
	if err != nil {
		return err
	}
	before, err := schedulerMetric("plimsoll_load_reads_total")
	if err != nil {
		return err
	}
	// One read may have been under way.
	return await(ctx, scrapedInterval, patience, "the scheduler to read the load", func(ctx context.Context) (bool, error) {
		now, err := schedulerMetric("plimsoll_load_reads_total")
		return now >= before+2, err
	})
}

// near reports whether a reading has just these nodes with these means, and
// something like their deviations: a point of CPU is an average, and so are
// they.
func near(reading load.Reading, want map[string]load.Node) bool {
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

// schedulerMetric returns one of the scheduler's own metrics of its reading of
// Prometheus, as of the store that was made last; the scheduler runs in this
// process.
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
	return 0, fmt.Errorf("the scheduler has no metric %s of Prometheus", name)
}
