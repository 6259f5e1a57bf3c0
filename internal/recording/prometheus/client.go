package prometheus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
)

// maxBytes is the size of the largest response. It is decoded while it is read.
const maxBytes = 256 << 20

// client sends queries to a server.
type client struct {
	server  *endpoint.Endpoint
	timeout time.Duration
	// warn is called with warnings of the server.
	warn func(string)
}

func newClient(c *Config, warn func(string)) (*client, error) {
	server, err := endpoint.New(c.Server, endpoint.Options{
		Type: metricprovider.Prometheus, MaxBytes: maxBytes, ResponseTimeout: c.Timeout,
	})
	if err != nil {
		return nil, err
	}
	return &client{server: server, timeout: c.Timeout, warn: warn}, nil
}

// element is a series in a result.
type element struct {
	Metric map[string]string `json:"metric"`
	// Value is that of an instant query, Values those of a range query.
	Value  point  `json:"value"`
	Values points `json:"values"`
}

// point is a value at a time in seconds.
type point struct {
	at, value float64
}

// points are decoded by hand: they are most of what is read.
type points []point

// UnmarshalJSON implements json.Unmarshaler.
func (p *point) UnmarshalJSON(raw []byte) error {
	_, err := p.parse(raw)
	return err
}

// errPoint is the error of a value that is not a pair of a time and a text.
var errPoint = errors.New(`values: found an invalid point: must be [time, "value"]`)

// parse parses a point of valid JSON and returns what follows.
func (p *point) parse(raw []byte) (rest []byte, err error) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, errPoint
	}
	comma, end := slices.Index(raw, ','), slices.Index(raw, ']')
	if comma < 0 || end < comma {
		return nil, errPoint
	}
	text := strings.TrimSpace(string(raw[comma+1 : end]))
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return nil, errPoint
	}
	if p.at, err = strconv.ParseFloat(strings.TrimSpace(string(raw[1:comma])), 64); err != nil {
		return nil, errPoint
	}
	if p.value, err = strconv.ParseFloat(text[1:len(text)-1], 64); err != nil {
		return nil, errPoint
	}
	return raw[end+1:], nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *points) UnmarshalJSON(raw []byte) error {
	*p = (*p)[:0]
	if len(raw) < 2 || raw[0] != '[' {
		return errPoint
	}
	for raw = raw[1:]; ; {
		raw = trim(raw)
		switch {
		case len(raw) == 0:
			return errPoint
		case raw[0] == ']':
			return nil
		case raw[0] == ',':
			raw = raw[1:]
			continue
		}
		var next point
		rest, err := next.parse(raw)
		if err != nil {
			return err
		}
		*p, raw = append(*p, next), rest
	}
}

// trim removes spaces at the start.
func trim(raw []byte) []byte {
	for len(raw) > 0 && strings.IndexByte(" \t\r\n", raw[0]) >= 0 {
		raw = raw[1:]
	}
	return raw
}

// queryError is an error that the server reports for a query.
type queryError struct {
	Type    string
	Message string
	// status is the HTTP status.
	status int
}

// Error implements error.
func (e *queryError) Error() string {
	if e.Type == "" {
		return e.Message
	}
	return e.Type + ": " + e.Message
}

// instant evaluates a query at a time and calls each with the elements of the result. It may have called each when it returns an
// error.
func (c *client) instant(ctx context.Context, query string, at time.Time, each func(*element) error) error {
	form := url.Values{"query": {query}, "time": {unix(at)}}
	return c.post(ctx, "/api/v1/query", form, "vector", each)
}

// over evaluates a query at all steps from a time to another, see instant.
func (c *client) over(ctx context.Context, query string, from, to time.Time, step time.Duration, each func(*element) error) error {
	form := url.Values{"query": {query}, "start": {unix(from)}, "end": {unix(to)}, "step": {fmt.Sprintf("%d", int(step.Seconds()))}}
	return c.post(ctx, "/api/v1/query_range", form, "matrix", each)
}

func unix(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

// post sends a query.
func (c *client) post(ctx context.Context, path string, form url.Values, want string, each func(*element) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	form.Set("timeout", c.timeout.String())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL.JoinPath(path).String(), strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := c.server.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode/100 != 2 {
		return statusError(response)
	}
	d := &decoder{dec: json.NewDecoder(response.Body), each: each, want: want}
	if err := d.response(); err != nil {
		return err
	}
	for _, warning := range d.warnings {
		c.warn(warning)
	}
	return nil
}

// statusError returns the error of a response.
func statusError(response *http.Response) error {
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	var found struct{ ErrorType, Error string }
	if err := json.Unmarshal(body, &found); err == nil && found.Error != "" {
		return &queryError{found.ErrorType, found.Error, response.StatusCode}
	}
	return &queryError{"", fmt.Sprintf("status %s: %.200s", response.Status, body), response.StatusCode}
}

// decoder decodes a response while it is read.
type decoder struct {
	dec      *json.Decoder
	each     func(*element) error
	want     string
	warnings []string
	// kind and message describe an error that the server reports.
	kind, message string
	found         bool
}

// response decodes a response.
func (d *decoder) response() error {
	err := d.object(func(key string) error {
		switch key {
		case "data":
			return d.object(d.data)
		case "warnings":
			return d.dec.Decode(&d.warnings)
		case "errorType":
			return d.dec.Decode(&d.kind)
		case "error":
			return d.dec.Decode(&d.message)
		}
		return d.skip()
	})
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the response is cut off: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return err
	case d.message != "":
		return &queryError{d.kind, d.message, http.StatusOK}
	case !d.found:
		return &load.Error{Reason: load.Invalid, Err: errors.New("found a response without a result: is the address that of Prometheus?")}
	}
	return nil
}

func (d *decoder) skip() error {
	var skipped json.RawMessage
	return d.dec.Decode(&skipped)
}

// object reads an object and calls field with each of its keys.
func (d *decoder) object(field func(key string) error) error {
	if err := d.open('{'); err != nil {
		return err
	}
	for d.dec.More() {
		key, err := d.dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		if err := field(name); err != nil {
			return err
		}
	}
	_, err := d.dec.Token()
	return err
}

// open reads the start of an object or a list.
func (d *decoder) open(want json.Delim) error {
	token, err := d.dec.Token()
	if err == nil && token != want {
		err = &load.Error{Reason: load.Invalid, Err: fmt.Errorf("found %v in the response: must be %v", token, want)}
	}
	return err
}

// data reads a field of the data.
func (d *decoder) data(key string) error {
	switch key {
	case "resultType":
		var kind string
		if err := d.dec.Decode(&kind); err != nil {
			return err
		}
		if kind != d.want {
			return fmt.Errorf("found a result of type %s: must be a %s", kind, d.want)
		}
		return nil
	case "result":
		d.found = true
		return d.result()
	}
	return d.skip()
}

// result reads the elements.
func (d *decoder) result() error {
	if err := d.open('['); err != nil {
		return err
	}
	var values points
	for d.dec.More() {
		e := element{Values: values}
		if err := d.dec.Decode(&e); err != nil {
			return err
		}
		values = e.Values
		if err := d.each(&e); err != nil {
			return err
		}
	}
	_, err := d.dec.Token()
	return err
}
