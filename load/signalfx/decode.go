package signalfx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/load"
)

// maxQuoted bounds what an error says of what the service said, in bytes.
const maxQuoted = 200

// complaint is what an answer has when it is none. By the reference, it comes
// with another status than 200; users tell of some that come with 200, when
// requests follow each other too soon.
type complaint struct {
	Code    int               `json:"code"`
	Type    string            `json:"type"`
	Message string            `json:"message"`
	Errors  []json.RawMessage `json:"errors"`
}

// err returns the complaint as an error. An answer that lacks what was asked for
// is one too.
func (c *complaint) err(path string, lacks bool) error {
	said := c.Message
	if len(c.Errors) > 0 {
		texts := make([]string, len(c.Errors))
		for i, raw := range c.Errors {
			if json.Unmarshal(raw, &texts[i]) != nil {
				texts[i] = string(raw)
			}
		}
		said = strings.Join(texts, "; ")
	}
	if len(said) > maxQuoted {
		said = strings.ToValidUTF8(said[:maxQuoted], "") + "..."
	}
	switch {
	case len(c.Errors) > 0, c.Code >= 400, c.Type == "error", lacks && said != "":
		return invalid("%s: the service says %q", path, said)
	case lacks:
		return invalid("%s: not an answer of the API, it has none of what was asked for", path)
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &load.Error{Reason: load.Invalid, Err: fmt.Errorf(format, args...)}
}

// samples of one series, in the order in which they were sent.
type samples []sample

// sample is one value at one time.
type sample struct {
	// at is in Unix milliseconds.
	at int64
	// value is in percent; not a number if none was sent.
	value float64
}

// UnmarshalJSON reads [[time, value], ...]. It does not fail: what is no list
// of samples is one sample without sense, so that one series does not take all
// others with it.
func (s *samples) UnmarshalJSON(raw []byte) error {
	var list []sample
	if json.Unmarshal(raw, &list) != nil {
		list = []sample{{value: math.NaN()}}
	}
	*s = list
	return nil
}

// UnmarshalJSON reads [time, value]. It does not fail: what is none is a sample
// without sense.
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

// number returns a number of JSON, not a number for anything else.
func number(raw []byte) float64 {
	value, err := strconv.ParseFloat(string(bytes.TrimSpace(raw)), 64)
	if err != nil {
		return math.NaN()
	}
	return value
}

// decodeWindow reads an answer of timeserieswindow.
func decodeWindow(raw []byte) (map[string]samples, error) {
	var answer struct {
		complaint
		Data map[string]samples `json:"data"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return nil, invalid("%s: not an answer of the API: %w", windowPath, err)
	}
	if err := answer.err(windowPath, answer.Data == nil); err != nil {
		return nil, err
	}
	return answer.Data, nil
}

// seriesAnswer is an answer of metrictimeseries.
type seriesAnswer struct {
	complaint
	// Count is how many series match, of all pages and at most maxSeries.
	Count int `json:"count"`
	// IsPartialCount: there are more than maxSeries.
	IsPartialCount bool `json:"isPartialCount"`
	// Results are those of this page. The reference does not list their id, which
	// is what the samples of a series are found by.
	Results []struct {
		ID         string         `json:"id"`
		Metric     string         `json:"metric"`
		Dimensions map[string]any `json:"dimensions"`
	} `json:"results"`
}

// decodeSeries reads an answer of metrictimeseries.
func decodeSeries(raw []byte) (*seriesAnswer, error) {
	answer := &seriesAnswer{}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, invalid("%s: not an answer of the API: %w", seriesPath, err)
	}
	if err := answer.err(seriesPath, answer.Results == nil); err != nil {
		return nil, err
	}
	return answer, nil
}
