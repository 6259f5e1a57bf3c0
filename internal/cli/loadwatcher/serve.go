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
	"golang.org/x/net/netutil"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/service"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

// shutdownTimeout is how long open requests may take during shutdown.
const shutdownTimeout = 10 * time.Second

// serve reads load and serves it until ctx ends. Errors before it serves are usage errors.
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
	secure, err := o.certificate()
	if err != nil {
		return base.UsageError(err)
	}
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return base.UsageError(fmt.Errorf("--listen: %w", err))
	}
	listener = netutil.LimitListener(smallBuffers{listener}, maxConnections)
	store, state, collector := load.NewStore(o.maxAge, nil), &service.State{}, &telemetry.Collector{}
	collector.Watch(ctx, source.String(), store)
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	server := &http.Server{
		Handler: service.New(service.Config{
			Store: store, Source: source.String(), State: state, TokenFile: o.authToken,
			Registry: registry, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		}),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: idleTimeout, MaxHeaderBytes: 16 << 10,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelWarn),
	}
	if o.tlsCertFile != "" {
		listener = tls.NewListener(listener, &tls.Config{
			MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
			GetCertificate: secure.get,
		})
	}
	logger.Info("serving load", "version", version.String(), "source", source.String(), "address", listener.Addr().String(),
		"tls", o.tlsCertFile != "", "token", o.authToken != "")
	readerDone := make(chan struct{})
	go func() {
		defer close(readerDone)
		store.Run(ctx, source, o.pollInterval, func(s load.State) {
			state.Set(s)
			logState(logger, store, s)
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
	shutdownCtx, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	err = server.Shutdown(shutdownCtx)
	<-readerDone
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("requests still open after %s were aborted", shutdownTimeout)
	}
	return err
}

// certificate returns the certificate of the service. It returns an error if a file of the flags cannot be read.
func (o *options) certificate() (*certificate, error) {
	for _, path := range []string{o.authToken, o.tlsCertFile, o.tlsKeyFile} {
		if err := checkReadable(path); err != nil {
			return nil, err
		}
	}
	secure := &certificate{certFile: o.tlsCertFile, keyFile: o.tlsKeyFile}
	if o.tlsCertFile != "" {
		if _, err := secure.get(nil); err != nil {
			return nil, fmt.Errorf("--tls-cert-file, --tls-private-key-file: %w", err)
		}
	}
	return secure, nil
}

// logState logs the state of reading. It is called when the state changes.
func logState(logger *slog.Logger, store *load.Store, state load.State) {
	switch {
	case state.Degraded:
		logger.Error("no fresh load, serving none", "maxAge", store.MaxAge(), "error", state.Err)
	case state.Partial:
		logger.Warn("failed to read part of the load, serving the previous values until they are too old", "error", state.Err)
	case state.Err != nil:
		logger.Warn("failed to read load, serving the previous reading until it is too old", "maxAge", store.MaxAge(), "error", state.Err)
	default:
		logger.Info("read load", "nodes", len(store.Fresh().Reading().Nodes))
	}
}

// checkReadable returns an error if a file cannot be read. The path may be empty.
func checkReadable(path string) error {
	if path == "" {
		return nil
	}
	_, err := os.ReadFile(path)
	return err
}
