package signalfx

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
)

// The endpoints of the API.
const (
	windowPath = "v1/timeserieswindow"
	seriesPath = "v2/metrictimeseries"
)

const (
	// maxSeries is the largest number of series that the service returns for a query, and the size of a
	// page. The API reference documents no smaller limit, and no offset for this endpoint, though
	// clients use one.
	maxSeries = 10000
	// maxPages is the largest number of pages read.
	maxPages = 100
	// refreshAfter is the age at which a catalog is read again.
	refreshAfter = 10 * time.Minute
)

// catalog is the list of the series of a metric.
type catalog struct {
	// hosts are the hosts by series ID; empty for a series that is not listed.
	hosts map[string]string
	// at is the time at which the list was read.
	at time.Time
}

// escaper escapes the characters that would end a quoted value.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// query returns the search query for the series of a metric:
//
//	sf_metric:"cpu.utilization" AND host:* AND (kubernetes_cluster:"prod")
//
// The name of the metric is quoted, so that it cannot contain operators.
func query(c *metricprovider.Config, metric string) string {
	terms := `sf_metric:"` + escaper.Replace(metric) + `" AND ` + c.HostDimension + `:*`
	if c.Filter != "" {
		terms += " AND (" + c.Filter + ")"
	}
	return terms
}

// samples requests the samples of a metric, by series ID.
func (s *Source) samples(ctx context.Context, m *metric, start, end time.Time) (map[string]samples, error) {
	endMs := strconv.FormatInt(end.UnixMilli(), 10)
	raw, err := s.get(ctx, windowPath, url.Values{
		"query":   {m.query},
		"startMs": {strconv.FormatInt(start.UnixMilli(), 10)},
		// The API reference has endMS, most clients send endMs.
		"endMs": {endMs}, "endMS": {endMs},
		"resolution": {strconv.FormatInt(s.config.Step.Milliseconds(), 10)},
	})
	if err != nil {
		return nil, err
	}
	return decodeWindow(raw)
}

// hosts returns the hosts by series ID, with an entry for every series in data.
func (s *Source) hosts(ctx context.Context, m *metric, data map[string]samples, now time.Time) (map[string]string, error) {
	if known := m.catalog.Load(); known != nil && now.Sub(known.at) < refreshAfter &&
		sets.KeySet(known.hosts).IsSuperset(sets.KeySet(data)) {
		return known.hosts, nil
	}
	hosts, err := s.list(ctx, m)
	if err != nil {
		return nil, err
	}
	// Series with samples that are not listed must not cause a request in every read.
	for id := range data {
		if _, listed := hosts[id]; !listed {
			hosts[id] = ""
		}
	}
	m.catalog.Store(&catalog{hosts: hosts, at: now})
	return hosts, nil
}

// list requests the series of a metric, page by page, and returns the hosts by series ID. A page without
// new series is the last one.
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
			return nil, load.Errorf(load.Invalid,
				"query %s: more than %d series match, the service returns no more: restrict the query with the filter", m.query, maxSeries)
		}
		if seen >= answer.Count || len(hosts) == before {
			return hosts, nil
		}
	}
	return nil, load.Errorf(load.Invalid, "query %s: more than %d pages of series", m.query, maxPages)
}

// get requests a path of the API and returns the response body.
func (s *Source) get(ctx context.Context, path string, parameters url.Values) ([]byte, error) {
	u := s.server.URL.JoinPath(path)
	// Some servers do not decode + as a space.
	u.RawQuery = strings.ReplaceAll(parameters.Encode(), "+", "%20")
	response, err := s.server.Get(ctx, u.String(), http.Header{"Accept": {"application/json"}})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return raw, nil
}
