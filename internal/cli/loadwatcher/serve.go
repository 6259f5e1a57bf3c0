package loadwatcher

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/service"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

// shutdownTimeout bounds how long answers under way may take at the end.
const shutdownTimeout = 10 * time.Second

// serve reads load and serves it until ctx ends. What keeps it from starting
// is a usage error.
func (o *options) serve(ctx context.Context, stderr io.Writer) error {
	logger := slog.New(slog.NewTextHandler(stderr, nil))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	access, err := o.source.Access(ctx)
	if err != nil {
		return base.UsageError(err)
	}
	source, err := o.source.Source(access)
	if err != nil {
		return base.UsageError(err)
	}
	for _, path := range []string{o.authToken, o.tlsCertFile, o.tlsKeyFile} {
		if err := readable(path); err != nil {
			return base.UsageError(err)
		}
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return base.UsageError(fmt.Errorf("--listen: %w", err))
	}
	store, state, collector := load.NewStore(o.maxAge, nil), &service.State{}, &telemetry.Collector{}
	collector.Watch(source.String(), store)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	server := &http.Server{
		Handler: service.New(service.Config{
			Store: store, Source: source.String(), State: state, TokenFile: o.authToken,
			Registry: registry, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		}),
		ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 16,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	if o.tlsCertFile != "" {
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				pair, err := tls.LoadX509KeyPair(o.tlsCertFile, o.tlsKeyFile)
				return &pair, err
			},
		})
	}
	logger.Info("serving load", "version", version.String(), "source", source.String(), "address", listener.Addr().String(),
		"tls", o.tlsCertFile != "", "token", o.authToken != "")
	reading := make(chan struct{})
	go func() {
		defer close(reading)
		store.Run(ctx, source, o.pollInterval, func(s load.State) {
			state.Set(s)
			report(logger, store, s)
		})
	}()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	logger.Info("shutting down")
	ending, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	err = server.Shutdown(ending)
	<-reading
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("answers still under way after %s were cut off", shutdownTimeout)
	}
	return err
}

// report logs how reading goes; it is called when that changes.
func report(logger *slog.Logger, store *load.Store, state load.State) {
	switch {
	case state.Degraded:
		logger.Error("there is no fresh load: nothing is served", "maxAge", store.MaxAge(), "error", state.Err)
	case state.Partial:
		logger.Warn("part of the load cannot be read; what was known of it is served until it is too old", "error", state.Err)
	case state.Err != nil:
		logger.Warn("load cannot be read; the last reading is served until it is too old", "maxAge", store.MaxAge(), "error", state.Err)
	default:
		logger.Info("load is read", "nodes", len(store.Fresh().Reading().Nodes))
	}
}

// readable returns an error if there is a path and its file cannot be read.
func readable(path string) error {
	if path == "" {
		return nil
	}
	_, err := os.ReadFile(path)
	return err
}
