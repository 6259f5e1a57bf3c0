package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// FuzzRequest checks that any request has a response with an expected status, that only the token permits
// more than 401, and that a load can be decoded.
func FuzzRequest(f *testing.F) {
	f.Add("a", "gzip", `W/"x"`, "Bearer secret")
	f.Add(`x"} or up{`, "gzip;q=0, *", "*", "Bearer ")
	f.Add("", ",;q=,", `"`, "secret")
	token := filepath.Join(f.TempDir(), "token")
	must.Succeed(f, os.WriteFile(token, []byte("secret\n"), 0o600))
	store := load.NewStore(time.Hour, nil)
	must.Succeed(f, store.Put(load.Reading{Source: "Test", Time: time.Now(), Nodes: nodes}))
	handler := New(Config{Store: store, State: &State{}, Metrics: http.NotFoundHandler(), TokenFile: token})
	f.Fuzz(func(t *testing.T, host, encoding, etag, authorization string) {
		r := httptest.NewRequest(http.MethodGet, "/watcher?host="+url.QueryEscape(host), nil)
		r.Header = http.Header{"Accept-Encoding": {encoding}, "If-None-Match": {etag}, "Authorization": {authorization}}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if permitted := strings.TrimPrefix(authorization, "Bearer ") == "secret"; permitted == (w.Code == http.StatusUnauthorized) {
			t.Errorf("status %d with %q", w.Code, authorization)
		}
		_, known := nodes[host]
		switch w.Code {
		case http.StatusUnauthorized, http.StatusNotModified:
		case http.StatusNotFound:
			if known || host == "" {
				t.Errorf("node %q: status 404", host)
			}
		case http.StatusOK:
			if w.Header().Get("Content-Encoding") == "gzip" {
				return
			}
			reading, err := wire.Decode(w.Body)
			if err != nil || host != "" && (!known || len(reading.Nodes) != 1) {
				t.Errorf("node %q: %d nodes, %v", host, len(reading.Nodes), err)
			}
		default:
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}

// TestHealthIsValidJSON checks that an error of a source cannot break the response.
func TestHealthIsValidJSON(t *testing.T) {
	s := serve(t)
	s.state.Store(&load.State{Err: os.NewSyscallError("\x1b[2J\"}\n\xff", os.ErrClosed)})
	if _, body := s.get(t, "/watcher/health", ""); !json.Valid([]byte(body)) || strings.ContainsAny(body, "\x1b\n") {
		t.Errorf("%q", body)
	}
}
