package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// watcher is a load-watcher service that says what a scenario wants it to say.
type watcher struct {
	address string
	server  *http.Server

	mu     sync.Mutex
	feed   *Feed
	last   load.Reading  // what was said last, as a client understands it
	served chan struct{} // closed and replaced with every answer
}

// startWatcher serves until ctx ends, on a free port.
func startWatcher(ctx context.Context) (*watcher, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &watcher{address: "http://" + listener.Addr().String(), served: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /watcher", w.answer)
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = w.server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = w.server.Close() })
	return w, nil
}

// answer says what the present feed is, as of now.
func (w *watcher) answer(response http.ResponseWriter, _ *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() {
		close(w.served)
		w.served = make(chan struct{})
	}()
	if w.feed == nil {
		http.Error(response, "no load is known", http.StatusServiceUnavailable)
		return
	}
	message, err := w.feed.Encode(time.Now())
	if err != nil {
		http.Error(response, err.Error(), http.StatusInternalServerError)
		return
	}
	if reading, err := wire.Decode(bytes.NewReader(message)); err == nil {
		w.last = reading
	}
	response.Header().Set("Content-Type", "application/json")
	_, _ = response.Write(message)
}

// Encode returns the feed as a load-watcher service sends it.
func (f *Feed) Encode(now time.Time) ([]byte, error) {
	if f.Message != "" {
		return []byte(strings.Replace(f.Message, "%d", fmt.Sprint(now.Unix()), 1)), nil
	}
	var b bytes.Buffer
	err := wire.Encode(&b, load.Reading{Source: "demo", Time: now, Window: 15 * time.Minute, Nodes: f.Nodes})
	return b.Bytes(), err
}

// Say changes the feed, nil for none, and returns when the scheduler has
// surely taken it in.
func (w *watcher) Say(ctx context.Context, feed *Feed) error {
	w.mu.Lock()
	w.feed = feed
	w.mu.Unlock()
	// One reader asks again only when it has dealt with the answer before.
	for range 2 {
		if err := w.awaitServed(ctx); err != nil {
			return err
		}
	}
	if feed != nil {
		return nil
	}
	stale := time.NewTimer(time.Until(w.Reading(ctx).Time.Add(maxLoadAge + 100*time.Millisecond)))
	defer stale.Stop()
	select {
	case <-stale.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *watcher) awaitServed(ctx context.Context) error {
	w.mu.Lock()
	served := w.served
	w.mu.Unlock()
	select {
	case <-served:
		return nil
	case <-time.After(15 * time.Second):
		return errors.New("the scheduler does not ask the load watcher")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reading returns what the watcher said last.
func (w *watcher) Reading(context.Context) load.Reading {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

// source returns the arguments of LowRiskOverCommitment that name the watcher.
func (w *watcher) source() string { return "watcherAddress: " + w.address }
