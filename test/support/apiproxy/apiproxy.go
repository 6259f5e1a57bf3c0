// Package apiproxy is a proxy for the API server that injects faults into the requests of one client and
// records its writes.
package apiproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// Fault is a kind of fault. It affects the requests of the client while it is active.
type Fault string

// The faults.
const (
	// Hang holds requests until the fault ends, and then aborts them. Watches stay open, and get the
	// events when the fault ends.
	Hang Fault = "hang"
	// Delay forwards requests after a delay.
	Delay Fault = "delay"
	// Reject429, Reject500 and Reject401 answer requests with these status codes.
	Reject429 Fault = "429"
	Reject500 Fault = "500"
	Reject401 Fault = "401"
	// Garbage answers requests with status 200 and a body that is not an object.
	Garbage Fault = "garbage"
	// Drop forwards requests and closes the connection in place of the answer: writes take effect, but
	// the client does not know.
	Drop Fault = "drop"
	// Expire answers watches with status 410, as after a compaction, and closes open watches.
	Expire Fault = "expire"
	// Cut closes all watches, repeatedly.
	Cut Fault = "cut"
)

// Faults are all faults.
var Faults = []Fault{Hang, Delay, Reject429, Reject500, Reject401, Garbage, Drop, Expire, Cut}

// delay is the delay of Delay, cutInterval the time for which Cut leaves a watch open.
const (
	delay       = time.Second
	cutInterval = 200 * time.Millisecond
)

// Write is a request of the client that changes an object.
type Write struct {
	// Received is the time at which the proxy received the request, Answered the time of the answer of
	// the API server.
	Received, Answered time.Time
	Method, Path       string
	// Status is the status code of the API server, 0 if the request was not forwarded or not answered.
	Status int
}

// Succeeded reports whether the write took effect.
func (w Write) Succeeded() bool { return w.Status >= 200 && w.Status < 300 }

// String returns the write in one line.
func (w Write) String() string {
	return fmt.Sprintf("%s %s %s: %d", w.Received.Format(time.StampMilli), w.Method, w.Path, w.Status)
}

// Proxy forwards the requests of one client to the API server.
type Proxy struct {
	// URL is the address of the proxy, without TLS.
	URL string

	reverse   *httputil.ReverseProxy
	transport http.RoundTripper // to the API server

	mu     sync.Mutex
	faults map[Fault]chan struct{} // each is closed when the fault ends
	// watches ends the open watches.
	watches map[*context.CancelFunc]struct{}
	writes  []Write
}

// Start starts a proxy for a user with a client configuration. It runs until the end of the test.
func Start(t testing.TB, config *rest.Config) *Proxy {
	t.Helper()
	transport, err := rest.TransportFor(config)
	must.Succeed(t, err)
	target, err := url.Parse(config.Host)
	must.Succeed(t, err)
	p := &Proxy{transport: transport, faults: map[Fault]chan struct{}{}, watches: map[*context.CancelFunc]struct{}{}}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p,
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.Succeed(t, err)
	server := &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() {
		p.Heal()
		p.cutWatches()
		_ = server.Close()
	})
	p.URL = "http://" + listener.Addr().String()
	return p
}

// WriteKubeconfig writes a kubeconfig with which a client uses the proxy.
func (p *Proxy) WriteKubeconfig(path string) error {
	return controlplane.WriteKubeconfig(path, &rest.Config{Host: p.URL})
}

// Inject activates a fault until the returned function is called, or Heal.
func (p *Proxy) Inject(fault Fault) (end func()) {
	p.mu.Lock()
	ended := p.faults[fault]
	if ended == nil {
		ended = make(chan struct{})
		p.faults[fault] = ended
	}
	p.mu.Unlock()
	if fault == Expire {
		p.cutWatches()
	}
	if fault == Cut {
		go p.cutRepeatedly(ended)
	}
	return func() { p.end(fault) }
}

// Heal ends all faults.
func (p *Proxy) Heal() {
	for _, fault := range Faults {
		p.end(fault)
	}
}

// end ends a fault if it is active.
func (p *Proxy) end(fault Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ended := p.faults[fault]; ended != nil {
		close(ended)
		delete(p.faults, fault)
	}
}

// active returns a channel that is closed when the fault ends, nil if the fault is not active.
func (p *Proxy) active(fault Fault) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.faults[fault]
}

// Writes returns the writes so far, in the order of their answers.
func (p *Proxy) Writes() []Write {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.writes)
}

// cutRepeatedly closes all watches until the fault ends.
func (p *Proxy) cutRepeatedly(ended <-chan struct{}) {
	ticker := time.NewTicker(cutInterval)
	defer ticker.Stop()
	for {
		p.cutWatches()
		select {
		case <-ticker.C:
		case <-ended:
			return
		}
	}
}

// cutWatches closes all open watches.
func (p *Proxy) cutWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for cancel := range p.watches {
		(*cancel)()
	}
}

// received is the key of the time at which the proxy received a request, in the context of the request.
type received struct{}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(context.WithValue(r.Context(), received{}, time.Now()))
	switch {
	case p.fail(w, r):
	case isWatch(r):
		p.watch(w, r)
	default:
		p.reverse.ServeHTTP(w, r)
	}
}

// fail applies the active faults that prevent a request from being forwarded. It reports whether it has
// answered the request. Requests that hang are aborted.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request) bool {
	if ended := p.active(Hang); ended != nil {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}
	if p.active(Delay) != nil {
		timer := time.NewTimer(delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			panic(http.ErrAbortHandler)
		}
	}
	if isWatch(r) && p.active(Expire) != nil {
		answer(w, http.StatusGone, "Expired")
		return true
	}
	switch {
	case p.active(Reject429) != nil:
		w.Header().Set("Retry-After", "1")
		answer(w, http.StatusTooManyRequests, "TooManyRequests")
	case p.active(Reject500) != nil:
		answer(w, http.StatusInternalServerError, "InternalError")
	case p.active(Reject401) != nil:
		answer(w, http.StatusUnauthorized, "Unauthorized")
	case p.active(Garbage) != nil:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte("\x00{not an object"))
	default:
		return false
	}
	return true
}

// answer answers a request with an error of the API.
func answer(w http.ResponseWriter, code int, reason string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected fault","reason":%q,"code":%d}`, reason, code)
}

// RoundTrip implements http.RoundTripper: it sends a request to the API server and records a write. With the fault Drop it
// returns an error in place of the answer, so that the connection of the client is closed.
func (p *Proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	if isWatch(r) {
		return p.transport.RoundTrip(r)
	}
	isDropped, isWrite, ctx := p.active(Drop) != nil, r.Method != http.MethodGet, r.Context()
	if isWrite {
		// A write that is forwarded takes effect even if the client does not wait for the answer.
		ctx = context.WithoutCancel(ctx)
	}
	response, err := p.transport.RoundTrip(r.WithContext(ctx))
	if isWrite {
		write := Write{Received: ctx.Value(received{}).(time.Time), Answered: time.Now(), Method: r.Method, Path: r.URL.Path}
		if err == nil {
			write.Status = response.StatusCode
		}
		p.record(write)
	}
	if err == nil && isDropped {
		_ = response.Body.Close()
		return nil, errors.New("the answer is dropped")
	}
	return response, err
}

// watch forwards a watch until it ends or is cut.
func (p *Proxy) watch(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	p.mu.Lock()
	p.watches[&cancel] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.watches, &cancel)
		p.mu.Unlock()
		cancel()
	}()
	p.reverse.ServeHTTP(&hangingWriter{w, ctx, p}, r.WithContext(ctx))
}

// hangingWriter holds the answer of a watch while the fault Hang is active.
type hangingWriter struct {
	http.ResponseWriter
	ctx   context.Context
	proxy *Proxy
}

// Write implements http.ResponseWriter.
func (h *hangingWriter) Write(p []byte) (int, error) {
	if ended := h.proxy.active(Hang); ended != nil {
		select {
		case <-ended:
		case <-h.ctx.Done():
			return 0, h.ctx.Err()
		}
	}
	return h.ResponseWriter.Write(p)
}

// Unwrap implements the interface of http.ResponseController.
func (h *hangingWriter) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// record adds a write.
func (p *Proxy) record(w Write) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, w)
}

// isWatch reports whether a request is a watch.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return r.Method == http.MethodGet && (watch == "true" || watch == "1")
}
