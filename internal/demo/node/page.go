package node

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

//go:embed page.html page.js style.css
var files embed.FS

// Live is the content of the live page.
type Live struct {
	// Running is the scenario that is running, empty before and after the scenarios.
	Running string
	// Commands are shell commands to try. They are empty until the cluster is the user's.
	Commands []LiveCommand
	// Time is the time of this view.
	Time  string
	Nodes []LiveNode
	// Profiles are the profiles of the scheduler.
	Profiles  []LiveProfile
	Pending   []LivePending
	Decisions []LiveDecision
}

// LiveCommand is a shell command and its purpose.
type LiveCommand struct{ Purpose, Text string }

// LiveProfile is a profile of the scheduler and its score plugins.
type LiveProfile struct{ Name, Plugins string }

// LivePending is a pod without a node and the reason.
type LivePending struct{ Pod, Reason string }

// LiveNode is a node and its pods.
type LiveNode struct {
	Name string
	Bars []LiveBar
	Pods []string
}

// LiveBar is a resource of a node. Amounts are texts. Fractions are fractions of the allocatable
// amount and may exceed 1.
type LiveBar struct {
	Resource, Allocatable string
	Request, Limit        string
	RequestFraction       float64
	LimitFraction         float64
	HasLoad               bool
	LoadMean, LoadStdDev  float64
	UnboundedPods         int64
}

// LiveDecision is the decision of the scheduler on a pod and its reason.
type LiveDecision struct {
	// Node is the selected node, empty if there is none.
	Time, Profile, Pod, Node, Reason string
	// Default is the node that the default profile selects for a pod of the user, empty if it is not known.
	Default string
	// Scores are the scores of the nodes on which the pod fits. It does not fit on Unfit nodes.
	Scores []LiveScore
	Unfit  int
}

// LiveScore is the total score of a node for a pod.
type LiveScore struct {
	Node   string
	Total  int64
	Chosen bool
}

// axis is the length of the bars in multiples of the allocatable amount. Longer bars are cut.
const axis = 2.0

var live = template.Must(template.New("page.html").Funcs(template.FuncMap{
	// width returns a fraction of the allocatable amount as percent of the bar.
	"width": func(fraction float64) template.CSS {
		return template.CSS(fmt.Sprintf("%.2f%%", 100*min(max(fraction, 0), axis)/axis))
	},
	"minus":   func(a, b float64) float64 { return a - b },
	"twice":   func(a float64) float64 { return 2 * a },
	"percent": func(fraction float64) string { return fmt.Sprintf("%.0f\u00a0%%", 100*fraction) },
}).ParseFS(files, "page.html"))

// writeLive writes the page. All texts are escaped.
func writeLive(w io.Writer, view Live) error { return live.Execute(w, view) }

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

// handler returns the handler of the live page, its script and its style sheet.
func handler(view func(context.Context) (Live, error)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /page.js", http.FileServerFS(files))
	mux.Handle("GET /style.css", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		content, err := view(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		var body bytes.Buffer
		if err := writeLive(&body, content); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = body.WriteTo(w)
	})
	return mux
}

// headers permit the page its own script and style sheet, style attributes, its icon and requests to itself, and
// other sites nothing.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src-elem 'self'; style-src-attr 'unsafe-inline'; " +
		"img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	"X-Frame-Options":              "DENY",
	"X-Content-Type-Options":       "nosniff",
	"Referrer-Policy":              "no-referrer",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Cache-Control":                "no-store",
}

// protect restricts a handler to requests of the page itself and of users who open it on this machine.
// Pages of other sites can make a browser send requests to 127.0.0.1, also under a host name of their
// own that resolves to it, so that the browser lets them read the answer.
func protect(port int, next http.Handler) http.Handler {
	hosts := []string{fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("localhost:%d", port)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		origin := r.Header.Get("Origin")
		switch {
		case !slices.Contains(hosts, strings.ToLower(r.Host)):
			message := fmt.Sprintf("Host: invalid value %q: must be %s", r.Host, strings.Join(hosts, " or "))
			http.Error(w, message, http.StatusMisdirectedRequest)
		case origin != "" && origin != "http://"+r.Host:
			http.Error(w, fmt.Sprintf("Origin: invalid value %q: must be http://%s", origin, r.Host), http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}
