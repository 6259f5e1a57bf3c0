package signalfx

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// noon is the time of the reads, a multiple of every resolution.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// fakeToken is the token that the fake accepts.
const fakeToken = "org-token"

// fakeSeries is a metric time series of a fake.
type fakeSeries struct {
	id, metric string
	dimensions map[string]any
	// points are [time, value], or anything invalid.
	points []any
	// unlisted is set if the series has samples and is not listed yet.
	unlisted bool
}

// at returns a point at a time before noon.
func at(before time.Duration, value any) any {
	return []any{noon.Add(-before).UnixMilli(), value}
}

// host returns a series of a host, with points one minute apart, the last one minute before noon.
func host(id, metric, name string, values ...any) fakeSeries {
	s := fakeSeries{id: id, metric: metric, dimensions: map[string]any{"host": name}}
	for i, value := range values {
		s.points = append(s.points, at(time.Duration(len(values)-i)*time.Minute, value))
	}
	return s
}

// fake is a server that implements the two endpoints of the API reference, with their parameters, errors and
// limits.
type fake struct {
	*httptest.Server

	mu     sync.Mutex
	token  string
	series []fakeSeries
	// page is the largest number of results of a response, even if a higher limit is requested.
	page int
	// intercept handles a request if it returns true.
	intercept func(w http.ResponseWriter, r *http.Request) bool
	requests  []*url.URL
	sent      int64
}

// newFake starts a fake until the test ends.
func newFake(tb testing.TB, series ...fakeSeries) *fake {
	tb.Helper()
	f := &fake{token: fakeToken, series: series, page: maxSeries}
	f.Server = httptest.NewServer(f)
	tb.Cleanup(f.Close)
	return f
}

// source returns a source that reads the fake at noon.
func (f *fake) source(tb testing.TB, change func(*metricprovider.Config)) *Source {
	tb.Helper()
	config := metricprovider.Config{Address: f.URL, Token: fakeToken}
	if change != nil {
		change(&config)
	}
	source, err := New(config, nil)
	must.Succeed(tb, err)
	source.now = func() time.Time { return noon }
	return source
}

// change changes the fake between two reads.
func (f *fake) change(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// asked returns the requests for a path since the last call, and drops all other requests.
func (f *fake) asked(path string) []url.Values {
	f.mu.Lock()
	defer f.mu.Unlock()
	var queries []url.Values
	for _, u := range f.requests {
		if strings.HasSuffix(u.Path, path) {
			queries = append(queries, u.Query())
		}
	}
	f.requests = nil
	return queries
}

// ServeHTTP implements http.Handler.
func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.requests = append(f.requests, r.URL)
	intercept := f.intercept
	f.mu.Unlock()
	if intercept != nil && intercept(w, r) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case r.Header.Get("X-SF-Token") != f.token:
		f.complain(w, http.StatusUnauthorized, "Authentication Required")
	case r.Method != http.MethodGet:
		f.complain(w, http.StatusMethodNotAllowed, "API Error: 405")
	case r.URL.Path == "/v1/timeserieswindow":
		f.window(w, r)
	case r.URL.Path == "/v2/metrictimeseries":
		f.list(w, r)
	default:
		f.complain(w, http.StatusNotFound, "API Error: 404")
	}
}

// complain responds with an error in the format of the API reference.
func (f *fake) complain(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	f.write(w, map[string]any{"code": code, "message": message, "type": "error"})
}

func (f *fake) write(w http.ResponseWriter, answer any) {
	raw, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	n, _ := w.Write(raw)
	f.sent += int64(n)
}

// window handles timeserieswindow.
func (f *fake) window(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	start, errStart := strconv.ParseInt(query.Get("startMs"), 10, 64)
	end, errEnd := strconv.ParseInt(query.Get("endMs"), 10, 64)
	matching, err := f.match(query.Get("query"))
	if err != nil || errStart != nil || errEnd != nil || start >= end ||
		!slices.Contains([]string{"1000", "60000", "300000", "3600000"}, query.Get("resolution")) {
		f.complain(w, http.StatusBadRequest, "API error: 400")
		return
	}
	data := map[string]any{}
	for _, s := range matching {
		data[s.id] = s.points
	}
	f.write(w, map[string]any{"code": 200, "data": data, "errors": []string{}})
}

// list handles metrictimeseries.
func (f *fake) list(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	limit, errLimit := strconv.Atoi(query.Get("limit"))
	offset, errOffset := 0, error(nil)
	if query.Has("offset") {
		offset, errOffset = strconv.Atoi(query.Get("offset"))
	}
	matching, err := f.match(query.Get("query"))
	if err != nil || errLimit != nil || errOffset != nil || limit > maxSeries {
		f.complain(w, http.StatusBadRequest, "API error: 400")
		return
	}
	results := []any{}
	matching = slices.DeleteFunc(matching, func(s fakeSeries) bool { return s.unlisted })
	first := min(offset, len(matching))
	for _, s := range matching[first:min(first+limit, first+f.page, len(matching))] {
		results = append(results, map[string]any{
			"id": s.id, "metric": s.metric, "dimensions": s.dimensions, "customProperties": map[string]any{}, "tags": []string{},
			"type": "GAUGE", "created": 1557743430000, "lastUpdated": 1557916230000, "creator": "AAAAAAAAAAA",
			"lastUpdatedBy": "AAAAAAAAAAA",
		})
	}
	f.write(w, map[string]any{"count": min(len(matching), maxSeries), "isPartialCount": len(matching) > maxSeries, "results": results})
}

// words matches the terms of queries: a metric, the existence of a dimension, and a dimension with a value.
var words = regexp.MustCompile(`^sf_metric:"((?:[^"\\]|\\.)*)" AND ([A-Za-z0-9_.-]+):\*(?: AND \(([a-z_]+):"([^"]*)"\))?$`)

// match returns the series that match a query.
func (f *fake) match(query string) ([]fakeSeries, error) {
	found := words.FindStringSubmatch(query)
	if found == nil {
		return nil, fmt.Errorf("query %s", query)
	}
	metric := strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(found[1])
	var matching []fakeSeries
	for _, s := range f.series {
		_, has := s.dimensions[found[2]]
		if s.metric == metric && has && (found[3] == "" || s.dimensions[found[3]] == found[4]) {
			matching = append(matching, s)
		}
	}
	return matching, nil
}

// jsonNumber is a JSON number beyond the range of float64.
func jsonNumber(text string) json.RawMessage { return json.RawMessage(text) }
