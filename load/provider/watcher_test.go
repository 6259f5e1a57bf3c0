package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

const message = `{"timestamp": 1795239886, "window": {"duration": "15m"}, "source": "Test", "data": {"NodeMetricsMap": {
  "node-1": {"metrics": [{"type": "CPU", "operator": "AVG", "value": 40}]}}}}`

// serve starts a service on 127.0.0.1 until the test ends.
func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func newSource(t *testing.T, address string) *Watcher {
	t.Helper()
	source, err := NewWatcher(metricprovider.Config{Address: address})
	must.Succeed(t, err)
	return source
}

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || err.Error() != want {
		t.Errorf("error:\n%v\nwant:\n%s", err, want)
	}
}

func TestNewWatcher(t *testing.T) {
	for name, tc := range map[string]struct{ address, wantURL, wantErr string }{
		"a service":       {"http://load-watcher:2020", "http://load-watcher:2020/watcher", ""},
		"trailing slash":  {"https://load-watcher:2020/", "https://load-watcher:2020/watcher", ""},
		"under a path":    {"http://proxy/load", "http://proxy/load/watcher", ""},
		"complete path":   {"http://proxy/load/watcher", "http://proxy/load/watcher", ""},
		"with a slash":    {"http://proxy/load/watcher/", "http://proxy/load/watcher", ""},
		"an IPv6 address": {"http://[::1]:2020", "http://[::1]:2020/watcher", ""},
		"empty":           {"", "", `address: required: must be a URL like http://load-watcher.kube-system:2020`},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := NewWatcher(metricprovider.Config{Address: tc.address})
			if tc.wantErr != "" {
				wantError(t, err, tc.wantErr)
				return
			}
			must.Succeed(t, err)
			if want := "the load watcher at " + tc.wantURL; source.String() != want {
				t.Errorf("%q, want %q", source, want)
			}
		})
	}
}

func TestReadWatcher(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.String() != "/watcher" {
			t.Errorf("unexpected request %s %s", r.Method, r.URL)
		}
		fmt.Fprint(w, message)
	})
	got, err := newSource(t, server.URL).Read(t.Context())
	must.Succeed(t, err)
	want := load.Reading{
		Source: "Test", Time: time.Unix(1795239886, 0), Window: 15 * time.Minute,
		Nodes: map[string]load.Node{"node-1": {CPU: load.Utilization{Mean: 0.4}, HasCPU: true}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadWatcherErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"a page": {
			func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
			"must be JSON in the format of a load watcher: invalid character '<' looking for beginning of value",
		},
		"too much": {
			func(w http.ResponseWriter, _ *http.Request) {
				blanks := []byte(strings.Repeat(" ", 1<<20))
				for range 65 {
					if _, err := w.Write(blanks); err != nil {
						return // the reader has seen enough
					}
				}
			},
			"response is larger than 64 MiB",
		},
		"cut off": {
			func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "1000")
				fmt.Fprint(w, message)
			},
			"unexpected EOF",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := newSource(t, serve(t, tc.handler).URL).Read(t.Context())
			wantError(t, err, tc.want)
			if diff := cmp.Diff(load.Reading{}, got); diff != "" {
				t.Error("a reading together with the error", diff)
			}
		})
	}
}

func TestReadEndsWithItsContext(t *testing.T) {
	for name, begin := range map[string]func(http.ResponseWriter){
		"before the answer": func(http.ResponseWriter) {},
		"in the middle of the answer": func(w http.ResponseWriter) {
			fmt.Fprint(w, message[:20])
			w.(http.Flusher).Flush()
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, left := make(chan struct{}), make(chan struct{})
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				begin(w)
				close(asked)
				<-r.Context().Done()
				close(left)
			})
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-asked
				cancel()
			}()
			if _, err := newSource(t, server.URL).Read(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want %v", err, context.Canceled)
			}
			<-left // the connection is given up, too
		})
	}
}

// TestReadUnchanged checks that a response that the service has not replaced is not sent again.
func TestReadUnchanged(t *testing.T) {
	etag, sent, unchanged := `W/"1"`, 0, 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if etag != "" {
			w.Header().Set("ETag", etag)
		}
		if r.Header.Get("If-None-Match") == etag && etag != "" {
			unchanged++
			w.WriteHeader(http.StatusNotModified)
			return
		}
		sent++
		fmt.Fprint(w, message)
	})
	source := newSource(t, server.URL)
	read := func(what string, wantSent, wantUnchanged int) {
		t.Helper()
		reading, err := source.Read(t.Context())
		if err != nil || len(reading.Nodes) != 1 || sent != wantSent || unchanged != wantUnchanged {
			t.Errorf("%s: %v, %v; sent %d and %d times unchanged, want %d and %d",
				what, reading, err, sent, unchanged, wantSent, wantUnchanged)
		}
	}
	read("the first reading", 1, 0)
	read("the same reading", 1, 1)
	read("the same reading again", 1, 2)
	etag = `W/"2"`
	read("the next reading", 2, 2)
	etag = ""
	read("a service without tags", 3, 2)
	read("a service without tags, again", 4, 2)
}
