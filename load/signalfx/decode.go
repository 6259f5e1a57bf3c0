package signalfx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// apiError is the content of an error response. According to the API reference, its status is not 200;
// users report some with 200, when requests are too frequent.
type apiError struct {
	Code    int               `json:"code"`
	Type    string            `json:"type"`
	Message string            `json:"message"`
	Errors  []json.RawMessage `json:"errors"`
}

// err returns the error of a response, nil if there is none. noData is set if the response does not
// contain the requested data, which is an error.
func (c *apiError) err(path string, noData bool) error {
	message := c.Message
	if len(c.Errors) > 0 {
		message = fmt.Sprintf("%s", c.Errors)
	}
	switch {
	case len(c.Errors) > 0, c.Code >= 400, c.Type == "error", noData && message != "":
		return load.Errorf(load.Invalid, "%s: error response: %.200q", path, message)
	case noData:
		return load.Errorf(load.Invalid, "%s: not a response of the API: the requested data is missing", path)
	}
	return nil
}

// samples are the samples of one series, in the order of the response.
type samples []sample

// sample is one value at one time.
type sample struct {
	// at is the time in Unix milliseconds.
	at int64
	// value is in percent; NaN if it is not a number.
	value float64
}

// UnmarshalJSON decodes [[time, value], ...]. It does not fail, so that an invalid series does not
// invalidate other series: it decodes anything but a list as one invalid sample.
func (s *samples) UnmarshalJSON(raw []byte) error {
	var list []sample
	if json.Unmarshal(raw, &list) != nil {
		list = []sample{{value: math.NaN()}}
	}
	*s = list
	return nil
}

// UnmarshalJSON decodes [time, value]. It does not fail: it decodes anything else as an invalid sample.
func (s *sample) UnmarshalJSON(raw []byte) error {
	*s = sample{value: math.NaN()}
	inner, opened := bytes.CutPrefix(raw, []byte("["))
	inner, closed := bytes.CutSuffix(inner, []byte("]"))
	at, value, two := bytes.Cut(inner, []byte(","))
	if ms := number(at); opened && closed && two && ms > 0 && ms < 1<<53 {
		*s = sample{at: int64(ms), value: number(value)}
	}
	return nil
}

// number returns a JSON number, NaN for anything else.
func number(raw []byte) float64 {
	value, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

// decodeWindow decodes a response of timeserieswindow.
func decodeWindow(raw []byte) (map[string]samples, error) {
	var response struct {
		apiError
		Data map[string]samples `json:"data"`
	}
	if err := json.Unmarshal(raw, &response); err != nil {
		return nil, load.Errorf(load.Invalid, "%s: not a response of the API: %w", windowPath, err)
	}
	if err := response.err(windowPath, response.Data == nil); err != nil {
		return nil, err
	}
	return response.Data, nil
}

// seriesResponse is a response of metrictimeseries.
type seriesResponse struct {
	apiError
	// Count is the number of matching series on all pages, at most maxSeries.
	Count int `json:"count"`
	// IsPartialCount is set if more than maxSeries series match.
	IsPartialCount bool `json:"isPartialCount"`
	// Results are the series of this page. The API reference does not document the field id, which
	// identifies the samples of a series.
	Results []struct {
		ID         string         `json:"id"`
		Metric     string         `json:"metric"`
		Dimensions map[string]any `json:"dimensions"`
	} `json:"results"`
}

// decodeSeries decodes a response of metrictimeseries.
func decodeSeries(raw []byte) (*seriesResponse, error) {
	response := &seriesResponse{}
	if err := json.Unmarshal(raw, response); err != nil {
		return nil, load.Errorf(load.Invalid, "%s: not a response of the API: %w", seriesPath, err)
	}
	if err := response.err(seriesPath, response.Results == nil); err != nil {
		return nil, err
	}
	return response, nil
}
