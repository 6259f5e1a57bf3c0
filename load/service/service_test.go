package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/telemetry"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// served is a service whose clock the tests set.
type served struct {
	*httptest.Server
	store *load.Store
	state *State
	now   time.Time
	token string
}

func serve(t *testing.T) *served {
	t.Helper()
	s := &served{now: noon, state: &State{}, token: filepath.Join(t.TempDir(), "token")}
	s.store = load.NewStore(time.Minute, func() time.Time { return s.now })
	s.start(t, "")
	return s
}

func (s *served) start(t *testing.T, tokenFile string) {
	t.Helper()
	collector := &telemetry.Collector{}
	collector.Watch(t.Context(), "Test at nowhere", s.store)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	s.Server = httptest.NewServer(New(Config{
		Store: s.store, Source: "Test at nowhere", State: s.state, TokenFile: tokenFile,
		Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Registry: registry,
	}))
	t.Cleanup(s.Close)
}

func (s *served) put(t *testing.T, nodes map[string]load.Node) {
	t.Helper()
	must.Succeed(t, s.store.Put(load.Reading{Source: "Test", Time: s.now, Window: 15 * time.Minute, Nodes: nodes, Stale: 3, Rejected: 2}))
}

func (s *served) get(t *testing.T, path, authorization string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil)
	must.Succeed(t, err)
	request.Header.Set("Authorization", authorization)
	response, err := http.DefaultClient.Do(request)
	must.Succeed(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must.Succeed(t, err)
	return response.StatusCode, strings.TrimSpace(string(body))
}

var nodes = map[string]load.Node{
	"a": {
		CPU:       load.Utilization{Mean: 0.5, StdDev: 0.25},
		HasCPU:    true,
		Memory:    load.Utilization{Mean: 0.75, StdDev: 0.125},
		HasMemory: true,
	},
	`x"} or up{`:  {CPU: load.Utilization{Mean: 0.125}, HasCPU: true},
	"only-memory": {Memory: load.Utilization{Mean: 0.25}, HasMemory: true},
}

func TestWatcher(t *testing.T) {
	s := serve(t)
	if code, body := s.get(t, "/watcher", ""); code != 503 || body != "no load read yet from Test at nowhere" {
		t.Errorf("at the start: %d %s", code, body)
	}
	s.state.Store(&load.State{Err: errors.New("connection refused"), Degraded: true})
	if code, body := s.get(t, "/watcher", ""); code != 503 || body != "connection refused" {
		t.Errorf("after a failure: %d %s", code, body)
	}
	s.put(t, nodes)
	for query, want := range map[string]string{
		"?host=a": `{"timestamp":1772366400,"window":{"duration":"15m","start":1772365500,"end":1772366400},"source":"Test","data":{"NodeMetricsMap":{"a":{"metrics":[` +
			`{"name":"CPU","type":"CPU","operator":"AVG","rollup":"15m","value":50},{"name":"CPU","type":"CPU","operator":"STD","rollup":"15m","value":25},` +
			`{"name":"Memory","type":"Memory","operator":"AVG","rollup":"15m","value":75},{"name":"Memory","type":"Memory","operator":"STD","rollup":"15m","value":12.5}],` +
			`"tags":{},"metadata":{"dataCenter":""}}}}}`,
		"?host=unknown":                 "404",
		"?host=x%22%7D+or+up%7B":        `"x\"} or up{"`,
		"?host=a%22%7D+or+up%7B&host=a": "404",
	} {
		code, body := s.get(t, "/watcher"+query, "")
		if want == "404" && code != 404 || want != "404" && (code != 200 || !strings.Contains(body, want)) {
			t.Errorf("%s: %d %s, want %s", query, code, body, want)
		}
	}
	s.now = noon.Add(61 * time.Second)
	s.state.Store(&load.State{Err: errors.New("connection refused"), Degraded: true})
	if code, body := s.get(t, "/watcher", ""); code != 503 || body != "load is 1m1s old, maximum age is 1m0s: connection refused" {
		t.Errorf("too old: %d %s", code, body)
	}
	// A cached response is not used for the next reading.
	s.put(t, map[string]load.Node{"b": {HasCPU: true}})
	if _, body := s.get(t, "/watcher", ""); strings.Contains(body, `"a"`) || !strings.Contains(body, `"b"`) {
		t.Errorf("the next reading: %s", body)
	}
	if response, err := http.Post(s.URL+"/watcher", "", nil); err != nil || response.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v, %v", response, err)
	}
}

func TestHealth(t *testing.T) {
	s := serve(t)
	check := func(what string, wantCode int, want health) {
		t.Helper()
		code, body := s.get(t, "/watcher/health", "")
		var got health
		must.Succeed(t, json.Unmarshal([]byte(body), &got))
		want.Source, want.MaxAgeSeconds = "Test at nowhere", 60
		if diff := cmp.Diff(want, got); diff != "" || code != wantCode {
			t.Errorf("%s: %d, want %d: %s", what, code, wantCode, diff)
		}
		ready, _ := s.get(t, "/readyz", "")
		live, _ := s.get(t, "/livez", "")
		if ready != wantCode || live != 200 {
			t.Errorf("%s: ready %d, live %d", what, ready, live)
		}
	}
	check("at the start", 503, health{Status: "degraded"})
	s.put(t, nodes)
	check("with load", 200, health{Status: "ok", Nodes: 3, AgeSeconds: new(0.0)})
	s.now = noon.Add(1500 * time.Millisecond)
	s.state.Store(&load.State{Err: errors.New("no memory"), Partial: true})
	check("with a part", 200, health{Status: "partial", Nodes: 3, AgeSeconds: new(1.5), Error: "no memory"})
	s.now = noon.Add(2 * time.Minute)
	s.state.Store(&load.State{Err: errors.New("boom"), Degraded: true})
	check("too old", 503, health{Status: "degraded", AgeSeconds: new(120.0), Error: "boom"})
}

func TestToken(t *testing.T) {
	s := serve(t)
	s.start(t, s.token)
	s.put(t, nodes)
	paths := []string{"/watcher", "/watcher?host=a", "/watcher/health", "/metrics"}
	expect := func(authorization string, want int) {
		t.Helper()
		for _, path := range paths {
			if code, body := s.get(t, path, authorization); code != want || want != 200 && strings.Contains(body, "Mean") {
				t.Errorf("%s with %q: %d %s, want %d", path, authorization, code, body, want)
			}
		}
		for _, path := range []string{"/livez", "/readyz"} {
			if code, _ := s.get(t, path, ""); code != 200 {
				t.Errorf("%s: %d", path, code)
			}
		}
	}
	expect("Bearer secret", 500) // the token file does not exist yet
	for _, content := range []string{"", "\n"} {
		must.Succeed(t, os.WriteFile(s.token, []byte(content), 0o600))
		expect("Bearer ", 500)
	}
	for _, token := range []string{"secret", "rotated"} {
		must.Succeed(t, os.WriteFile(s.token, []byte(token+"\n"), 0o600))
		expect("Bearer "+token, 200)
		for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Basic " + token} {
			expect(wrong, 401)
		}
	}
}

func TestMetrics(t *testing.T) {
	s := serve(t)
	_, before := s.get(t, "/metrics", "")
	if !strings.Contains(before, `plimsoll_load_degraded{source="Test at nowhere"} 1`) ||
		strings.Contains(before, "plimsoll_load_age_seconds{") {
		t.Errorf("at the start:\n%s", before)
	}
	s.put(t, nodes)
	s.now = noon.Add(30 * time.Second)
	if err := s.store.Put(load.Reading{Time: noon.Add(-time.Second)}); err == nil {
		t.Error("an older reading is stored")
	}
	for range 2 {
		s.get(t, "/watcher", "")
	}
	s.get(t, "/watcher?host=unknown", "")
	_, after := s.get(t, "/metrics", "")
	after += "\n"
	for metric, value := range map[string]string{
		"age_seconds": "30", "degraded": "0", "nodes": "3", "nodes_stale": "3", "reads_total": "1", "values_rejected_total": "2",
	} {
		if want := fmt.Sprintf("plimsoll_load_%s{source=\"Test at nowhere\"} %s\n", metric, value); !strings.Contains(after, want) {
			t.Errorf("want %s", want)
		}
	}
	for _, want := range []string{
		`plimsoll_load_read_failures_total{reason="out_of_order",source="Test at nowhere"} 1`,
		`plimsoll_load_read_failures_total{reason="timeout",source="Test at nowhere"} 0`,
		`plimsoll_load_series_lost_total{series="CPU mean",source="Test at nowhere"} 0`,
		`plimsoll_load_max_age_seconds{source="Test at nowhere"} 60`,
		`plimsoll_load_watcher_requests_total{code="200",handler="watcher"} 2`,
		`plimsoll_load_watcher_requests_total{code="404",handler="watcher"} 1`,
		`plimsoll_load_watcher_request_duration_seconds_count{handler="watcher"} 3`,
	} {
		if !strings.Contains(after, want) {
			t.Errorf("want %s in\n%s", want, after)
		}
	}
}
