package node

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
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
