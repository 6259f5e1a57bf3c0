package whatif

import (
	"encoding/json"
	"net/url"
	"strconv"
	"testing"

	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// slowestScrape returns the longest time between two scrapes of a target plus the longest scrape, in seconds: interval and a
// few milliseconds, or more on a busy machine. A sample can be this much older than its time.
func slowestScrape(t *testing.T, server string) float64 {
	t.Helper()
	between, longest := 0.0, 0.0
	for _, series := range query(t, server, "up[5m]") {
		for i := 1; i < len(series.Values); i++ {
			between = max(between, series.Values[i].seconds-series.Values[i-1].seconds)
		}
	}
	for _, series := range query(t, server, "scrape_duration_seconds[5m]") {
		for _, sample := range series.Values {
			longest = max(longest, sample.value)
		}
	}
	if between < interval.Seconds()/2 || longest == 0 {
		t.Fatalf("%v s between scrapes that take up to %v s, want scrapes of every second", between, longest)
	}
	return between + longest
}

// series has the samples of a time series of Prometheus.
type series struct{ Values []sample }

// sample is a value at a time in seconds.
type sample struct{ seconds, value float64 }

// UnmarshalJSON implements json.Unmarshaler for the form [1763800000.123, "1"].
func (s *sample) UnmarshalJSON(raw []byte) (err error) {
	var text string
	if err := json.Unmarshal(raw, &[]any{&s.seconds, &text}); err != nil {
		return err
	}
	s.value, err = strconv.ParseFloat(text, 64)
	return err
}

// query returns the series of a range of Prometheus, none if there is no sample.
func query(t *testing.T, server, text string) []series {
	t.Helper()
	body, err := program.Get(t.Context(), server+"/api/v1/query?query="+url.QueryEscape(text))
	must.Succeed(t, err)
	var result struct {
		Status string
		Data   struct{ Result []series }
	}
	if json.Unmarshal([]byte(body), &result) != nil || result.Status != "success" {
		t.Fatalf("%s: %s", text, body)
	}
	return result.Data.Result
}
