package node

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
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

// usedCPUs is what the pods of the playground use by the start of their name, in millicores. The sums are the loads of the playground.
var usedCPUs = map[string]int64{
	"batch-1": 10500, "batch-2": 8900, "cache-": 800, "job-": 600, "log-": 1500, "report-": 400, "web-1": 3400, "web-2": 2200, "web-3": 800,
}

// usedMemory is what each node and each pod uses, in bytes.
const usedMemory = 512 << 20

// ServeUsage serves the usage of nodes and pods as metrics-server does, until ctx ends.
func (d *Demo) ServeUsage(ctx context.Context) error {
	return controlplane.ServeMetrics(ctx, d.env.Client, nodeUsage, d.podUsage)
}

func nodeUsage(context.Context) (used []controlplane.Usage) {
	for _, n := range playground.Nodes {
		cpu := playground.Steps[0].Load[n.Name][0] * float64(n.Object().Status.Capacity.Cpu().MilliValue())
		used = append(used, controlplane.Usage{Name: n.Name, CPU: int64(cpu), Memory: usedMemory})
	}
	return used
}

// podUsage returns the usage of the pods that have a node.
func (d *Demo) podUsage(ctx context.Context) (used []controlplane.Usage) {
	pods, err := d.env.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName!="})
	for i := 0; err == nil && i < len(pods.Items); i++ {
		u := controlplane.Usage{Namespace: pods.Items[i].Namespace, Name: pods.Items[i].Name, CPU: 100, Memory: usedMemory}
		for prefix, cpu := range usedCPUs {
			if strings.HasPrefix(u.Name, prefix) {
				u.CPU = cpu
			}
		}
		used = append(used, u)
	}
	return used
}
