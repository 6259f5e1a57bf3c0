// Package service answers questions about load over HTTP, in the wire format
// of load-watcher services:
//
//	GET /watcher             the load of all nodes
//	GET /watcher?host=NAME   that of one node
//	GET /watcher/health      whether load is fresh, where it is from, and what is wrong
//	GET /metrics             the same for Prometheus
//	GET /readyz, /livez      whether load is fresh, whether the service runs
package service

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Config says what a service serves.
type Config struct {
	// Store has the load.
	Store *load.Store
	// Source names where the store is filled from: load.Source's String.
	Source string
	// State is how reading goes; see load.State.
	State *State
	// Metrics answers /metrics.
	Metrics http.Handler
	// Registry gets the counts of what is asked; nil for none.
	Registry prometheus.Registerer
	// TokenFile has the bearer token that whoever asks must show, read anew for
	// every request; everyone may ask if it is empty. Probes need no token.
	TokenFile string
}

// State keeps how reading goes, for the health of the service.
type State struct{ current atomic.Pointer[load.State] }

// Set takes the state over.
func (s *State) Set(state load.State) { s.current.Store(&state) }

// get returns the state, that of a good start if there is none.
func (s *State) get() load.State {
	if state := s.current.Load(); state != nil {
		return *state
	}
	return load.State{}
}

// Health is the answer of /watcher/health.
type Health struct {
	// Status is ok, partial (some series cannot be read) or degraded (there is no
	// fresh load).
	Status string `json:"status"`
	Source string `json:"source"`
	// Nodes whose load is known and fresh.
	Nodes int `json:"nodes"`
	// AgeSeconds of the newest reading, absent if there is none.
	AgeSeconds *float64 `json:"ageSeconds,omitempty"`
	// MaxAgeSeconds is the age from which on load is not served.
	MaxAgeSeconds float64 `json:"maxAgeSeconds"`
	// Error of the last read, absent if it went well.
	Error string `json:"error,omitempty"`
}

// New returns the service.
func New(config Config) http.Handler {
	s, asked := &server{Config: config}, newRequests(config.Registry)
	mux := http.NewServeMux()
	mux.Handle("GET /watcher", asked.of("watcher", s.authorized(s.watcher)))
	mux.Handle("GET /watcher/health", asked.of("health", s.authorized(s.health)))
	mux.Handle("GET /metrics", s.authorized(config.Metrics.ServeHTTP))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", s.ready)
	return mux
}

type server struct {
	Config
	// encoded is the answer for all nodes, made once for a snapshot.
	encoded atomic.Pointer[encoded]
}

type encoded struct {
	snapshot *load.Snapshot
	message  []byte
}

// authorized lets requests through that show the token.
func (s *server) authorized(next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.TokenFile == "" {
			next(w, r)
			return
		}
		want, err := os.ReadFile(s.TokenFile)
		want = bytes.TrimSpace(want)
		if err != nil || len(want) == 0 {
			http.Error(w, "the service cannot read the token that it is to check", http.StatusInternalServerError)
			return
		}
		got, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		// Hashes are of one length, so that the comparison takes the same time
		// whatever is shown.
		a, b := sha256.Sum256([]byte(got)), sha256.Sum256(want)
		if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="load-watcher"`)
			http.Error(w, "want the service's bearer token in the header Authorization", http.StatusUnauthorized)
			return
		}
		next(w, r)
	})
}

// watcher tells the load of all nodes or of one.
func (s *server) watcher(w http.ResponseWriter, r *http.Request) {
	snapshot := s.Store.Fresh()
	if snapshot == nil {
		http.Error(w, s.why(), http.StatusServiceUnavailable)
		return
	}
	message, err := s.message(snapshot)
	if host := r.URL.Query().Get("host"); host != "" {
		node, known := snapshot.Node(host)
		if !known {
			http.Error(w, fmt.Sprintf("no load is known of a node %q", host), http.StatusNotFound)
			return
		}
		one := snapshot.Reading()
		one.Nodes = map[string]load.Node{host: node}
		message, err = encode(one)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(message)
}

// message returns the answer for all nodes.
func (s *server) message(snapshot *load.Snapshot) ([]byte, error) {
	if e := s.encoded.Load(); e != nil && e.snapshot == snapshot {
		return e.message, nil
	}
	message, err := encode(snapshot.Reading())
	if err == nil {
		s.encoded.Store(&encoded{snapshot, message})
	}
	return message, err
}

func encode(reading load.Reading) ([]byte, error) {
	var b bytes.Buffer
	err := wire.Encode(&b, reading)
	return b.Bytes(), err
}

// health tells how reading goes; its status is 503 where there is no fresh
// load.
func (s *server) health(w http.ResponseWriter, _ *http.Request) {
	fresh, state := s.Store.Fresh(), s.State.get()
	health := Health{Status: "ok", Source: s.Source, Nodes: len(fresh.Reading().Nodes), MaxAgeSeconds: s.Store.MaxAge().Seconds()}
	if age, known := s.Store.Age(); known {
		seconds := age.Round(time.Millisecond).Seconds()
		health.AgeSeconds = &seconds
	}
	if state.Err != nil {
		health.Error = state.Err.Error()
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case fresh == nil:
		health.Status = "degraded"
		w.WriteHeader(http.StatusServiceUnavailable)
	case state.Partial:
		health.Status = "partial"
	}
	_ = json.NewEncoder(w).Encode(health)
}

// ready tells whether there is fresh load.
func (s *server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.Store.Fresh() == nil {
		http.Error(w, "no fresh load", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

// why says why there is no fresh load.
func (s *server) why() string {
	age, known := s.Store.Age()
	err := s.State.get().Err
	switch {
	case err != nil && known:
		return fmt.Sprintf("the newest load is %s old, older than %s is not served: %v", age.Round(time.Second), s.Store.MaxAge(), err)
	case err != nil:
		return err.Error()
	case known:
		return fmt.Sprintf("the newest load is %s old, older than %s is not served", age.Round(time.Second), s.Store.MaxAge())
	}
	return "no load has been read yet from " + s.Source
}
