package prometheus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
)

// matchers matches the part of a selector between its braces.
var matchers = regexp.MustCompile("^(?:\\s*(?:\\w+|\"[^\"]*\")\\s*(?:=|!=|=~|!~)\\s*" +
	"(?:\"(?:[^\"\\\\]|\\\\.)*\"|'(?:[^'\\\\]|\\\\.)*'|`[^`]*`)\\s*(?:,\\s*|$))+$")

// Client sends queries to a Prometheus server, or another server with its query API. It returns the errors of the API's
// client, except that a *load.Error is returned without the URL that the client adds.
type Client struct {
	server *endpoint.Endpoint
	api    promv1.API
}

// NewClient returns the client of a configuration, or an error that names the field. The options bound the responses.
func NewClient(config metricprovider.Config, options endpoint.Options) (*Client, error) {
	if config.Selector != "" && !matchers.MatchString(config.Selector) {
		return nil, fmt.Errorf(`selector: invalid value %q: must be matchers such as cluster="prod"`, config.Selector)
	}
	options.Type = metricprovider.Prometheus
	server, err := endpoint.New(config, options)
	if err != nil {
		return nil, err
	}
	client, err := api.NewClient(api.Config{Address: server.URL.String(), Client: server.Client})
	if err != nil {
		return nil, err
	}
	return &Client{server: server, api: promv1.NewAPI(partialClient{client})}, nil
}

// partialClient adds a warning to partial answers of VictoriaMetrics, which have no warnings but a field.
type partialClient struct{ api.Client }

// Do implements api.Client.
func (c partialClient) Do(ctx context.Context, request *http.Request) (*http.Response, []byte, error) {
	response, body, err := c.Client.Do(ctx, request)
	const head = 200 // the field is before the data
	if rest, isObject := bytes.CutPrefix(body, []byte("{")); isObject &&
		bytes.Contains(body[:min(len(body), head)], []byte(`"isPartial":true`)) {
		body = append([]byte(`{"warnings":["the answer is partial (isPartial): some of its storage did not answer"],`), rest...)
	}
	return response, body, err
}

// String returns the URL of the server, for messages.
func (c *Client) String() string { return "Prometheus at " + c.server.URL.String() }

// Query evaluates a query at a time, the current time of the server if it is zero.
func (c *Client) Query(ctx context.Context, query string, at time.Time, options ...promv1.Option) (model.Vector, promv1.Warnings, error) {
	value, warnings, err := c.api.Query(ctx, query, at, options...)
	return result[model.Vector](c, query, value, warnings, err)
}

// QueryRange evaluates a query at all steps of a range.
func (c *Client) QueryRange(
	ctx context.Context, query string, over promv1.Range, options ...promv1.Option,
) (model.Matrix, promv1.Warnings, error) {
	value, warnings, err := c.api.QueryRange(ctx, query, over, options...)
	return result[model.Matrix](c, query, value, warnings, err)
}

// result returns the result of a query, or an error if it has another type.
func result[T model.Value](
	c *Client, query string, value model.Value, warnings promv1.Warnings, err error,
) (T, promv1.Warnings, error) {
	var found T
	if loadErr, ok := errors.AsType[*load.Error](err); ok {
		if loadErr.Reason == load.Denied {
			loadErr.Err = fmt.Errorf("%w: credentials are in tokenFile, certFile or headersFile of the load source", loadErr.Err)
		}
		return found, nil, loadErr
	}
	if apiErr, ok := errors.AsType[*promv1.Error](err); ok {
		if apiErr.Detail != "" {
			err = fmt.Errorf("%w: %.200s", err, strings.TrimSpace(apiErr.Detail))
		}
		if apiErr.Type == promv1.ErrBadResponse || apiErr.Type == promv1.ErrClient && strings.HasSuffix(apiErr.Msg, ": 404") {
			err = load.Errorf(load.Invalid, "found no %s: is the address correct, such as http://localhost:9090? %w", c, err)
		}
	}
	if err != nil {
		return found, nil, err
	}
	found, ok := value.(T)
	if !ok {
		return found, nil, load.Errorf(load.Invalid, "query %s: found result of type %s: must be a %s", query, value.Type(), found.Type())
	}
	return found, warnings, nil
}
