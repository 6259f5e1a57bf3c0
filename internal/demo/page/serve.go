package page

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/demo"
)

// Serve serves the live page until ctx ends. The view function returns the content for each request.
func Serve(ctx context.Context, listener net.Listener, view func(context.Context) (Live, error)) {
	server := &http.Server{
		Handler:           protect(listener.Addr().(*net.TCPAddr).Port, handler(view)),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
}

// handler returns the handler of the live page.
func handler(view func(context.Context) (Live, error)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		content, err := view(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		var body bytes.Buffer
		if err := WriteLive(&body, content); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = body.WriteTo(w)
	})
	return mux
}

// NewResult returns the row of a result. Results with the baseline profile are not highlighted.
func NewResult(r demo.Result, baseline bool) LiveResult {
	out := LiveResult{
		Scenario: r.Scenario, Profile: r.Profile, Pod: r.Pod, Node: r.Node, Want: r.Want, OK: r.OK, Ours: !baseline,
	}
	switch {
	case r.Fleet != nil:
		out.Pod, out.Node = r.Fleet.Story+", "+r.Fleet.Step, r.Summary()
	case r.Slack != nil:
		out.Pod, out.Node = r.Slack.Step, r.Summary()
	case r.Seconds > 0:
		out.Node = fmt.Sprintf("%s after %.2f s", r.Node, r.Seconds)
	}
	return out
}
