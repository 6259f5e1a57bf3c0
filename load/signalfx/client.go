package signalfx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// The endpoints of the API.
const (
	windowPath = "v1/timeserieswindow"
	seriesPath = "v2/metrictimeseries"
)

const (
	// maxSeries is the most that the service shows of what matches a query. So
	// many are asked for at once: the reference has no smaller limit, and it does
	// not have the offset of a page for this endpoint, which clients use all the
	// same.
	maxSeries = 10000
	// maxPages ends the list of a server that has always one more page.
	maxPages = 100
	// refreshAfter is the age at which a catalog is read anew.
	refreshAfter = 10 * time.Minute
)

// catalog is what series a metric has.
type catalog struct {
	// hosts by the ids of series; empty for a series that nothing is known of.
	hosts map[string]string
	at    time.Time
}

// samples returns the samples of a metric, by the ids of series.
func (s *Source) samples(ctx context.Context, m *metric, start, end time.Time) (map[string]samples, error) {
	endMs := strconv.FormatInt(end.UnixMilli(), 10)
	raw, err := s.get(ctx, windowPath, url.Values{
		"query":   {m.query},
		"startMs": {strconv.FormatInt(start.UnixMilli(), 10)},
		// The reference spells it endMS, and most who use it endMs.
		"endMs": {endMs}, "endMS": {endMs},
		"resolution": {strconv.FormatInt(s.config.Step.Milliseconds(), 10)},
	})
	if err != nil {
		return nil, err
	}
	return decodeWindow(raw)
}

// hosts returns the hosts of series by their ids, of which there is one for
// every series in data.
func (s *Source) hosts(ctx context.Context, m *metric, data map[string]samples, now time.Time) (map[string]string, error) {
	if known := m.catalog.Load(); known != nil && now.Sub(known.at) < refreshAfter && known.covers(data) {
		return known.hosts, nil
	}
	hosts, err := s.list(ctx, m)
	if err != nil {
		return nil, err
	}
	// What has samples but is not listed is not asked for again at every read.
	for id := range data {
		if _, listed := hosts[id]; !listed {
			hosts[id] = ""
		}
	}
	m.catalog.Store(&catalog{hosts: hosts, at: now})
	return hosts, nil
}

func (c *catalog) covers(data map[string]samples) bool {
	for id := range data {
		if _, known := c.hosts[id]; !known {
			return false
		}
	}
	return true
}

// list asks for what series a metric has, page by page, and returns the hosts
// by the ids of series. A page that has nothing new is the last one.
func (s *Source) list(ctx context.Context, m *metric) (map[string]string, error) {
	hosts := map[string]string{}
	for page, seen := 0, 0; page < maxPages; page++ {
		parameters := url.Values{"query": {m.query}, "limit": {strconv.Itoa(maxSeries)}}
		if seen > 0 {
			parameters.Set("offset", strconv.Itoa(seen))
		}
		raw, err := s.get(ctx, seriesPath, parameters)
		if err != nil {
			return nil, err
		}
		answer, err := decodeSeries(raw)
		if err != nil {
			return nil, err
		}
		before := len(hosts)
		for _, series := range answer.Results {
			if series.ID != "" && (series.Metric == m.name || series.Metric == "") {
				host, _ := series.Dimensions[s.config.HostDimension].(string)
				hosts[series.ID] = host
			}
		}
		seen += len(answer.Results)
		if answer.IsPartialCount || answer.Count > maxSeries || seen > maxSeries {
			return nil, &load.Error{Reason: load.Invalid, Err: fmt.Errorf("more than %d series match the query %s, and the service shows no more of them: narrow it with the filter", maxSeries, m.query)}
		}
		if seen >= answer.Count || len(hosts) == before {
			return hosts, nil
		}
	}
	return nil, &load.Error{Reason: load.Invalid, Err: fmt.Errorf("the list of series for the query %s has no end: %d pages", m.query, maxPages)}
}

// get asks for something and returns the whole answer.
func (s *Source) get(ctx context.Context, path string, parameters url.Values) ([]byte, error) {
	u := s.server.URL.JoinPath(path)
	// A blank that is written as + is a plus to some servers.
	u.RawQuery = strings.ReplaceAll(parameters.Encode(), "+", "%20")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := s.server.Do(request)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the whole query
		}
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return nil, fmt.Errorf("%s: status %s: %s", path, response.Status, strings.TrimSpace(string(body)))
	}
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return raw, nil
}
