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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"

	"github.com/plimsoll-k8s/plimsoll/internal/cli/base"
	"github.com/plimsoll-k8s/plimsoll/internal/files"
	"github.com/plimsoll-k8s/plimsoll/internal/version"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/service"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
)

const (
	// shutdownTimeout is how long open requests may take during shutdown.
	shutdownTimeout = 10 * time.Second
	// maxConnections is the largest number of open connections. Further connections wait in the kernel until a connection is closed.
	maxConnections = 1000
	// idleTimeout is the longest time between two requests on a connection. With the other timeouts of the server, it bounds
	// how long a client holds a connection without a complete request.
	idleTimeout = 10 * time.Second
	// sendBuffer is the size in bytes of the kernel's buffer for a connection. The kernel would buffer up
	// to 4 MiB for each client that reads slowly, which counts as memory of the container.
	sendBuffer = 128 << 10
)

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
			state.Store(&s)
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
	if o.authToken != "" {
		if _, err := files.Read(o.authToken, files.MaxSecret); err != nil {
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

// certificate is a server certificate in files, which are read for every handshake. While the files do not
// match, because certificate and key are not replaced at the same time, the previous certificate is used.
type certificate struct {
	certFile, keyFile string
	// last is the newest certificate whose files match.
	last atomic.Pointer[tls.Certificate]
}

// get is the hook tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.last.Store(&pair)
	}
	if last := c.last.Load(); last != nil {
		return last, nil
	}
	return nil, err
}

// smallBuffers is a listener whose connections have send buffers of a fixed size.
type smallBuffers struct{ net.Listener }

// Accept implements net.Listener.
func (l smallBuffers) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // the default is larger but works
	}
	return conn, err
}
