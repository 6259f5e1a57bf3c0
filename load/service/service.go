// Package service serves load over HTTP, in the wire format of load-watcher services:
//
//	GET /watcher             load of all nodes, with an ETag; gzipped for clients that accept it
//	GET /watcher?host=NAME   load of one node
//	GET /watcher/health      source, age and freshness of the load, and the last error
//	GET /metrics             metrics for Prometheus
//	GET /readyz              200 if load is fresh
//	GET /livez               200
//
// A reading is encoded once, for all clients. Responses for all nodes are limited to maxResponses at a time. The http.Server must have
// a WriteTimeout: it bounds for how long slow clients keep old readings in memory.
package service

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plimsoll-k8s/plimsoll/internal/files"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Config configures a service.
type Config struct {
	// Store contains the load.
	Store *load.Store
	// Source is the name of the source, for messages: load.Source's String.
	Source string
	// State is the state of reading the source.
	State *State
	// Metrics handles /metrics.
	Metrics http.Handler
	// Registry registers the metrics of requests; they are not registered if it is nil.
	Registry prometheus.Registerer
	// TokenFile contains the bearer token that clients must present, read for every request; no token
	// is required if it is empty. Probes need no token.
	TokenFile string
}

// State is the current load.State, nil before the first read.
type State = atomic.Pointer[load.State]

// health is the response of /watcher/health.
type health struct {
	// Status is ok, partial (some series cannot be read) or degraded (no fresh load).
	Status string `json:"status"`
	Source string `json:"source"`
	// Nodes is the number of nodes with fresh load.
	Nodes int `json:"nodes"`
	// AgeSeconds is the age of the newest reading, absent if there is none.
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	// MaxAgeSeconds is the maximum age of load that is served.
	MaxAgeSeconds float64 `json:"maxAgeSeconds"`
	// Error is the error of the last read, absent if it succeeded.
	Error string `json:"error,omitempty"`
}

// New returns the handler of a service.
func New(config Config) http.Handler { return newServer(config).handler() }

// handler returns the handler of all paths.
func (s *server) handler() http.Handler {
	instrument := instrumented(s.Registry)
	mux := http.NewServeMux()
	mux.Handle("GET /watcher", instrument("watcher", s.authorized(s.serveLoad)))
	mux.Handle("GET /watcher/health", instrument("health", s.authorized(s.serveHealth)))
	mux.Handle("GET /metrics", s.authorized(s.Metrics.ServeHTTP))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.serveReady)
	return mux
}

// maxResponses is the largest number of simultaneous responses with the load of all nodes.
const maxResponses = 256

// server is the state of a service.
type server struct {
	Config
	bodies bodies
	// slots has an element for each open response with the load of all nodes.
	slots chan struct{}
}

func newServer(config Config) *server {
	return &server{Config: config, bodies: bodies{store: config.Store}, slots: make(chan struct{}, maxResponses)}
}

// authorized calls next for requests with the token.
func (s *server) authorized(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.TokenFile == "" {
			next(w, r)
			return
		}
		want, err := files.Read(s.TokenFile, files.MaxSecret)
		want = bytes.TrimSpace(want)
		if err != nil || len(want) == 0 {
			http.Error(w, "the service cannot read its token file", http.StatusInternalServerError)
			return
		}
		got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// Hashes have equal lengths, so that the duration of the comparison reveals nothing.
		a, b := sha256.Sum256([]byte(got)), sha256.Sum256(want)
		if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="load-watcher"`)
			http.Error(w, "bearer token required in the header Authorization", http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

// serveLoad responds with the load of all nodes or of one.
func (s *server) serveLoad(w http.ResponseWriter, r *http.Request) {
	if host := r.URL.Query().Get("host"); host != "" {
		s.serveNode(w, host)
		return
	}
	body, err := s.bodies.get()
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	case body == nil:
		http.Error(w, s.unavailable(), http.StatusServiceUnavailable)
		return
	}
	header := w.Header()
	header.Set("ETag", body.etag)
	header.Set("Vary", "Accept-Encoding")
	header.Set("Cache-Control", "no-cache")
	if matches(r.Header.Get("If-None-Match"), body.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	s.send(w, r, body)
}

// send sends the load of all nodes.
func (s *server) send(w http.ResponseWriter, r *http.Request, body *body) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		w.Header().Del("ETag")
		w.Header().Set("Retry-After", "1")
		http.Error(w, fmt.Sprintf("%d responses are being sent, which is the limit", maxResponses), http.StatusServiceUnavailable)
		return
	}
	header, zipped := w.Header(), acceptsGzip(r.Header.Get("Accept-Encoding"))
	header.Set("Content-Type", "application/json")
	size := body.size
	if zipped {
		header.Set("Content-Encoding", "gzip")
		size = int64(len(body.zipped))
	}
	header.Set("Content-Length", strconv.FormatInt(size, 10))
	if r.Method != http.MethodHead {
		_ = body.writeTo(w, zipped) // the client has closed the connection
	}
}

// serveNode responds with the load of one node.
func (s *server) serveNode(w http.ResponseWriter, name string) {
	snapshot := s.Store.Fresh()
	if snapshot == nil {
		http.Error(w, s.unavailable(), http.StatusServiceUnavailable)
		return
	}
	node, known := snapshot.Node(name)
	if !known {
		http.Error(w, fmt.Sprintf("node %.260q: no load known", name), http.StatusNotFound)
		return
	}
	one := snapshot.Reading()
	one.Nodes = map[string]load.Node{name: node}
	w.Header().Set("Content-Type", "application/json")
	_ = wire.Encode(w, one) // the client has closed the connection
}

// acceptsGzip reports whether a header Accept-Encoding accepts gzip.
func acceptsGzip(header string) bool {
	for encoding := range strings.SplitSeq(header, ",") {
		name, quality, _ := strings.Cut(encoding, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			_, weight, _ := strings.Cut(strings.ReplaceAll(quality, " ", ""), "q=")
			return strings.Trim(weight, "0.") != "" || weight == ""
		}
	}
	return false
}

// matches reports whether a header If-None-Match has an ETag.
func matches(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}

// serveHealth responds with the health; the status is 503 if there is no fresh load.
func (s *server) serveHealth(w http.ResponseWriter, _ *http.Request) {
	fresh, state := s.Store.Fresh(), cmp.Or(s.State.Load(), &load.State{})
	answer := health{Status: "ok", Source: s.Source, Nodes: len(fresh.Reading().Nodes), MaxAgeSeconds: s.Store.MaxAge().Seconds()}
	if age, known := s.Store.Age(); known {
		seconds := age.Round(time.Millisecond).Seconds()
		answer.AgeSeconds = &seconds
	}
	if state.Err != nil {
		answer.Error = state.Err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case fresh == nil:
		answer.Status = "degraded"
		w.WriteHeader(http.StatusServiceUnavailable)
	case state.Partial:
		answer.Status = "partial"
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// serveReady responds with 200 if there is fresh load, else 503.
func (s *server) serveReady(w http.ResponseWriter, _ *http.Request) {
	if s.Store.Fresh() == nil {
		http.Error(w, "no fresh load", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// unavailable returns the reason why there is no fresh load.
func (s *server) unavailable() string {
	age, known := s.Store.Age()
	err := cmp.Or(s.State.Load(), &load.State{}).Err
	switch {
	case err != nil && known:
		return fmt.Sprintf("load is %s old, maximum age is %s: %v", age.Round(time.Second), s.Store.MaxAge(), err)
	case err != nil:
		return err.Error()
	case known:
		return fmt.Sprintf("load is %s old, maximum age is %s", age.Round(time.Second), s.Store.MaxAge())
	}
	return "no load read yet from " + s.Source
}

// instrumented returns a function that counts the requests of a handler by name. The registry, if it is not nil, has the metrics.
func instrumented(registry prometheus.Registerer) func(name string, next http.Handler) http.Handler {
	total := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "plimsoll_load_watcher_requests_total", Help: "[ALPHA] Requests, by handler (watcher, health) and HTTP status code.",
	}, []string{"handler", "code"})
	durations := promauto.With(registry).NewHistogramVec(prometheus.HistogramOpts{
		Name: "plimsoll_load_watcher_request_duration_seconds", Help: "[ALPHA] Duration of requests.",
		Buckets: prometheus.ExponentialBuckets(1e-4, 4, 8),
	}, []string{"handler"})
	return func(name string, next http.Handler) http.Handler {
		labels := prometheus.Labels{"handler": name}
		return promhttp.InstrumentHandlerCounter(total.MustCurryWith(labels),
			promhttp.InstrumentHandlerDuration(durations.MustCurryWith(labels), next))
	}
}
