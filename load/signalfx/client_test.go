package signalfx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// TestRequests checks the requests and their number.
func TestRequests(t *testing.T) {
	series := []fakeSeries{host(`c1`, `cpu "all"`, "node-1", 10), host("m1", memory, "node-1", 10)}
	for i := range series {
		series[i].dimensions["cluster"] = "a + b"
	}
	f := newFake(t, series...)
	source := f.source(t, func(c *metricprovider.Config) {
		c.CPUMetric, c.Filter, c.Window, c.Step = `cpu "all"`, `cluster:"a + b"`, seconds(3600), seconds(300)
	})
	source.now = func() time.Time { return noon.Add(2 * time.Minute) }
	if _, err := source.read(t.Context(), source.metrics[0], mustResolve(t, source), source.now()); err != nil {
		t.Fatal(err)
	}
	const query = `sf_metric:"cpu \"all\"" AND host:* AND (cluster:"a + b")`
	want := []*url.URL{
		// 11:00 to 12:02
		{Path: "/v1/timeserieswindow", RawQuery: url.Values{
			"query": {query}, "startMs": {"1795172400000"}, "endMs": {"1795176120000"},
			"endMS": {"1795176120000"}, "resolution": {"300000"},
		}.Encode()},
		{Path: "/v2/metrictimeseries", RawQuery: url.Values{"query": {query}, "limit": {"10000"}}.Encode()},
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range f.requests {
		if strings.Contains(u.RawQuery, "+") {
			t.Errorf("a space is encoded as + in %s", u.RawQuery)
		}
		*u = url.URL{Path: u.Path, RawQuery: u.Query().Encode()}
	}
	if diff := cmp.Diff(want, f.requests); diff != "" {
		t.Error(diff)
	}
}

// TestBasePath reads an API at a path of another server.
func TestBasePath(t *testing.T) {
	f := newFake(t, host("c1", cpu, "node-1", 10))
	server := httptest.NewServer(http.StripPrefix("/splunk", f))
	defer server.Close()
	source := f.source(t, func(c *metricprovider.Config) { c.Address = server.URL + "/splunk/" })
	got, err := source.Read(t.Context())
	if err != nil || len(got.Nodes) != 1 {
		t.Errorf("%d nodes, %v", len(got.Nodes), err)
	}
}

// fail handles all requests for a path with one handler.
func fail(path string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, path) {
			return false
		}
		answer(w, r)
		return true
	}
}

// status responds with a status in the format of the service.
func status(code int, message string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"code":%d,"message":%q,"type":"error"}`, code, message)
	}
}

func say(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) }
}

func TestFaults(t *testing.T) {
	for name, tc := range map[string]struct {
		path       string
		answer     http.HandlerFunc
		reason     load.Reason
		retryAfter time.Duration
		want       string
	}{
		"401": {
			windowPath, status(401, "Authentication Required"), load.Denied, 0,
			`v1/timeserieswindow: status 401 Unauthorized: {"code":401,"message":"Authentication Required","type":"error"}`,
		},
		"429": {
			windowPath, status(429, "slow down", "Retry-After", "42"), load.Throttled, 42 * time.Second,
			`v1/timeserieswindow: status 429 Too Many Requests: {"code":429,"message":"slow down","type":"error"}`,
		},
		"400": {
			windowPath, status(400, "API error: 400"), load.Invalid, 0,
			`v1/timeserieswindow: status 400 Bad Request: {"code":400,"message":"API error: 400","type":"error"}`,
		},
		"broken JSON": {
			windowPath, say(`{"data":{"a":[[1,2]`), load.Invalid, 0,
			"v1/timeserieswindow: not a response of the API: unexpected end of JSON input",
		},
		"broken series": {
			seriesPath, say(`{"results":[`), load.Invalid, 0,
			"v2/metrictimeseries: not a response of the API: unexpected end of JSON input",
		},
		"data of a list": {
			windowPath, say(`{"data":[]}`), load.Invalid, 0,
			"v1/timeserieswindow: not a response of the API: json: cannot unmarshal array into Go struct field .data of type " +
				"map[string]signalfx.samples",
		},
		"no data": {
			windowPath, say(`{"code":200,"errors":[]}`), load.Invalid, 0,
			"v1/timeserieswindow: not a response of the API: the requested data is missing",
		},
		"no series": {
			seriesPath, say(`{"count":1}`), load.Invalid, 0,
			"v2/metrictimeseries: not a response of the API: the requested data is missing",
		},
		"an error in 200": {
			windowPath, say(`{"data":{"a":[[1,2]]},"errors":["too many series", {"code":7}]}`), load.Invalid, 0,
			`v1/timeserieswindow: error response: "[\"too many series\" {\"code\":7}]"`,
		},
		"a message in 200": {
			windowPath, say(`{"message":"Your role doesn't let you perform this action."}`), load.Invalid, 0,
			`v1/timeserieswindow: error response: "Your role doesn't let you perform this action."`,
		},
		"a code in 200": {
			windowPath, say(`{"code":500,"message":"oops","data":{}}`), load.Invalid, 0,
			`v1/timeserieswindow: error response: "oops"`,
		},
		"a type in 200": {
			seriesPath, say(`{"type":"error","message":"oops","results":[]}`), load.Invalid, 0,
			`v2/metrictimeseries: error response: "oops"`,
		},
		"a long error": {
			windowPath, say(`{"errors":["` + strings.Repeat("ä", 1000) + `"]}`), load.Invalid, 0,
			`v1/timeserieswindow: error response: "[\"` + strings.Repeat("ä", 198) + `"`,
		},
		"closed connection": {windowPath, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"data":`)
		}, load.Invalid, 0, "v1/timeserieswindow: unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, host("c1", cpu, "node-1", 10), host("m1", memory, "node-1", 10))
			f.intercept = fail(tc.path, tc.answer)
			_, err := f.source(t, nil).Read(t.Context())
			wantError(t, err, tc.reason, tc.want)
			if got := retryAfter(err); got != tc.retryAfter {
				t.Errorf("retry after %s, want %s", got, tc.retryAfter)
			}
		})
	}
}

// retryAfter returns the wait that an error requests.
func retryAfter(err error) time.Duration {
	if typed, ok := errors.AsType[*load.Error](err); ok {
		return typed.RetryAfter
	}
	return 0
}

func TestTooLarge(t *testing.T) {
	f := newFake(t)
	f.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
		blanks := []byte(strings.Repeat(" ", 1<<20))
		for range maxBytes>>20 + 2 {
			if _, err := w.Write(blanks); err != nil {
				break
			}
		}
		return true
	}
	_, err := f.source(t, nil).get(t.Context(), windowPath, nil)
	wantError(t, err, load.TooLarge, "v1/timeserieswindow: response is larger than 64 MiB")
}

func TestHang(t *testing.T) {
	f := newFake(t)
	f.intercept = func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true }
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := f.source(t, nil).Read(ctx)
	wantError(t, err, load.Timeout, "v1/timeserieswindow: context deadline exceeded")
}

func TestNoServer(t *testing.T) {
	f := newFake(t)
	source := f.source(t, nil)
	f.Close()
	_, err := source.Read(t.Context())
	if err == nil || load.ReasonOf(err) != load.Unreachable || strings.Contains(err.Error(), "query") {
		t.Errorf("error %v, want reason unreachable, without the query", err)
	}
}

// forMetric handles the requests for one metric.
func forMetric(name string, answer http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Query().Get("query"), name) {
			return false
		}
		answer(w, r)
		return true
	}
}

func TestOneMetricFails(t *testing.T) {
	const said = `v1/timeserieswindow: status 500 Internal Server Error: {"code":500,"message":"oops","type":"error"}`
	u := load.Utilization{Mean: 0.2}
	for name, tc := range map[string]struct {
		metric string
		node   load.Node
		lost   []load.Series
	}{
		"CPU":    {cpu, load.Node{Memory: u, HasMemory: true}, []load.Series{load.CPUMean, load.CPUStdDev}},
		"memory": {memory, load.Node{CPU: u, HasCPU: true}, []load.Series{load.MemoryMean, load.MemoryStdDev}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, host("c1", cpu, "node-1", 20), host("m1", memory, "node-1", 20))
			f.intercept = forMetric(tc.metric, status(500, "oops"))
			got, err := f.source(t, nil).Read(t.Context())
			must.Succeed(t, err)
			lost := map[load.Series]error{}
			for _, series := range tc.lost {
				lost[series] = &load.Error{Reason: load.ServerError, Err: fmt.Errorf("%s", said)}
				if reason := load.ReasonOf(got.Lost[series]); reason != load.ServerError {
					t.Errorf("reason %q", reason)
				}
			}
			want := load.Reading{
				Source: "SignalFx", Time: noon.Add(-time.Minute), Window: time.Minute,
				Nodes: map[string]load.Node{"node-1": tc.node}, Lost: lost,
			}
			if diff := cmp.Diff(want, got, closeTo, texts); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBothFail checks that the error with the longer requested wait determines the reason of two errors.
func TestBothFail(t *testing.T) {
	f := newFake(t)
	oops, slow := forMetric(cpu, status(500, "oops")), forMetric(memory, status(429, "slow down", "Retry-After", "7"))
	f.intercept = func(w http.ResponseWriter, r *http.Request) bool { return oops(w, r) || slow(w, r) }
	_, err := f.source(t, nil).Read(t.Context())
	wantError(t, err, load.Throttled,
		`v1/timeserieswindow: status 429 Too Many Requests: {"code":429,"message":"slow down","type":"error"}; `+
			`v1/timeserieswindow: status 500 Internal Server Error: {"code":500,"message":"oops","type":"error"}`)
	if got := retryAfter(err); got != 7*time.Second {
		t.Errorf("retry after %s, want 7s", got)
	}
}

// many returns series of n hosts.
func many(n int, metric string) []fakeSeries {
	series := make([]fakeSeries, n)
	for i := range series {
		series[i] = host(fmt.Sprintf("%s-%05d", metric, i), metric, fmt.Sprintf("node-%d", i), 20, 40)
	}
	return series
}

func TestPages(t *testing.T) {
	f := newFake(t, append(many(2500, cpu), many(2500, memory)...)...)
	f.page = 1000
	source := f.source(t, nil)
	read := func() {
		t.Helper()
		got, err := source.Read(t.Context())
		must.Succeed(t, err)
		u := load.Utilization{Mean: 0.3, StdDev: 0.1}
		if diff := cmp.Diff(load.Node{CPU: u, HasCPU: true, Memory: u, HasMemory: true}, got.Nodes["node-2499"], closeTo); diff != "" ||
			len(got.Nodes) != 2500 || got.Rejected != 0 {
			t.Errorf("%d nodes, %d rejected, node-2499: %s", len(got.Nodes), got.Rejected, diff)
		}
	}
	read()
	offsets := map[string]int{}
	for _, query := range f.asked(seriesPath) {
		offsets[query.Get("offset")]++
	}
	if diff := cmp.Diff(map[string]int{"": 2, "1000": 2, "2000": 2}, offsets); diff != "" {
		t.Errorf("requested pages: %s", diff)
	}
	read()
	if asked := f.asked(seriesPath); len(asked) != 0 {
		t.Errorf("known series requested again: %v", asked)
	}
}

func TestCatalog(t *testing.T) {
	f := newFake(t, host("c1", cpu, "node-1", 10), host("m1", memory, "node-1", 10))
	source := f.source(t, nil)
	now := noon
	source.now = func() time.Time { return now }
	for _, step := range []struct {
		name                   string
		change                 func()
		asked, nodes, rejected int
	}{
		{"nothing is known", func() {}, 2, 1, 0},
		{"all is known", func() {}, 0, 1, 0},
		{"a new series of the CPU", func() { f.series = append(f.series, host("c2", cpu, "node-2", 10)) }, 1, 2, 0},
		{"one that the list does not have", func() {
			f.series = append(f.series, fakeSeries{
				id: "c3", metric: cpu, dimensions: map[string]any{"host": "node-3"},
				points: []any{at(0, 10)}, unlisted: true,
			})
		}, 1, 2, 1},
		{"still one that the list does not have", func() {}, 0, 2, 1},
		{"a series is gone", func() { f.series = f.series[:len(f.series)-2] }, 0, 1, 0},
		{"ten minutes later", func() { now = now.Add(refreshAfter) }, 2, 1, 0},
		{"and a little", func() { now = now.Add(time.Second) }, 0, 1, 0},
	} {
		f.change(step.change)
		f.change(func() {
			for i := range f.series {
				f.series[i].points = []any{[]any{now.UnixMilli(), 10}}
			}
		})
		got, err := source.Read(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if asked := len(f.asked(seriesPath)); asked != step.asked || len(got.Nodes) != step.nodes || got.Rejected != step.rejected {
			t.Errorf("%s: %d lists requested, %d nodes, %d rejected, want %d, %d, %d", step.name, asked, len(got.Nodes), got.Rejected,
				step.asked, step.nodes, step.rejected)
		}
	}
}

// TestEndlessPages checks lists without an end or with a wrong count.
func TestEndlessPages(t *testing.T) {
	const query = `sf_metric:"cpu.utilization" AND host:*`
	const tooMany = "query " + query + ": more than 10000 series match, the service returns no more: restrict the query with the filter"
	one := func(id int) string {
		return fmt.Sprintf(`{"id":"c%d","metric":"cpu.utilization","dimensions":{"host":"node-%d"}}`, id, id)
	}
	for name, tc := range map[string]struct {
		page    func(n int) string
		asked   int
		wantErr string
	}{
		"the same page repeatedly": {func(int) string { return `{"count":9000,"results":[` + one(1) + `]}` }, 2, ""},
		"only empty pages":         {func(int) string { return `{"count":9000,"results":[]}` }, 1, ""},
		"one, then empty pages": {func(n int) string {
			return `{"count":9000,"results":[` + strings.Repeat(one(1), max(0, 1-n)) +
				`]}`
		}, 2, ""},
		"series of other metrics": {func(int) string { return `{"count":9000,"results":[{"id":"x","metric":"disk.utilization"}]}` }, 1, ""},
		"a new series on every page": {
			func(n int) string { return `{"count":9000,"results":[` + one(n) + `]}` }, maxPages,
			"query " + query + ": more than 100 pages of series",
		},
		"1,000 new series on every page": {func(n int) string {
			all := make([]string, 1000)
			for i := range all {
				all[i] = one(1000*n + i)
			}
			return `{"count":10000,"results":[` + strings.Join(all, ",") + `]}`
		}, 10, ""},
		"count above the maximum": {func(int) string { return `{"count":10001,"results":[` + one(1) + `]}` }, 1, tooMany},
		"more than the limit": {func(int) string {
			return `{"count":10000,"results":[` + strings.Repeat(one(1)+",", maxSeries) + one(2) + `]}`
		}, 1, tooMany},
		"no id":          {func(int) string { return `{"count":9000,"results":[{"dimensions":{"host":"a"}}]}` }, 1, ""},
		"partial count":  {func(int) string { return `{"count":10000,"isPartialCount":true,"results":[` + one(1) + `]}` }, 1, tooMany},
		"no count":       {func(int) string { return `{"results":[` + one(1) + `]}` }, 1, ""},
		"negative count": {func(int) string { return `{"count":-1,"results":[` + one(1) + `]}` }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			n := 0
			f.intercept = func(w http.ResponseWriter, _ *http.Request) bool {
				_, _ = io.WriteString(w, tc.page(n))
				n++
				return true
			}
			source := f.source(t, nil)
			_, err := source.list(t.Context(), source.metrics[0])
			if tc.wantErr != "" {
				wantError(t, err, load.Invalid, tc.wantErr)
			} else if err != nil {
				t.Error(err)
			}
			if asked := len(f.asked(seriesPath)); asked != tc.asked {
				t.Errorf("%d pages requested, want %d", asked, tc.asked)
			}
		})
	}
}
