// Package remote reads load from a load-watcher service over HTTP.
package remote

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/plimsoll-k8s/plimsoll/api/metricprovider"
	"github.com/plimsoll-k8s/plimsoll/load"
	"github.com/plimsoll-k8s/plimsoll/load/endpoint"
	"github.com/plimsoll-k8s/plimsoll/load/wire"
)

// Source reads a load-watcher service.
type Source struct {
	url    string
	server *endpoint.Endpoint
}

// New returns the source of a configuration, whose address is that of the service, such as
// http://load-watcher:2020.
func New(config metricprovider.Config) (*Source, error) {
	server, err := endpoint.New(config, endpoint.Options{Type: metricprovider.Service, MaxBytes: wire.MaxBytes})
	if err != nil {
		return nil, err
	}
	u := server.URL
	if !strings.HasSuffix(u.Path, "/watcher") {
		u = u.JoinPath("watcher")
	}
	return &Source{url: u.String(), server: server}, nil
}

// String returns the URL of the service, for messages.
func (s *Source) String() string { return "the load watcher at " + s.url }

// Read requests the load of all nodes.
func (s *Source) Read(ctx context.Context) (load.Reading, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return load.Reading{}, err
	}
	response, err := s.server.Do(request)
	if err != nil {
		return load.Reading{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return load.Reading{}, fmt.Errorf("status %s: %s", response.Status, strings.TrimSpace(string(body)))
	}
	return wire.Decode(response.Body)
}
