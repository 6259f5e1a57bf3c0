package node

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Service is a load-watcher service that reports the load of a scenario.
type Service struct {
	address string
	server  *http.Server

	mu       sync.Mutex
	load     Measurements  // nil for none
	last     load.Reading  // the last valid message, as a client decodes it
	answered chan struct{} // closed and replaced with each answer
}

// StartService starts the service on a free port. It runs until ctx ends.
func StartService(ctx context.Context) (*Service, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Service{address: "http://" + listener.Addr().String(), answered: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /watcher", s.answer)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = s.server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = s.server.Close() })
	return s, nil
}

// answer sends the present load with the current time.
func (s *Service) answer(response http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		close(s.answered)
		s.answered = make(chan struct{})
	}()
	if s.load == nil {
		http.Error(response, "no load data", http.StatusServiceUnavailable)
		return
	}
	message, err := s.load.Encode(time.Now())
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	if reading, err := wire.Decode(bytes.NewReader(message)); err == nil {
		s.last = reading
	}
	response.Header().Set("Content-Type", "application/json")
	_, _ = response.Write(message)
}

// Encode returns the message of a load-watcher service. Its window is short, so that the scheduler has read the load of a
// window within seconds.
func (m Measurements) Encode(now time.Time) ([]byte, error) {
	var b bytes.Buffer
	err := wire.Encode(&b, load.Reading{Source: "demo", Time: now, Window: time.Second, Nodes: m})
	return b.Bytes(), err
}

// Set implements LoadSource.
func (s *Service) Set(ctx context.Context, load Measurements) error {
	changed := time.Now()
	s.mu.Lock()
	s.load = load
	s.mu.Unlock()
	// The scheduler sends its next request when it has processed the previous answer. Times of readings are in whole seconds:
	// pods that started in the second of the change count from the next second on.
	for answers := 0; answers < 2; {
		if err := s.awaitAnswer(ctx); err != nil {
			return err
		}
		if load == nil || s.Reading(ctx).Time.Unix() > changed.Unix() {
			answers++
		}
	}
	if load != nil {
		return nil
	}
	stale := time.NewTimer(time.Until(s.Reading(ctx).Time.Add(demo.MaxLoadAge + 100*time.Millisecond)))
	defer stale.Stop()
	select {
	case <-stale.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// awaitAnswer waits for the next answer to the scheduler.
func (s *Service) awaitAnswer(ctx context.Context) error {
	s.mu.Lock()
	answered := s.answered
	s.mu.Unlock()
	select {
	case <-answered:
		return nil
	case <-time.After(15 * time.Second):
		return errors.New("the scheduler does not read the load-watcher service")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reading implements LoadSource.
func (s *Service) Reading(context.Context) load.Reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Arguments returns the arguments of the plugins that name the service.
func (s *Service) Arguments() string { return "watcherAddress: " + s.address }
