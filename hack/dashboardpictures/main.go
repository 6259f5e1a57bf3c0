// Command dashboardpictures runs the demo under a real Prometheus server, evaluates the queries of the dashboards for
// Grafana over the run, and draws their panels as SVG files: make dashboard-pictures writes those of the documentation.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/component-base/metrics/legacyregistry"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/plimsoll-k8s/plimsoll/hack/pictures"
	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/fleet"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/node"
	"github.com/plimsoll-k8s/plimsoll/internal/demo/slack"
	server "github.com/plimsoll-k8s/plimsoll/internal/embedded/prometheus"
)

// scrapeInterval is that of the Prometheus server. rateInterval takes the place of Grafana's $__rate_interval.
const (
	scrapeInterval = time.Second
	rateInterval   = "10s"
)

func main() { pictures.Main(run, "DASHBOARDS", "FOLDER") }

// run runs the demo and writes a picture of each dashboard.
func run(ctx context.Context, arguments []string) error {
	dashboards, err := readDashboards(arguments[0])
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	address, start, err := observe(ctx)
	if err != nil {
		return err
	}
	for name, d := range dashboards {
		if err := d.read(ctx, address, start, time.Now()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(filepath.Join(arguments[1], name+".svg"), []byte(draw(d)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// readDashboards returns the dashboards in a folder by the names of their files without the extension.
func readDashboards(folder string) (map[string]*dashboard, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: found no dashboards", folder)
	}
	dashboards := map[string]*dashboard{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		d := &dashboard{}
		if err := json.Unmarshal(raw, d); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		dashboards[strings.TrimSuffix(filepath.Base(file), ".json")] = d
	}
	return dashboards, nil
}

// observe runs the scenarios of the demo, and returns the address of a Prometheus server that has scraped them, and since
// when. The server runs until ctx ends.
func observe(ctx context.Context) (address string, start time.Time, err error) {
	progress := func(message string) { fmt.Fprintln(os.Stderr, message) }
	source, err := node.StartLoad(ctx, node.LoadService, progress)
	if err != nil {
		return "", start, err
	}
	env, err := demo.Start(ctx, demo.Options{LoadArguments: source.Arguments(), Progress: progress})
	if err != nil {
		return "", start, err
	}
	context.AfterFunc(ctx, env.Stop)
	targets, err := serveMetrics(ctx, map[string]prometheus.Gatherer{
		"plimsoll-scheduler": legacyregistry.DefaultGatherer, "plimsoll-controller": prometheus.Gatherers{env.Registry, metrics.Registry},
	})
	if err != nil {
		return "", start, err
	}
	s, err := server.Start(ctx, targets, scrapeInterval)
	if err != nil {
		return "", start, err
	}
	start = time.Now()
	nodes, slacks, fleets := node.New(env, source), slack.New(env, nil, io.Discard), fleet.New(env)
	report := func(s node.Scenario, _ []demo.Result) { progress("scenario " + s.Name) }
	if _, err := nodes.RunAll(ctx, node.Scenarios[:3], report); err != nil {
		return "", start, err
	}
	if _, err := slacks.Run(ctx, progress); err != nil {
		return "", start, err
	}
	if _, err := fleets.Run(ctx, progress); err != nil {
		return "", start, err
	}
	return s.Address, start, play(ctx, env, nodes, progress)
}

// play creates pods of several profiles in the cluster that the demo leaves to its users.
func play(ctx context.Context, env *demo.Environment, nodes *node.Demo, progress func(string)) error {
	if err := nodes.Play(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(scrapeInterval)
	defer ticker.Stop()
	for i := range 30 {
		profile := []string{demo.DefaultProfile, "plimsoll-limits", "plimsoll-low-risk"}[i%3]
		pod := demo.Pod{Name: fmt.Sprint("more-", i), Request: "1", Limit: "2", MemoryRequest: "1Gi", MemoryLimit: "4Gi"}
		progress("pod " + pod.Name + " of profile " + profile)
		if err := env.CreatePod(ctx, pod, profile); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// serveMetrics serves metrics on a port of 127.0.0.1 until ctx ends, and returns a target for each job.
func serveMetrics(ctx context.Context, jobs map[string]prometheus.Gatherer) ([]server.Target, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	var targets []server.Target
	for job, gatherer := range jobs {
		path := "/" + job
		mux.Handle(path, promhttp.HandlerFor(gatherer, promhttp.HandlerOpts{}))
		targets = append(targets, server.Target{Address: listener.Addr().String(), Path: path, Labels: map[string]string{"job": job}})
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go func() { _ = s.Serve(listener) }()
	return targets, nil
}
